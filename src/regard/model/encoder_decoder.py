"""The whole Transformer of Vaswani et al. 2017, from vectors to vectors: an encoder read by a decoder."""

# B batch, N tokens of the target, S tokens of the source, E width

from torch import Tensor, nn

from ..errors import OptionError
from ..formula.masks import Mask
from .blocks import CAUSAL
from .decoder import Decoder
from .encoder import Encoder


class EncoderDecoder(nn.Module):
    """An encoder and the decoder that looks at what it made.

    `EncoderDecoder(Encoder(config, depth=6), Decoder(config, depth=6))` with `config = BlockConfig(width=512, heads=8)`
    """

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        if encoder.config.width != decoder.source_width:
            raise OptionError(
                f"the encoder makes vectors of {encoder.config.width} and the decoder looks at vectors of "
                f"{decoder.source_width}; make it with Decoder(.., source_width={encoder.config.width})."
            )
        self.encoder, self.decoder = encoder, decoder

    def forward(
        self, source: Tensor, target: Tensor, *, source_mask: Mask | Tensor | None = None,
        target_mask: Mask | Tensor | None = CAUSAL, cross_mask: Mask | Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """(B, S, E), (B, N, E) -> (B, N, E)

        source_mask: what the encoder's tokens see of each other; cross_mask: what the target's see of the source.
        Padding in the source belongs to both.
        """
        return self.decoder(target, self.encoder(source, mask=source_mask), mask=target_mask, cross_mask=cross_mask)  # type: ignore[no-any-return]
