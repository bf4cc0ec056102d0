"""Each name of the PyTorch lessons against torch.nn.functional and the NumPy lessons: values, gradients, masks."""

import builtins
import importlib
import sys

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from regard import lessons
from regard.errors import DtypeError, MissingExtra, OptionError, ShapeError, UnknownWord
from regard.lessons import torch as torch_lessons
from regard.lessons.torch import (
    MultiHeadAttention,
    MultiHeadSelfAttention,
    SimpleAttention,
    SingleHeadSelfAttention,
    create_causal_mask,
    create_padding_mask,
    plot_attention_weights,
    positional_encoding,
    scaled_dot_product_attention,
    self_attention,
    sentence_encoder,
    show_distribution,
    softmax,
)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def randn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def close(one, other, atol=1e-12):
    torch.testing.assert_close(one, other, rtol=0, atol=atol)


def test_the_names_are_those_of_numpy_and_three_layers():
    layers = {"SimpleAttention", "SingleHeadSelfAttention", "MultiHeadSelfAttention"}
    assert set(torch_lessons.__all__) == set(lessons.__all__) | layers


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_is_torchs(axis):
    x = randn(3, 4) * 100
    close(softmax(x, axis), F.softmax(x, axis))
    assert softmax([[1, 1]]).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_torchs(lead, masked):
    Q, K, V = randn(*lead, 5, 4), randn(*lead, 6, 4), randn(*lead, 6, 7)
    allowed = torch.rand(5, 6) < 0.6
    allowed[:, 0] = True
    for mask in (allowed, allowed.int(), allowed.double(), allowed.int().tolist()) if masked else (None,):
        output, weights = scaled_dot_product_attention(Q, K, V, mask)
        close(output, F.scaled_dot_product_attention(Q, K, V, attn_mask=allowed if masked else None))
        scores = Q @ K.mT / 2
        close(weights, F.softmax(scores.masked_fill(~allowed, -torch.inf) if masked else scores, -1))


def test_self_attention_is_torchs_with_its_gradient():
    leaves = [randn(*shape).requires_grad_() for shape in ((2, 5, 8), (8, 3), (8, 3), (8, 6))]
    X, W_q, W_k, W_v = leaves
    output, weights = self_attention(X, W_q, W_k, W_v, create_causal_mask(5))
    expected = F.scaled_dot_product_attention(X @ W_q, X @ W_k, X @ W_v, is_causal=True)
    close(output, expected)
    close(weights @ (X @ W_v), expected)
    direction = randn(*output.shape)
    ours = torch.autograd.grad((output * direction).sum(), leaves, retain_graph=True)
    theirs = torch.autograd.grad((expected * direction).sum(), leaves)
    for one, other in zip(ours, theirs, strict=True):
        close(one, other)
    through_weights = torch.autograd.grad((weights**2).sum(), leaves[:3])
    assert all(gradient.abs().sum() > 0 for gradient in through_weights)


def test_masks_are_numbers_to_add_and_torch_understands_them():
    never = -torch.inf
    assert create_causal_mask(3).tolist() == [[0, never, never], [0, 0, never], [0, 0, 0]]
    mask = create_padding_mask([[5, 2, 0], [0, 9, 9]])
    assert mask.tolist() == [[[0, 0, never]], [[never, 0, 0]]]
    assert create_padding_mask(torch.tensor([7, 0]), pad_token=7).tolist() == [[[never, 0]]]
    x = randn(2, 3, 4)
    both = (create_causal_mask(3) + mask).double()
    expected = F.scaled_dot_product_attention(x, x, x, attn_mask=both)
    output, _ = scaled_dot_product_attention(x, x, x, both)
    close(output[0], expected[0])
    assert not output[1, 0].any(), "a row that may attend to nothing"


@pytest.mark.parametrize("heads", [2, 3])
def test_a_padding_mask_lies_right_over_heads(heads):
    ids = torch.tensor([[1, 2, 3, 4], [1, 2, 0, 0]])
    x = randn(2, heads, 4, 5)
    output, weights = scaled_dot_product_attention(x, x, x, create_padding_mask(ids))
    close(output, F.scaled_dot_product_attention(x, x, x, attn_mask=(ids != 0)[:, None, None, :]))
    assert not weights[1, :, :, 2:].any()
    assert weights[0].all()


@pytest.mark.parametrize("never", [-torch.inf, -1e9, -1e4, torch.finfo(torch.float32).min])
def test_every_kind_of_never_is_a_mask(never):
    """Also in a row that may attend to nothing, and in float16, where −1e9 does not exist."""
    mask = torch.zeros(3, 3).masked_fill(torch.tensor([[0, 1, 1], [1, 1, 1], [0, 0, 0]]) == 1, never)
    for dtype in (torch.float64, torch.float16):
        x = randn(3, 4).to(dtype)
        output, weights = scaled_dot_product_attention(x, x, x, mask)
        assert weights[:2].tolist() == [[1, 0, 0], [0, 0, 0]]
        assert output[:2].tolist() == [x[0].tolist(), [0] * 4]


@pytest.mark.parametrize(
    "mask", [torch.full((3, 3), 0.5), torch.full((3, 3), torch.nan), torch.tensor([[-1, 0, 1]] * 3)]
)
def test_a_mask_of_no_kind_is_refused(mask):
    x = randn(3, 4)
    for call in (lambda: scaled_dot_product_attention(x, x, x, mask), lambda: SimpleAttention(4)(x, mask)):
        with pytest.raises(DtypeError, match="1 = may attend"):
            call()


def test_a_mask_of_zeros_is_read_by_its_kind():
    """A batch without padding has a padding mask of zeros, which must not forbid everything."""
    x, none = torch.randn(2, 3, 4), create_padding_mask([[5, 6, 7], [8, 9, 5]])
    for layer in (SimpleAttention(4), SingleHeadSelfAttention(4), MultiHeadSelfAttention(4, 2)):
        assert layer(x, none)[1].tolist() == layer(x)[1].tolist()
        assert not layer(x, torch.zeros(3, 3, dtype=torch.int64))[1].any()
        assert layer(x, create_causal_mask(3))[1].tolist() == layer(x, torch.ones(3, 3).tril())[1].tolist()
    assert scaled_dot_product_attention(x, x, x, none)[1].all()
    assert MultiHeadAttention(4, 2).attend(x, x, x, none)[1].all()


def test_simple_attention_has_its_matrices_written_out():
    layer, x = SimpleAttention(6).double(), randn(2, 5, 6)
    output, weights = layer(x, torch.ones(5, 5).tril())
    close(output, F.scaled_dot_product_attention(x @ layer.W_q, x @ layer.W_k, x @ layer.W_v, is_causal=True))
    assert weights.shape == (2, 5, 5)
    assert {name: tuple(part.shape) for name, part in layer.named_parameters()} == {
        "W_q": (6, 6), "W_k": (6, 6), "W_v": (6, 6),
    }  # fmt: skip


def test_single_head_is_linear_layers_and_attention():
    layer, x = SingleHeadSelfAttention(6).double(), randn(2, 5, 6)
    output, weights = layer(x)
    close(output, F.scaled_dot_product_attention(layer.W_q(x), layer.W_k(x), layer.W_v(x)))
    assert weights.shape == (2, 5, 5)
    close(layer(x[0])[0], output[0])


def theirs(layer):
    """torch.nn.MultiheadAttention with our layer's weights."""
    module = torch.nn.MultiheadAttention(layer.d_model, layer.num_heads, batch_first=True).double()
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([part.weight for part in (layer.W_q, layer.W_k, layer.W_v)]))
        module.in_proj_bias.copy_(torch.cat([part.bias for part in (layer.W_q, layer.W_k, layer.W_v)]))
        module.out_proj.weight.copy_(layer.W_o.weight)
        module.out_proj.bias.copy_(layer.W_o.bias)
    return module


def test_multi_head_attention_is_torchs():
    layer = MultiHeadAttention(12, 3).double()
    q, k, v = randn(2, 4, 12), randn(2, 5, 12), randn(2, 5, 12)
    ids = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    output, weights = layer.attend(q, k, v, create_padding_mask(ids))
    expected = theirs(layer)(q, k, v, key_padding_mask=ids == 0, average_attn_weights=False)
    close(output, expected[0])
    close(weights, expected[1])
    close(layer(q, k, v, create_padding_mask(ids)), output)
    assert layer.d_k == 4


def test_multi_head_self_attention_gives_weights_per_head():
    layer, x = MultiHeadSelfAttention(12, 3).double(), randn(2, 4, 12)
    output, weights = layer(x, torch.tril(torch.ones(4, 4)))
    expected = theirs(layer)(x, x, x, attn_mask=~torch.ones(4, 4).tril().bool(), average_attn_weights=False)
    close(output, expected[0])
    close(weights, expected[1])
    one, alone = layer(x[0], torch.ones(4, 4).tril()), (output[0], weights[0])
    close(one[0], alone[0])
    close(one[1], alone[1])


def test_layers_take_lists_and_whole_numbers_in_their_own_dtype():
    layer = MultiHeadSelfAttention(2, 1)
    output, _ = layer([[1, 0], [0, 1]])
    assert output.dtype == torch.float32
    close(output, layer(np.eye(2))[0])
    assert SimpleAttention(2).half()(torch.eye(2))[0].dtype == torch.float16


def test_a_layer_learns():
    layer = SingleHeadSelfAttention(4)
    x = torch.randn(8, 3, 4)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        loss = ((layer(x, create_causal_mask(3))[0] - x.roll(1, dims=1)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


def test_torch_lessons_give_what_numpy_lessons_give(rng):
    X = rng.normal(size=(2, 4, 6))
    ids = [[1, 2, 3, 0], [1, 0, 0, 0]]
    ours = scaled_dot_product_attention(X, X, X, create_causal_mask(4) + create_padding_mask(ids))
    numpys = lessons.scaled_dot_product_attention(
        X, X, X, lessons.create_causal_mask(4) + lessons.create_padding_mask(ids)
    )
    for one, other in zip(ours, numpys, strict=True):
        np.testing.assert_allclose(one.numpy(), other, atol=1e-12)
    table = positional_encoding(2000, 16)
    assert table.dtype == torch.float32
    np.testing.assert_allclose(table.numpy(), lessons.positional_encoding(2000, 16), atol=1e-6)
    layer, torch_layer = lessons.MultiHeadAttention(6, 2), MultiHeadAttention(6, 2).double()
    with torch.no_grad():
        for name in ("W_q", "W_k", "W_v", "W_o"):
            getattr(torch_layer, name).weight.copy_(torch.tensor(getattr(layer, name)).T)
            getattr(torch_layer, name).bias.zero_()
    np.testing.assert_allclose(torch_layer(X, X, X).detach().numpy(), layer(X, X, X), atol=1e-12)


def test_sentence_encoder_has_a_gradient_and_names_unknown_words():
    vectors = {"我": torch.randn(4, requires_grad=True), "AI": [1, 2, 3, 4], "学习": np.ones(4)}
    vector, weights = sentence_encoder("我 AI 学习", vectors)
    x = torch.stack([vectors["我"].detach().double(), torch.tensor([1.0, 2, 3, 4]).double(), torch.ones(4).double()])
    close(vector.detach(), F.scaled_dot_product_attention(x[None], x[None], x[None])[0].mean(dim=0), atol=1e-6)
    assert weights.shape == (3, 3)
    vector.sum().backward()
    assert vectors["我"].grad.abs().sum() > 0
    with pytest.raises(UnknownWord, match="猫"):
        sentence_encoder("我 猫", vectors)


def test_tensors_with_a_gradient_can_be_shown_and_drawn():
    weights = torch.eye(2, requires_grad=True)
    assert show_distribution(weights, ["我", "AI"]).splitlines() == ["我 → 我 100.0%", "AI → AI 100.0%"]
    figure = plot_attention_weights(torch.eye(2, requires_grad=True, dtype=torch.bfloat16), ["我", "AI"], "t")
    assert figure.axes[0].images[0].get_array().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: MultiHeadSelfAttention(8, 3), OptionError, "3 heads do not divide d_model 8"),
        (lambda x: SimpleAttention(0), OptionError, "dim is 0"),
        (lambda x: SimpleAttention(6)(x, None), ShapeError, r"\(2, 3, 4\).*6 is d_model"),
        (lambda x: MultiHeadAttention(4, 2)(x, x[:1, :, :3], x), ShapeError, r"k has shape \(1, 3, 3\)"),
        (lambda x: MultiHeadAttention(4, 2)(x[0], x, x), ShapeError, "batch axis"),
        (lambda x: scaled_dot_product_attention(x, x[:, :2], x), ShapeError, "2 keys"),
        (lambda x: scaled_dot_product_attention(torch.cat((x, x)), x, x), ShapeError, r"Q \(4, 3, 4\)"),
        (lambda x: scaled_dot_product_attention(x, x, x, torch.ones(2, 3)), ShapeError, r"\(2, 3\).*\(2, 3, 3\)"),
        (lambda x: scaled_dot_product_attention(x > 0, x, x), DtypeError, "Q has dtype"),
        (lambda x: softmax([[1.0], [1.0, 2.0]]), ShapeError, "x is no even list of numbers"),
        (lambda x: softmax({"a": 1.0}), DtypeError, "x is a dict"),
        (lambda x: create_padding_mask([[0.5]]), DtypeError, "whole numbers"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call(torch.zeros(2, 3, 4))


def test_without_pytorch_it_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == "torch" and not (rest and len(rest) > 3 and rest[3]):
            raise ImportError("No module named torch")
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, "regard.lessons.torch")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"pip install regard\[torch\]"):
        importlib.import_module("regard.lessons.torch")
