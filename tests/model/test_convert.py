"""With weights copied from torch.nn: the same outputs and gradients, in training too, and the way back."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from regard.errors import DtypeError, OptionError
from regard.formula import masks
from regard.model import (
    BlockConfig,
    Decoder,
    DecoderBlock,
    Encoder,
    EncoderBlock,
    EncoderDecoder,
    FeedForward,
    MultiHeadAttention,
    Rotary,
    from_torch,
    to_torch,
)

pytestmark = pytest.mark.usefixtures("float64")
B, N, S, E, H = 3, 5, 7, 16, 4
CLOSE = {"atol": 1e-10, "rtol": 0}


def randomized(module):
    """Norms start at 1 and biases at 0, and a swapped one would not show."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module


def blocked(*shape, seed=5):
    """True = may NOT attend, as torch.nn has it; the first key stays open, so that no row is NaN there."""
    mask = torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) > 0.6
    mask[..., 0] = False
    return mask


# What torch.nn is given, and what says the same here: (attn_mask, key_padding_mask) and mask
def both_masks(kind, queries, keys):
    hidden = blocked(B, keys)
    future = torch.ones(queries, keys, dtype=torch.bool).triu(1 + keys - queries)
    return {
        "none": ((None, None), None),
        "causal": ((future, None), masks.causal()),
        "padding": ((None, hidden), masks.keys(~hidden)),
        "causal and padding": ((future, hidden), masks.causal() & masks.keys(~hidden)),
        "arbitrary": ((blocked(queries, keys), None), ~blocked(queries, keys)),
        "of each item and head": (
            (blocked(B * H, queries, keys), None), ~blocked(B * H, queries, keys).unflatten(0, (B, H)),
        ),
    }[kind]  # fmt: skip


MASKS = ["none", "causal", "padding", "causal and padding", "arbitrary", "of each item and head"]


def graded(module):
    """A copy whose weights are the gradients, so that they can be converted like weights."""
    copied = copy.deepcopy(module)
    for mine, theirs in zip(copied.parameters(), module.parameters(), strict=True):
        mine.data = theirs.grad.clone()
    return copied


def assert_same(theirs, ours, their_call, our_call, *inputs):
    """Outputs, gradients of the inputs and gradients of every parameter."""
    answers, slopes = [], []
    for module, call in ((theirs, their_call), (ours, our_call)):
        fresh = [x.detach().clone().requires_grad_() for x in inputs]
        torch.manual_seed(7)
        answers.append(call(module, *fresh))
        module.zero_grad()
        answers[-1].backward(torch.linspace(-1, 1, answers[-1].numel()).view(answers[-1].shape))
        slopes.append([x.grad for x in fresh])
    torch.testing.assert_close(answers[1], answers[0], **CLOSE)
    for mine, other in zip(slopes[1], slopes[0], strict=True):
        torch.testing.assert_close(mine, other, **CLOSE)
    converted = dict(from_torch(graded(theirs)).named_parameters())
    found = dict(ours.named_parameters())
    assert converted.keys() == found.keys()
    for name, parameter in found.items():
        torch.testing.assert_close(
            parameter.grad, converted[name], **CLOSE, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"dropout": 0.3}, {"kdim": 10, "vdim": 10}])
def test_attention(kind, options):
    theirs = randomized(nn.MultiheadAttention(E, H, batch_first=True, **options))
    ours, ((attn_mask, padding), mask) = from_torch(theirs), both_masks(kind, N, S)

    def their_call(module, x, source):
        return module(x, source, source, attn_mask=attn_mask, key_padding_mask=padding, need_weights=False)[0]

    x, source = torch.randn(B, N, E), torch.randn(B, S, options.get("kdim", E))
    assert_same(theirs, ours, their_call, lambda module, x, source: module(x, source, mask=mask), x, source)
    theirs.eval(), ours.eval()
    weights = theirs(x, source, source, attn_mask=attn_mask, key_padding_mask=padding, average_attn_weights=False)[1]
    torch.testing.assert_close(ours.attend(x, source, mask=mask).weights, weights, **CLOSE)


SETTINGS = {
    "post-norm": {},
    "pre-norm": {"norm_first": True},
    "gelu, no bias": {"activation": "gelu", "bias": False},
    "gelu, pre-norm, eps": {"activation": "gelu", "norm_first": True, "layer_norm_eps": 1e-3},
}


@pytest.mark.parametrize(("training", "dropout"), [(True, 0.0), (True, 0.2), (False, 0.2)])
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("kind", MASKS)
def test_encoder(kind, settings, training, dropout):
    block = nn.TransformerEncoderLayer(E, H, 24, dropout, batch_first=True, **SETTINGS[settings])
    theirs = randomized(nn.TransformerEncoder(block, 2, norm=nn.LayerNorm(E), enable_nested_tensor=False)).train(
        training
    )
    ours, ((attn_mask, padding), mask) = from_torch(theirs), both_masks(kind, N, N)
    assert ours.training == training
    assert_same(
        theirs, ours,
        lambda module, x: module(x, mask=attn_mask, src_key_padding_mask=padding),
        lambda module, x: module(x, mask=mask),
        torch.randn(B, N, E),
    )  # fmt: skip


@pytest.mark.parametrize(("training", "dropout"), [(True, 0.0), (True, 0.2), (False, 0.2)])
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize(
    ("kind", "cross"), [("none", "none"), ("causal", "padding"), ("causal and padding", "arbitrary")]
)
def test_decoder(kind, cross, settings, training, dropout):
    block = nn.TransformerDecoderLayer(E, H, 24, dropout, batch_first=True, **SETTINGS[settings])
    theirs = randomized(nn.TransformerDecoder(block, 2)).train(training)
    ours = from_torch(theirs)
    ((attn_mask, padding), mask), ((cross_mask, hidden), seen) = both_masks(kind, N, N), both_masks(cross, N, S)
    assert_same(
        theirs, ours,
        lambda module, x, source: module(
            x, source, tgt_mask=attn_mask, tgt_key_padding_mask=padding, memory_mask=cross_mask,
            memory_key_padding_mask=hidden,
        ),
        lambda module, x, source: module(x, source, mask=mask, cross_mask=seen),
        torch.randn(B, N, E), torch.randn(B, S, E),
    )  # fmt: skip


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_transformer(settings, training):
    theirs = nn.Transformer(E, H, 2, 1, 24, 0.1, batch_first=True, **SETTINGS[settings])
    ours, hidden = from_torch(randomized(theirs).train(training)), blocked(B, S)
    future = nn.Transformer.generate_square_subsequent_mask(N)
    additive = torch.zeros(B, S).masked_fill(hidden, -torch.inf)
    assert_same(
        theirs, ours,
        lambda module, source, x: module(
            source, x, tgt_mask=future, src_key_padding_mask=additive, memory_key_padding_mask=additive,
            tgt_is_causal=True,
        ),
        lambda module, source, x: module(source, x, source_mask=masks.keys(~hidden), cross_mask=masks.keys(~hidden)),
        torch.randn(B, S, E), torch.randn(B, N, E),
    )  # fmt: skip


@pytest.mark.parametrize("make", [nn.TransformerEncoderLayer, nn.TransformerDecoderLayer])
@pytest.mark.parametrize("norm_first", [True, False])
def test_single_blocks(make, norm_first):
    theirs = randomized(make(E, H, 24, 0.1, batch_first=True, norm_first=norm_first))
    inputs = [torch.randn(B, N, E), torch.randn(B, S, E)][: 1 + (make is nn.TransformerDecoderLayer)]
    assert_same(
        theirs, from_torch(theirs), lambda module, *x: module(*x), lambda module, *x: module(*x, mask=None), *inputs
    )


@pytest.mark.parametrize("batch", [1, B])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_batch_second_is_the_same_model(batch):
    # PyTorch draws its dropout in the order of memory, so with several items a batch-second model draws otherwise.
    theirs = randomized(nn.Transformer(E, H, 1, 1, 24, dropout=0.2 if batch == 1 else 0.0, norm_first=True))
    assert_same(
        theirs, from_torch(theirs),
        lambda module, source, x: module(source.transpose(0, 1), x.transpose(0, 1)).transpose(0, 1),
        lambda module, source, x: module(source, x, target_mask=None),
        torch.randn(batch, S, E), torch.randn(batch, N, E),
    )  # fmt: skip


def test_fast_path_of_pytorch_gives_the_same():
    block = nn.TransformerEncoderLayer(E, H, 24, batch_first=True)
    theirs = randomized(nn.TransformerEncoder(block, 2)).eval()
    x, ours, hidden = torch.randn(B, N, E), from_torch(theirs), blocked(B, N)
    with torch.no_grad():
        torch.testing.assert_close(ours(x), theirs(x), **CLOSE)
        expected, found = theirs(x, src_key_padding_mask=hidden), ours(x, mask=masks.keys(~hidden))
        torch.testing.assert_close(found[~hidden], expected[~hidden], **CLOSE)


def torch_modules(batch_first):
    """One of each, with every setting away from its default somewhere."""
    encoder = nn.TransformerEncoderLayer(E, H, 24, 0.2, "gelu", 1e-3, batch_first, norm_first=True)
    decoder = nn.TransformerDecoderLayer(E, H, 24, 0.2, "relu", 1e-4, batch_first, bias=False)
    return [
        nn.MultiheadAttention(E, H, 0.1, batch_first=batch_first),
        nn.MultiheadAttention(E, H, bias=False, kdim=6, vdim=6, batch_first=batch_first),
        encoder,
        decoder,
        nn.TransformerEncoder(encoder, 2, enable_nested_tensor=False),
        nn.TransformerEncoder(encoder, 2, norm=nn.LayerNorm(E, eps=1e-6), enable_nested_tensor=False),
        nn.TransformerEncoder(encoder, 1, norm=nn.RMSNorm(E), enable_nested_tensor=False),
        nn.TransformerDecoder(decoder, 3, norm=nn.LayerNorm(E, bias=False)),
        nn.Transformer(E, H, 1, 2, 24, batch_first=batch_first),
    ]


def settings_of(module):
    """Everything that print shows, part by part, but for the class that only marks a Linear."""
    return {
        name: str(part).replace("NonDynamicallyQuantizableLinear", "Linear")
        for name, part in module.named_modules()
        if name
    }


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_there_and_back_is_exact(batch_first, dtype):
    for module in torch_modules(batch_first):
        module = randomized(module).to(dtype).eval()  # noqa: PLW2901
        back = to_torch(from_torch(module), batch_first=batch_first)
        assert type(back) is type(module)
        assert settings_of(back) == settings_of(module)
        assert not back.training
        state, expected = back.state_dict(), module.state_dict()
        assert list(state) == list(expected)
        assert all(torch.equal(state[name], tensor) and state[name].dtype == dtype for name, tensor in expected.items())
        assert not {tensor.data_ptr() for tensor in state.values()} & {
            tensor.data_ptr() for tensor in expected.values()
        }
        for part in (part for part in back.modules() if isinstance(part, nn.MultiheadAttention)):
            assert part.batch_first == batch_first


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_ours_to_torch_and_back_is_exact(norm_first, activation):
    config = BlockConfig(width=E, heads=H, norm_first=norm_first, activation=activation, dropout=0.1, eps=1e-4)
    ours = randomized(EncoderDecoder(Encoder(config, 2), Decoder(config, 1)))
    theirs = to_torch(ours)
    back, source, x = from_torch(theirs), torch.randn(B, S, E), torch.randn(B, N, E)
    assert list(back.state_dict()) == list(ours.state_dict())
    assert all(torch.equal(*pair) for pair in zip(back.state_dict().values(), ours.state_dict().values(), strict=True))
    assert back.encoder.config.make_feed_forward().hidden == ours.encoder.config.make_feed_forward().hidden
    assert_same(theirs, ours, lambda module, *x: module(*x), lambda module, *x: module(*x, target_mask=None), source, x)


def test_reading_draws_no_random_numbers_and_shares_no_memory():
    theirs = nn.TransformerEncoderLayer(E, H, 24, batch_first=True)
    torch.manual_seed(3)
    expected = torch.rand(())
    torch.manual_seed(3)
    ours = from_torch(theirs)
    assert torch.rand(()) == expected
    nn.init.zeros_(theirs.self_attn.in_proj_weight)
    assert ours.attention.to_key.weight.abs().max() > 0


def uneven(make):
    module = nn.TransformerEncoderLayer(E, H, 24, 0.1, batch_first=True)
    make(module)
    return module


NOT_READ = {
    "add_bias_kv": (lambda: nn.MultiheadAttention(E, H, add_bias_kv=True), "add_bias_kv=True"),
    "add_zero_attn": (lambda: nn.MultiheadAttention(E, H, add_zero_attn=True), "add_zero_attn=True"),
    "two sources": (lambda: nn.MultiheadAttention(E, H, kdim=6, vdim=10), "kdim=6 and vdim=10"),
    "an activation": (lambda: nn.TransformerEncoderLayer(E, H, activation=functional.silu, batch_first=True), "silu"),
    "another gelu": (lambda: nn.TransformerEncoderLayer(E, H, activation=nn.GELU("tanh"), batch_first=True), "tanh"),
    "dropouts that differ": (lambda: uneven(lambda m: setattr(m.dropout1, "p", 0.5)), "0.1, 0.5"),
    "norms that differ": (lambda: uneven(lambda m: setattr(m.norm2, "eps", 0.5)), "0.5"),
    "biases that differ": (lambda: uneven(lambda m: setattr(m, "linear1", nn.Linear(E, 24, bias=False))), "bias"),
    "a final norm": (
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(E, H), 1, norm=nn.Identity()), "is a Identity",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_READ)
def test_what_has_no_place_here_is_refused_by_name(case):
    make, says = NOT_READ[case]
    with pytest.raises(OptionError) as caught:
        from_torch(make())
    assert says in str(caught.value)


@pytest.mark.parametrize("activation", [torch.relu, functional.relu, nn.ReLU(), functional.gelu, nn.GELU()])
def test_activations_are_known_in_every_form(activation):
    theirs = nn.TransformerEncoderLayer(E, H, 24, 0.0, activation, batch_first=True)
    x = torch.randn(B, N, E)
    torch.testing.assert_close(from_torch(theirs)(x), theirs(x), **CLOSE)


NOT_WRITTEN = {
    "grouped heads": (lambda: MultiHeadAttention(E, H, key_heads=2), "key_heads=2 for 4 heads"),
    "rotary": (lambda: MultiHeadAttention(E, H, rotary=Rotary()), "rotary"),
    "RMS norm": (lambda: EncoderBlock(BlockConfig(width=E, heads=H, norm="rms")), "norm='rms'"),
    "SwiGLU": (lambda: DecoderBlock(BlockConfig(width=E, heads=H, activation="swiglu")), "activation='swiglu'"),
    "grouped heads in a block": (lambda: Encoder(BlockConfig(width=E, heads=H, key_heads=1), 1), "key_heads=1"),
    "source width": (lambda: DecoderBlock(BlockConfig(width=E, heads=H), source_width=6), "source_width=6"),
}


@pytest.mark.parametrize("case", NOT_WRITTEN)
def test_what_pytorch_cannot_say_is_refused_by_name(case):
    make, says = NOT_WRITTEN[case]
    with pytest.raises(OptionError) as caught:
        to_torch(make())
    assert says in str(caught.value)


def test_other_modules_are_refused_by_name():
    with pytest.raises(DtypeError, match=r"Linear cannot be read; from_torch takes MultiheadAttention, Trans"):
        from_torch(nn.Linear(2, 2))
    with pytest.raises(DtypeError, match=r"FeedForward cannot be written; to_torch takes MultiHeadAttention, Enc"):
        to_torch(FeedForward(4))
    with pytest.raises(DtypeError, match=r"a Identity stands where a TransformerEncoder was expected"):
        from_torch(nn.Transformer(E, H, 1, 1, custom_encoder=nn.Identity()))


def test_an_encoder_without_layers_is_refused_by_name():
    layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)
    with pytest.raises(OptionError, match="TransformerEncoder has no layers"):
        from_torch(nn.TransformerEncoder(layer, 0))
