"""torch.compile takes the layers in one graph: nothing in a forward depends on the numbers."""

import pytest
import torch

from regard.formula import masks
from regard.model import BlockConfig, Decoder, Encoder, EncoderBlock, MultiHeadAttention, Rotary

# Older versions of PyTorch import deprecated parts of their own when they compile.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
B, N, E, H = 2, 5, 16, 4
MASKS = {
    "none": None,
    "causal": masks.causal(),
    "tensor": torch.rand(B, 1, N, N, generator=torch.Generator().manual_seed(1)) > 0.3,
}
LAYERS = {
    "attention": lambda: MultiHeadAttention(E, H, key_heads=2),
    "encoder": lambda: Encoder(BlockConfig(width=E, heads=H), 2),
    "modern encoder": lambda: Encoder(
        BlockConfig(width=E, heads=H, norm="rms", activation="swiglu", norm_first=False), 1
    ),
}
# Positions and mask objects go through array-api-compat, whose cached look-ups torch.compile remarks upon.
REMARK = "ignore:Dynamo detected a call to a `functools.lru_cache`"


def in_one_graph(layer, *inputs, backend="eager", **options):
    torch.manual_seed(0)
    torch._dynamo.reset()
    return torch.compile(layer, fullgraph=True, backend=backend)(*inputs, **options)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", LAYERS)
def test_layers_are_one_graph(kind, mask):
    layer, x = LAYERS[kind](), torch.randn(B, N, E)
    torch.testing.assert_close(in_one_graph(layer, x, mask=MASKS[mask]), layer(x, mask=MASKS[mask]))


@pytest.mark.parametrize("mask", MASKS)
def test_gradients_come_out_of_the_graph(mask):
    layer, x = LAYERS["attention"](), torch.randn(B, N, E, requires_grad=True)
    compiled, plain = in_one_graph(layer, x, mask=MASKS[mask], backend="aot_eager"), layer(x, mask=MASKS[mask])
    toward = torch.randn(B, N, E)
    for one, other in zip(
        *(torch.autograd.grad(out, (x, *layer.parameters()), toward) for out in (compiled, plain)), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_a_decoder_is_one_graph():
    decoder, x, source = Decoder(BlockConfig(width=E, heads=H), 1), torch.randn(B, N, E), torch.randn(B, 3, E)
    torch.testing.assert_close(in_one_graph(decoder, x, source), decoder(x, source))


@pytest.mark.filterwarnings(REMARK)
@pytest.mark.parametrize("interleaved", [True, False])
def test_rotary_positions_are_one_graph(interleaved):
    layer, x = MultiHeadAttention(E, H, rotary=Rotary(interleaved=interleaved)), torch.randn(B, N, E)
    torch.testing.assert_close(in_one_graph(layer, x, mask=masks.causal()), layer(x, mask=masks.causal()))


@pytest.mark.skipif(torch.__version__ < "2.13", reason="torch.compile before 2.13 cannot look into mask objects")
@pytest.mark.filterwarnings(REMARK)
def test_mask_objects_are_one_graph():
    layer, x = MultiHeadAttention(E, H), torch.randn(B, N, E)
    mask = masks.causal() & masks.keys(torch.tensor([[True] * 5, [True] * 3 + [False] * 2]))
    torch.testing.assert_close(in_one_graph(layer, x, mask=mask), layer(x, mask=mask))


def test_training_with_dropout_is_one_graph():
    encoder, x = Encoder(BlockConfig(width=E, heads=H, dropout=0.2), 1), torch.randn(B, N, E)
    found = in_one_graph(encoder, x, mask=masks.causal())
    assert not torch.allclose(found, encoder.eval()(x, mask=masks.causal()))


def test_compiled_dropout_drops_its_share_of_what_attention_says():
    block = EncoderBlock(BlockConfig(width=E, heads=H, dropout=0.2))
    found = in_one_graph(_Dropping(block), torch.ones(50, 50, E))
    assert set(found.unique().tolist()) == {0.0, 1.25}
    assert abs(float((found == 0).float().mean()) - 0.2) < 0.01  # of 40,000, so 5 standard deviations


class _Dropping(torch.nn.Module):
    """The part of a block that drops what attention adds."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x):
        return self.block._dropped(x)


def test_other_lengths_need_no_other_graph():
    layer = MultiHeadAttention(E, H)
    torch._dynamo.reset()
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(layer, fullgraph=True, backend=count, dynamic=True)
    for n in (6, 7, 9):
        x = torch.randn(3, n, E)
        torch.testing.assert_close(compiled(x, mask=masks.causal()), layer(x, mask=masks.causal()))
    assert len(graphs) == 1
