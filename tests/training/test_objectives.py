"""Cross-entropy with smoothing, all at once and in chunks, and R-Drop: against the formula, in float64."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from regard.errors import OptionError, ShapeError
from regard.training.objectives import IGNORED, judged, projected_loss, r_drop, right, smoothed, twice_drawn

# T tokens, E width, V pieces
T, E, V = 7, 5, 11


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def targets():
    wanted = torch.randint(0, V, (T,))
    wanted[2] = wanted[5] = IGNORED
    return wanted


def by_hand(logits, targets, smoothing):
    """−Σ q log p with q = (1 − s) one-hot + s / V."""
    total = 0.0
    for row, wanted in zip(logits.double().tolist(), targets.tolist(), strict=True):
        if wanted == IGNORED:
            continue
        log_sum = math.log(sum(math.exp(x) for x in row))
        for piece, x in enumerate(row):
            share = (1 - smoothing) * (piece == wanted) + smoothing / len(row)
            total += share * (log_sum - x)
    return total


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_smoothed_is_the_formula(targets, smoothing):
    logits = torch.randn(T, V, dtype=torch.float64)
    assert float(smoothed(logits, targets, smoothing)) == pytest.approx(by_hand(logits, targets, smoothing), rel=1e-12)


def test_smoothed_takes_any_axes_and_is_what_pytorch_has(targets):
    logits, wanted = torch.randn(2, T, V), torch.stack([targets, targets.flip(0)])
    expected = functional.cross_entropy(
        logits.flatten(0, 1), wanted.flatten(), label_smoothing=0.2, reduction="sum", ignore_index=IGNORED
    )
    torch.testing.assert_close(smoothed(logits, wanted, 0.2), expected)


def test_half_precision_is_summed_in_float32(targets):
    logits = torch.randn(T, V).bfloat16()
    found = smoothed(logits, targets, 0.1)
    assert found.dtype == torch.float32
    assert float(found) == pytest.approx(by_hand(logits, targets, 0.1), rel=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("chunk", [1, 3, T, 100])
def test_projected_loss_and_its_gradients_are_those_of_the_formula(targets, chunk, bias):
    given = [torch.randn(T, E), torch.randn(V, E), *([torch.randn(V)] if bias else [])]
    ours, plain = ([one.double().requires_grad_() for one in given] for _ in range(2))
    found = projected_loss(ours[0], ours[1], ours[2] if bias else None, targets, smoothing=0.1, chunk=chunk)
    expected = smoothed(functional.linear(*plain), targets, 0.1)
    torch.testing.assert_close(found, expected)
    for a, b in zip(torch.autograd.grad(found * 3, ours), torch.autograd.grad(expected * 3, plain), strict=True):
        torch.testing.assert_close(a, b)


def test_projected_loss_passes_gradcheck(targets):
    given = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((T, E), (V, E), (V,))]
    assert torch.autograd.gradcheck(lambda v, w, b: projected_loss(v, w, b, targets, smoothing=0.1, chunk=3), given)


def test_projected_loss_without_gradients_is_the_same(targets):
    vectors, weight = torch.randn(T, E), torch.randn(V, E, requires_grad=True)
    with torch.no_grad():
        found = projected_loss(vectors, weight, None, targets, smoothing=0.1, chunk=2)
    torch.testing.assert_close(found, projected_loss(vectors, weight, None, targets, smoothing=0.1).detach())


def test_projected_loss_under_autocast_has_products_in_bfloat16_and_sums_in_float32(targets):
    vectors, weight = torch.randn(T, E, requires_grad=True), torch.randn(V, E, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        found = projected_loss(vectors, weight, None, targets, smoothing=0.1, chunk=3)
    found.backward()
    exact = smoothed((vectors @ weight.T).double(), targets, 0.1)
    found = found.detach()
    assert found.dtype == vectors.grad.dtype == weight.grad.dtype == torch.float32
    assert float(found) != float(exact.detach())
    assert float(found) == pytest.approx(float(exact.detach()), rel=2e-2)
    plain = torch.autograd.grad(exact, weight)[0]
    torch.testing.assert_close(weight.grad, plain, rtol=0.1, atol=0.05)


# PyTorch's compiler itself makes an instance of the function, of which PyTorch then warns.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_projected_loss_is_compiled_as_one_graph(targets):
    given = [torch.randn(*shape, requires_grad=True) for shape in ((T, E), (V, E), (V,))]
    compiled = torch.compile(
        lambda v, w, b: projected_loss(v, w, b, targets, smoothing=0.1, chunk=3), backend="aot_eager", fullgraph=True
    )
    for a, b in zip(
        torch.autograd.grad(compiled(*given), given),
        torch.autograd.grad(projected_loss(*given, targets, smoothing=0.1, chunk=3), given),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_batches_of_other_sizes_are_not_compiled_anew():
    made = []

    def backend(graph, given):
        made.append(graph)
        return graph.forward

    weight = torch.randn(V, E)
    compiled = torch.compile(lambda v, t: projected_loss(v, weight, None, t), backend=backend, fullgraph=True)
    for size in (7, 9, 12, 40, 23):
        vectors, wanted = torch.randn(size, E), torch.randint(0, V, (size,))
        torch.testing.assert_close(compiled(vectors, wanted), smoothed(vectors @ weight.T, wanted))
    assert len(made) == 2  # one for the first size, one for all others


def test_no_target_at_all_is_zero_and_has_gradients_of_zero():
    vectors, weight = torch.randn(T, E, requires_grad=True), torch.randn(V, E, requires_grad=True)
    nothing = torch.full((T,), IGNORED)
    for found in (
        projected_loss(vectors, weight, None, nothing, smoothing=0.1, chunk=3),
        smoothed(vectors @ weight.T, nothing, 0.1),
        twice_drawn(vectors, vectors * 2, weight, None, nothing, smoothing=0.1, alpha=5, chunk=3),
    ):
        assert float(found.detach()) == 0
        for slope in torch.autograd.grad(found, (vectors, weight)):
            assert not slope.any()


def test_r_drop_is_the_symmetric_divergence(targets):
    first, second = torch.randn(2, T, V, dtype=torch.float64)
    p, q = first.softmax(-1), second.softmax(-1)
    apart = (p * (p / q).log()).sum(-1) + (q * (q / p).log()).sum(-1)
    expected = 5 * 0.5 * apart[targets != IGNORED].sum()
    torch.testing.assert_close(r_drop(first, second, targets, 5.0), expected)
    assert float(r_drop(first, first, targets, 5.0)) == 0


def test_twice_drawn_is_the_mean_of_both_and_half_of_r_drop(targets):
    guess = nn.Linear(E, V).double()
    first, second = (torch.randn(T, E, dtype=torch.float64, requires_grad=True) for _ in range(2))
    found = twice_drawn(first, second, guess.weight, guess.bias, targets, smoothing=0.1, alpha=2.0, chunk=3)
    one, other = guess(first), guess(second)
    expected = (smoothed(one, targets, 0.1) + smoothed(other, targets, 0.1) + r_drop(one, other, targets, 2.0)) / 2
    torch.testing.assert_close(found, expected)
    given = (first, second, *guess.parameters())
    for a, b in zip(torch.autograd.grad(found, given), torch.autograd.grad(expected, given), strict=True):
        torch.testing.assert_close(a, b)


def test_judged_counts_what_is_likeliest(targets):
    vectors, guess = torch.randn(T, E), nn.Linear(E, V)
    logits = guess(vectors)
    wanted = torch.where(targets == IGNORED, IGNORED, logits.argmax(-1))
    wanted[0] = logits[0].argmin()
    loss, found = judged(vectors, guess.weight, guess.bias, wanted, chunk=2)
    torch.testing.assert_close(loss, smoothed(logits, wanted))
    assert int(found) == int(right(logits, wanted)) == T - 3


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: smoothed(torch.zeros(2, 3), torch.zeros(3).long()), ShapeError, r"\(3,\).*\(2, 3\)"),
        (lambda: smoothed(torch.zeros(2, 3), torch.zeros(2).long(), 1.0), OptionError, "smoothing is 1.0"),
        (
            lambda: projected_loss(torch.zeros(2, 3), torch.zeros(5, 4), None, torch.zeros(2).long()),
            ShapeError,
            r"\(2, 3\).*\(5, 4\)",
        ),
        (
            lambda: projected_loss(torch.zeros(2, 3), torch.zeros(5, 3), None, torch.zeros(2).long(), chunk=0),
            OptionError,
            "chunk is 0",
        ),
        (lambda: r_drop(torch.zeros(2, 3), torch.zeros(2, 4), torch.zeros(2).long(), 1), ShapeError, r"\(2, 4\)"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, says):
    with pytest.raises(error, match=says):
        call()
