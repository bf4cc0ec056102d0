"""The decoder: blocks one on the other, each token seeing those before it and the whole source."""

# B batch, N tokens, S tokens of the source, E width

from torch import Tensor, nn

from ..formula.masks import Mask
from .blocks import CAUSAL, BlockConfig, DecoderBlock
from .cache import StackCache
from .norm import normed
from .options import require_count


class Decoder(nn.Module):
    """`depth` blocks and a final norm.   `Decoder(BlockConfig(width=64, heads=4), depth=2)`

    source_width: of the source's vectors, the decoder's own width unless given. final_norm: as the blocks are
    pre-norm unless given; without it their residual would leave un-normed.
    """

    def __init__(
        self, config: BlockConfig, depth: int, *, source_width: int | None = None, final_norm: bool | None = None
    ) -> None:
        super().__init__()
        self.config = config
        self.source_width = config.width if source_width is None else source_width
        blocks = (DecoderBlock(config, source_width=source_width) for _ in range(require_count("depth", depth)))
        self.blocks = nn.ModuleList(blocks)
        self.norm = config.make_norm() if (config.norm_first if final_norm is None else final_norm) else None

    def new_cache(self) -> StackCache:
        """An empty cache, for decoding step by step: each step gives its new tokens alone."""
        return StackCache(len(self.blocks))

    def forward(
        self, x: Tensor, source: Tensor, *, mask: Mask | Tensor | None = CAUSAL,
        cross_mask: Mask | Tensor | None = None, cache: StackCache | None = None,
    ) -> Tensor:  # fmt: skip
        """(B, N, E), (B, S, source_width) -> (B, N, E)

        Causal unless another mask is given: `masks.causal() & masks.padding(lengths)` for a padded batch, None for no
        mask at all. cross_mask says which tokens of the source may be seen, usually `masks.padding(source_lengths)`.
        """
        for block, kept in zip(self.blocks, StackCache.of(cache, len(self.blocks)), strict=True):
            x = block(x, source, mask=mask, cross_mask=cross_mask, cache=kept)
        return x if self.norm is None else normed(self.norm, x)
