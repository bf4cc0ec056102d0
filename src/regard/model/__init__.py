"""tokens → predictions, in PyTorch: attention layers, blocks, encoder and decoder."""

from ..errors import MissingExtra

try:
    import torch as _torch  # noqa: F401
except ImportError as missing:
    raise MissingExtra("regard.model needs PyTorch: pip install regard[torch]") from missing

from .attention import Attended, MultiHeadAttention, Rotary, SelfAttention
from .blocks import BlockConfig, DecoderBlock, EncoderBlock
from .cache import BlockCache, KeyValueCache, StackCache
from .convert import from_torch, to_torch
from .decoder import Decoder
from .encoder import Encoder
from .encoder_decoder import EncoderDecoder
from .feed_forward import FeedForward
from .norm import make_norm
from .text_encoder import TextEncoder, TextEncoderConfig

__all__ = [
    "Attended", "BlockCache", "BlockConfig", "Decoder", "DecoderBlock", "Encoder", "EncoderBlock", "EncoderDecoder",
    "FeedForward", "KeyValueCache", "MultiHeadAttention", "Rotary", "SelfAttention", "StackCache", "TextEncoder",
    "TextEncoderConfig", "from_torch", "make_norm", "to_torch",
]  # fmt: skip
