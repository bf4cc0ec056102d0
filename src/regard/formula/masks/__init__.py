"""Who may attend to whom: small objects that answer for any rectangle of the map, and are never n×n themselves.

True = may attend. Combine masks with `&` and `|`, turn one round with `~`, and give the result to `attend` or
`weights` as `mask=`. To look at one, make it dense: `masks.causal().dense(5)`.
"""

from .mask import Mask
from .places import blocks, causal, global_tokens, ranges, window
from .tokens import from_additive, from_binary, given, keys, padding, padding_of_ids, segments

__all__ = [
    "Mask", "blocks", "causal", "from_additive", "from_binary", "given", "global_tokens", "keys", "padding",
    "padding_of_ids", "ranges", "segments", "window",
]  # fmt: skip
