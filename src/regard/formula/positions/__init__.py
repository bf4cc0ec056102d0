"""Where a token stands: absolute positions to add, rotary ones to turn by, relative ones to add to the scores."""

from .absolute import learned, sinusoidal
from .bias import Bias, alibi, alibi_slopes, by_distance, t5, t5_buckets
from .rotary import Linear, Llama3, Ntk, Yarn, angles, frequencies, rotary, rotate

__all__ = [
    "Bias", "Linear", "Llama3", "Ntk", "Yarn", "alibi", "alibi_slopes", "angles", "by_distance", "frequencies",
    "learned", "rotary", "rotate", "sinusoidal", "t5", "t5_buckets",
]  # fmt: skip
