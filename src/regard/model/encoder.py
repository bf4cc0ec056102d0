"""The encoder: blocks one on the other, each token seeing the whole text."""

# B batch, N tokens, E width

from torch import Tensor, nn

from ..formula.masks import Mask
from .blocks import BlockConfig, EncoderBlock
from .cache import StackCache
from .norm import normed
from .options import require_count


class Encoder(nn.Module):
    """`depth` blocks and a final norm.   `Encoder(BlockConfig(width=64, heads=4), depth=2)`

    final_norm: as the blocks are pre-norm unless given; without it their residual would leave un-normed.
    """

    def __init__(self, config: BlockConfig, depth: int, *, final_norm: bool | None = None) -> None:
        super().__init__()
        self.config = config
        self.blocks = nn.ModuleList(EncoderBlock(config) for _ in range(require_count("depth", depth)))
        self.norm = config.make_norm() if (config.norm_first if final_norm is None else final_norm) else None

    def new_cache(self) -> StackCache:
        """An empty cache, for texts that are read token by token under a causal mask."""
        return StackCache(len(self.blocks))

    def forward(self, x: Tensor, *, mask: Mask | Tensor | None = None, cache: StackCache | None = None) -> Tensor:
        """(B, N, E) -> (B, N, E)"""
        for block, kept in zip(self.blocks, StackCache.of(cache, len(self.blocks)), strict=True):
            x = block(x, mask=mask, cache=kept)
        return x if self.norm is None else normed(self.norm, x)
