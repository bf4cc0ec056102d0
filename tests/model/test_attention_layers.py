"""The attention layers against plain NumPy, head by head, and what they say to bad input."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from regard.errors import DtypeError, OptionError, RegardError, ShapeError
from regard.formula import masks, positions
from regard.model import KeyValueCache, MultiHeadAttention, Rotary, SelfAttention

pytestmark = pytest.mark.usefixtures("float64")
B, Q, K, E, H = 2, 5, 7, 24, 4
ROTARIES = {
    "none": None,
    "half-split": Rotary(),
    "interleaved": Rotary(interleaved=True),
    "partial": Rotary(width=4, base=500.0),
    "yarn": Rotary(scaling=positions.Yarn(factor=4.0, trained_length=64)),
}


def randomized(layer):
    """Biases start at 0, and a wrong one would not show."""
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.3)
    return layer


def turned(x, rotary):
    """Rotary positions by complex numbers. x: (N, D)"""
    n, d = x.shape
    width = rotary.width or d
    frequencies = positions.frequencies(width, rotary.base, rotary.scaling)
    turn = np.exp(1j * np.arange(n)[:, None] * np.asarray(frequencies))
    first = x[:, 0:width:2] if rotary.interleaved else x[:, : width // 2]
    second = x[:, 1:width:2] if rotary.interleaved else x[:, width // 2 : width]
    z = (first + 1j * second) * turn
    out = x.copy()
    if rotary.interleaved:
        out[:, 0:width:2], out[:, 1:width:2] = z.real, z.imag
    else:
        out[:, : width // 2], out[:, width // 2 : width] = z.real, z.imag
    return out


def reference(layer, x, source=None, allowed=None):
    """One item and one head at a time, in NumPy; allowed: (B, H, Q, K) booleans."""
    state = {name: tensor.detach().numpy() for name, tensor in layer.state_dict().items()}
    x = x.detach().numpy()
    source = x if source is None else source.detach().numpy()
    d, share = layer.head_width, layer.heads // layer.key_heads
    temperature = 1.0 if layer.rotary is None else layer.rotary.temperature
    outputs, weights = [], []
    for b in range(len(x)):
        mixed, maps = [], []
        projected = {}
        for name, vectors in (("to_query", x[b]), ("to_key", source[b]), ("to_value", source[b])):
            projected[name] = vectors @ state[f"{name}.weight"].T + state.get(f"{name}.bias", 0.0)
        for h in range(layer.heads):
            g = h // share
            q = projected["to_query"][:, h * d : (h + 1) * d]
            k, v = (projected[name][:, g * d : (g + 1) * d] for name in ("to_key", "to_value"))
            if layer.rotary is not None:
                q, k = turned(q, layer.rotary), turned(k, layer.rotary)
            powers = np.exp(q @ k.T * temperature / math.sqrt(d))
            if allowed is not None:
                powers = powers * allowed[b, h]
            total = powers.sum(-1, keepdims=True)
            maps.append(np.divide(powers, total, out=np.zeros_like(powers), where=total > 0))
            mixed.append(maps[-1] @ v)
        outputs.append(np.concatenate(mixed, -1) @ state["output.weight"].T + state.get("output.bias", 0.0))
        weights.append(np.stack(maps))
    return np.stack(outputs), np.stack(weights)


def assert_both_ways(layer, x, source=None, *, mask=None, allowed=None):
    output, weights = reference(layer, x, source, allowed)
    attended = layer.attend(x, source, mask=mask)
    np.testing.assert_allclose(layer(x, source, mask=mask).detach().numpy(), output, atol=1e-12)
    np.testing.assert_allclose(attended.output.detach().numpy(), output, atol=1e-12)
    np.testing.assert_allclose(attended.weights.detach().numpy(), weights, atol=1e-12)


@pytest.mark.parametrize("rotary", ROTARIES)
@pytest.mark.parametrize("key_heads", [4, 2, 1])
@pytest.mark.parametrize("bias", [True, False])
def test_self_attention_is_the_reference(key_heads, bias, rotary):
    layer = MultiHeadAttention(32, H, key_heads=key_heads, bias=bias, rotary=ROTARIES[rotary])
    assert_both_ways(randomized(layer), torch.randn(B, Q, 32))


@pytest.mark.parametrize("key_heads", [4, 2, 1])
@pytest.mark.parametrize("source_width", [None, 10])
def test_cross_attention_is_the_reference(key_heads, source_width):
    layer = randomized(MultiHeadAttention(E, H, key_heads=key_heads, source_width=source_width))
    assert_both_ways(layer, torch.randn(B, Q, E), torch.randn(B, K, source_width or E))


ARBITRARY = torch.rand(B, H, Q, Q, generator=torch.Generator().manual_seed(3)) > 0.5
MASKS = {
    "causal": (masks.causal(), np.tril(np.ones((Q, Q), bool))),
    "causal from above": (masks.causal(2), np.tril(np.ones((Q, Q), bool), 2)),
    "lengths": (masks.padding([5, 2]), (np.arange(Q) < np.array([5, 2])[:, None])[:, None, None]),
    "causal and keys": (
        masks.causal() & masks.keys(torch.arange(Q) != torch.tensor([[1], [4]])),
        np.tril(np.ones((Q, Q), bool)) & (np.arange(Q) != np.array([[1], [4]]))[:, None, None],
    ),
    "window": (masks.window(1, 1), np.abs(np.subtract.outer(np.arange(Q), np.arange(Q))) <= 1),
    "nothing for one query": (torch.arange(Q)[:, None] != torch.ones(Q), np.arange(Q)[:, None] != np.ones(Q)),
    "of the keys": (torch.arange(Q) > 1, np.arange(Q) > 1),
    "of each head": (ARBITRARY[:1, ...], ARBITRARY[:1].numpy()),
    "of each head, three axes": (ARBITRARY[0], ARBITRARY[0].numpy()),
    "of each item": (ARBITRARY[:, :1], ARBITRARY[:, :1].numpy()),
    "arbitrary": (ARBITRARY, ARBITRARY.numpy()),
}


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("key_heads", [4, 2])
def test_masks_are_the_reference(kind, key_heads):
    mask, allowed = MASKS[kind]
    layer = randomized(MultiHeadAttention(E, H, key_heads=key_heads))
    assert_both_ways(layer, torch.randn(B, Q, E), mask=mask, allowed=np.broadcast_to(allowed, (B, H, Q, Q)))


def test_causal_is_aligned_bottom_right_when_lengths_differ():
    layer, allowed = randomized(MultiHeadAttention(E, H)), np.tril(np.ones((Q, K), bool), K - Q)
    x, source = torch.randn(B, Q, E), torch.randn(B, K, E)
    assert_both_ways(layer, x, source, mask=masks.causal(), allowed=np.broadcast_to(allowed, (B, H, Q, K)))


def test_grouped_heads_are_repeated_keys():
    grouped = randomized(MultiHeadAttention(E, H, key_heads=2))
    full, state = MultiHeadAttention(E, H), grouped.state_dict()
    for name in ("to_key.weight", "to_key.bias", "to_value.weight", "to_value.bias"):
        state[name] = state[name].unflatten(0, (2, E // H)).repeat_interleave(2, dim=0).flatten(0, 1)
    full.load_state_dict(state)
    x = torch.randn(B, Q, E)
    torch.testing.assert_close(grouped(x), full(x), atol=1e-12, rtol=0)


@pytest.fixture
def kernel_calls(monkeypatch):
    calls, kernel = [], functional.scaled_dot_product_attention

    def watched(*args, **options):
        calls.append((args, options))
        return kernel(*args, **options)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", watched)
    return calls


def test_a_square_causal_mask_is_never_made(kernel_calls):
    MultiHeadAttention(E, H)(torch.randn(B, Q, E), mask=masks.causal())
    [(_, options)] = kernel_calls
    assert options["is_causal"]
    assert options["attn_mask"] is None


def test_a_step_of_decoding_needs_no_mask(kernel_calls):
    layer, cache = MultiHeadAttention(E, H), KeyValueCache()
    for _ in range(2):
        layer(torch.randn(B, 1, E), mask=masks.causal(), cache=cache)
    assert kernel_calls[-1][1]["attn_mask"] is None
    assert not kernel_calls[-1][1]["is_causal"]


def test_keys_of_grouped_heads_are_not_copied(kernel_calls):
    MultiHeadAttention(E, H, key_heads=2)(torch.randn(B, Q, E))
    [((_, key, value), options)] = kernel_calls
    assert options["enable_gqa"]
    assert key.shape == value.shape == (B, 2, Q, E // H)


def test_a_hook_on_mixing_sees_what_enters_the_dot_product():
    layer, seen = MultiHeadAttention(E, H, key_heads=2, rotary=Rotary()), []
    layer.mixing.register_forward_pre_hook(lambda _, args: seen.append(args))
    x = torch.randn(B, Q, E)
    layer(x, mask=masks.causal())
    query, key, _, mask = seen[0]
    scores = query @ key.repeat_interleave(2, dim=1).mT / math.sqrt(E // H)
    weights = scores.masked_fill(~torch.ones(Q, Q, dtype=torch.bool).tril(), -torch.inf).softmax(-1)
    torch.testing.assert_close(weights, layer.attend(x, mask=masks.causal()).weights)
    assert isinstance(mask, masks.Mask)


@pytest.mark.parametrize("way", ["forward", "attend"])
def test_a_query_that_sees_nothing_gets_zeros_and_sound_gradients(way):
    layer, x = MultiHeadAttention(E, H, bias=False), torch.randn(B, Q, E, requires_grad=True)
    mask = masks.padding([Q, 0])
    output = layer(x, mask=mask) if way == "forward" else layer.attend(x, mask=mask).output
    output.square().sum().backward()
    assert torch.equal(output[1], torch.zeros(Q, E))
    assert output[0].abs().min() > 0
    assert all(torch.isfinite(tensor.grad).all() for tensor in (x, *layer.parameters()))


def test_zeros_do_not_hang_on_the_kernel(monkeypatch):
    # cuDNN's kernel, which an H200 takes for float16 and bfloat16, mixes all values where it may mix none.
    kernel = functional.scaled_dot_product_attention

    def careless(query, key, value, *, attn_mask, **options):
        nothing = ~attn_mask.any(dim=-1, keepdim=True)
        return kernel(query, key, value, attn_mask=attn_mask | nothing, **options)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", careless)
    layer, x = MultiHeadAttention(E, H, bias=False), torch.randn(B, Q, E)
    for mask in (masks.padding([Q, 0]), torch.arange(Q)[:, None] != torch.ones(Q), torch.zeros(1, dtype=torch.bool)):
        torch.testing.assert_close(layer(x, mask=mask), layer.attend(x, mask=mask).output)


@pytest.mark.parametrize("kind", ["causal", "arbitrary"])
def test_both_ways_have_the_same_gradients(kind):
    layer, x = (
        randomized(MultiHeadAttention(E, H, key_heads=2, rotary=Rotary())),
        torch.randn(B, Q, E, requires_grad=True),
    )
    tensors, mask = (x, *layer.parameters()), MASKS[kind][0]
    answers = layer(x, mask=mask), layer.attend(x, mask=mask).output
    toward = torch.randn(B, Q, E)
    for one, other in zip(*(torch.autograd.grad(answer, tensors, toward) for answer in answers), strict=True):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=1e-10)


def test_dropout_falls_on_the_weights_in_training_alone():
    layer, x = MultiHeadAttention(E, H, dropout=0.5), torch.randn(B, Q, E)
    torch.manual_seed(1)
    fast = layer(x)
    torch.manual_seed(1)
    attended = layer.attend(x)
    torch.testing.assert_close(fast, attended.output)
    torch.testing.assert_close(attended.weights.sum(-1), torch.ones(B, H, Q))
    assert not torch.allclose(fast, layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float16, 5e-3), (torch.bfloat16, 4e-2)])
@pytest.mark.parametrize("rotary", ["none", "interleaved"])
def test_narrow_dtypes(dtype, tolerance, rotary):
    wide = MultiHeadAttention(32, H, key_heads=2, rotary=ROTARIES[rotary]).to(dtype).double()
    x = torch.randn(B, Q, 32).to(dtype).double()
    mask = masks.causal() & masks.padding([5, 3])
    expected, layer = wide(x, mask=mask), wide.to(dtype)
    narrow, attended = layer(x.to(dtype), mask=mask), layer.attend(x.to(dtype), mask=mask)
    for answer in (narrow, attended.output):
        assert answer.dtype == dtype
        torch.testing.assert_close(answer.double(), expected, atol=tolerance, rtol=0)
    assert attended.weights.dtype == dtype


def test_empty_sequences_have_an_answer():
    layer = randomized(MultiHeadAttention(E, H))
    assert layer(torch.randn(0, Q, E)).shape == (0, Q, E)
    assert layer(torch.randn(B, 0, E), mask=masks.causal()).shape == (B, 0, E)
    nothing = torch.randn(B, 0, E)
    for output in (layer(torch.randn(B, Q, E), nothing), layer.attend(torch.randn(B, Q, E), nothing).output):
        torch.testing.assert_close(output, layer.output.bias.expand(B, Q, E))


def test_the_names_of_the_weights_are_those_of_the_parts():
    names = [f"{part}.{kind}" for part in ("to_query", "to_key", "to_value", "output") for kind in ("weight", "bias")]
    assert list(MultiHeadAttention(E, H, rotary=Rotary()).state_dict()) == names


X = torch.zeros(2, 5, 24, dtype=torch.float64)
WRONG_OPTIONS = {
    "heads that do not divide": (lambda: MultiHeadAttention(24, 5), "5 heads do not divide a width of 24"),
    "no heads": (lambda: MultiHeadAttention(24, 0), "heads is 0"),
    "half a width": (lambda: MultiHeadAttention(2.5, 1), "width is 2.5"),
    "key heads": (lambda: MultiHeadAttention(24, 4, key_heads=3), "3 key heads cannot serve 4 heads"),
    "dropout of 1": (lambda: MultiHeadAttention(24, 4, dropout=1.0), "dropout is 1.0"),
    "negative dropout": (lambda: MultiHeadAttention(24, 4, dropout=-0.1), "dropout is -0.1"),
    "source width": (lambda: MultiHeadAttention(24, 4, source_width=0), "source_width is 0"),
    "rotary of odd heads": (lambda: MultiHeadAttention(20, 4, rotary=Rotary()), "rotated width of 5"),
    "rotary too wide": (lambda: MultiHeadAttention(24, 4, rotary=Rotary(width=8)), "rotary width of 8 in heads of 6"),
    "rotary of odd width": (lambda: Rotary(width=3), "rotated width of 3"),
    "rotary base": (lambda: Rotary(base=0), "base is 0"),
    "rotary scaling": (lambda: Rotary(scaling=4.0), "scaling is 4.0"),
    "rotary by name": (lambda: MultiHeadAttention(24, 4, rotary=True), "rotary is True"),
    "rotary and source width": (lambda: MultiHeadAttention(24, 4, rotary=Rotary(), source_width=24), "source_width=24"),
    "rotary and a source": (lambda: MultiHeadAttention(24, 4, rotary=Rotary())(X, X), "one sequence"),
    "single head, no width": (lambda: SelfAttention(0), "width is 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_OPTIONS)
def test_wrong_options_are_named(case):
    call, says = WRONG_OPTIONS[case]
    with pytest.raises(OptionError) as caught:
        call()
    assert says in str(caught.value)


def layer(**options):
    return MultiHeadAttention(24, 4, **options)


def flags(*shape):
    return torch.ones(*shape, dtype=torch.bool)


WRONG_INPUT = {
    "a list": (lambda: layer()([[1.0]]), DtypeError, "x is a list"),
    "token ids": (lambda: layer()(torch.zeros(2, 5, 24, dtype=torch.int64)), DtypeError, "torch.int64"),
    "one sequence": (lambda: layer()(X[0]), ShapeError, "(5, 24); it must be (batch, tokens, 24). For a single"),
    "width": (lambda: layer()(X[..., :20]), ShapeError, "(2, 5, 20); it must be (batch, tokens, 24)"),
    "source width": (lambda: layer(source_width=10)(X, X), ShapeError, "source has shape (2, 5, 24)"),
    "no source": (lambda: layer(source_width=10)(X), ShapeError, "a source of 10"),
    "batches": (lambda: layer()(X, X[:1]), ShapeError, "x (2, 5, 24) and source (1, 5, 24)"),
    "float mask": (lambda: layer()(X, mask=torch.zeros(5, 5)), DtypeError, "torch.float64; a mask is boolean"),
    "0/1 mask": (lambda: layer()(X, mask=torch.ones(5, 5).int()), DtypeError, "masks.from_binary"),
    "NumPy mask": (lambda: layer()(X, mask=np.ones((5, 5), bool)), DtypeError, "mask is a ndarray"),
    "mask of NumPy": (lambda: layer()(X, mask=masks.given(np.ones((5, 5), bool))), DtypeError, "different libraries"),
    "mask of batch and keys": (lambda: layer()(X, mask=flags(2, 5)), ShapeError, "masks.keys(mask)"),
    "mask of batch, queries, keys": (lambda: layer()(X, mask=flags(2, 5, 5)), ShapeError, "mask[:, None]"),
    "mask of other keys": (lambda: layer()(X, mask=flags(5, 6)), ShapeError, "(5, 6), which does not fit the map"),
    "mask of five axes": (lambda: layer()(X, mask=flags(1, 2, 4, 5, 5)), ShapeError, "(1, 2, 4, 5, 5)"),
    "keys of other length": (lambda: layer()(X, mask=masks.keys(flags(2, 6))), ShapeError, "6 keys and there are 5"),
    "keys of other batch": (lambda: layer()(X, mask=masks.keys(flags(3, 5))), ShapeError, "(3,)"),
    "offsets of other batch": (lambda: layer()(X, mask=masks.causal(torch.zeros(3, dtype=int))), ShapeError, "(3,)"),
    "given of other batch": (lambda: layer()(X, mask=masks.given(flags(3, 1, 5, 5))), ShapeError, "(3, 1, 5, 5)"),
    "single head, width": (lambda: SelfAttention(8)(X), ShapeError, "(2, 5, 24); it must be (.., tokens, 8)"),
    "single head, float mask": (lambda: SelfAttention(24)(X, mask=torch.zeros(5, 5)), DtypeError, "a mask is boolean"),
    "single head, keys": (lambda: SelfAttention(24)(X, mask=flags(2, 5)), ShapeError, "masks.keys(mask)"),
    "matrices that differ": (
        lambda: SelfAttention.of(torch.zeros(4, 3), torch.zeros(4, 2), torch.zeros(4, 3)), ShapeError, "W_k (4, 2)",
    ),
    "matrices of lists": (lambda: SelfAttention.of([[1.0]], [[1.0]], [[1.0]]), DtypeError, "W_q is a list"),
}  # fmt: skip


def test_a_mask_of_two_axes_is_queries_by_keys_whatever_the_batch():
    """A batch that happens to be as large as the text is long must not change the meaning of a mask, or refuse it."""
    x, mask = torch.randn(5, 5, 24, dtype=torch.float64), torch.tril(flags(5, 5))
    attention = layer().double()
    torch.testing.assert_close(attention(x, mask=mask), attention(x, mask=masks.causal()))
    torch.testing.assert_close(attention(x, mask=mask)[:3], attention(x[:3], mask=mask))


@pytest.mark.parametrize("mask", [masks.padding([5, 3]), masks.causal() & masks.padding([5, 3])])
def test_padding_may_hold_anything(mask):
    """NaN in a token that nobody sees reaches no other token, by either way, nor their gradients."""
    attention, x = layer().double(), torch.randn(2, 5, 24, dtype=torch.float64)
    expected = attention(x, mask=mask)
    x[1, 3:] = torch.nan
    x.requires_grad_()
    single = SelfAttention(24).double()
    for output in (
        attention(x, mask=mask), attention.attend(x, mask=mask).output, single(x, mask=mask),
        single.attend(x, mask=mask).output,
    ):  # fmt: skip
        assert torch.isfinite(output[0]).all()
        assert torch.isfinite(output[1, :3]).all()
    torch.testing.assert_close(attention(x, mask=mask)[1, :3], expected[1, :3])
    attention(x, mask=mask)[0].sum().backward()
    assert torch.isfinite(x.grad[0]).all()


@pytest.mark.parametrize("case", WRONG_INPUT)
def test_wrong_input_is_answered_with_its_numbers(case):
    call, error, says = WRONG_INPUT[case]
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, RegardError)
    assert says in str(caught.value)


def test_a_refused_mask_leaves_the_cache_alone():
    attention, cache = MultiHeadAttention(E, H), KeyValueCache()
    with pytest.raises(ShapeError):
        attention(torch.randn(B, Q, E), mask=flags(B, Q), cache=cache)
    assert cache.length == 0


def test_single_head_has_the_lesson_numbers():
    np.random.seed(42)
    X, W_q, W_k, W_v = (torch.from_numpy(np.random.randn(*shape)) for shape in ((3, 4), (4, 3), (4, 3), (4, 3)))
    single = SelfAttention.of(W_q, W_k, W_v)
    expected = [
        [0.81995736, 0.02616278, 0.15387986],
        [0.02856435, 0.0325557, 0.93887995],
        [0.14520511, 0.74423134, 0.11056355],
    ]
    attended = single.attend(X)
    np.testing.assert_allclose(attended.weights.detach(), expected, atol=1e-8)
    np.testing.assert_allclose(attended.output.detach(), np.asarray(expected) @ (X @ W_v).numpy(), atol=1e-7)
    torch.testing.assert_close(single(X), attended.output)
    assert [name for name, _ in single.named_parameters()] == ["W_q", "W_k", "W_v"]
    assert single.W_q.data_ptr() != W_q.data_ptr()


@pytest.mark.parametrize("mask", [None, masks.causal(), masks.padding([5, 0])])
def test_single_head_batched_with_its_own_value_width(mask):
    single, x = SelfAttention(6, key_width=3, value_width=8), torch.randn(2, 5, 6, requires_grad=True)
    attended, allowed = single.attend(x, mask=mask), np.ones((2, 5, 5), bool)
    if mask is not None:
        allowed = np.broadcast_to(mask.dense(5), (2, 5, 5))
    q, k, v = (np.asarray((x @ W).detach()) for W in (single.W_q, single.W_k, single.W_v))
    powers = np.exp(q @ k.swapaxes(-1, -2) / math.sqrt(3)) * allowed
    weights = powers / np.maximum(powers.sum(-1, keepdims=True), 1e-300)
    np.testing.assert_allclose(attended.weights.detach(), weights, atol=1e-12)
    for output in (attended.output, single(x, mask=mask)):
        assert output.shape == (2, 5, 8)
        np.testing.assert_allclose(output.detach(), weights @ v, atol=1e-12)
    single(x, mask=mask).sum().backward()
    assert torch.isfinite(x.grad).all()
