"""Feed-forward and norms against their formulas in NumPy."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from regard.errors import DtypeError, OptionError, ShapeError
from regard.model import FeedForward, make_norm

pytestmark = pytest.mark.usefixtures("float64")
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "swiglu": lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_feed_forward_is_its_formula(activation, bias):
    layer, x = FeedForward(6, 10, activation=activation, bias=bias), torch.randn(2, 3, 6)
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    state = {name: tensor.numpy() for name, tensor in layer.state_dict().items()}
    linear = lambda x, name: x @ state[f"{name}.weight"].T + state.get(f"{name}.bias", 0.0)  # noqa: E731
    hidden = ACTIVATIONS[activation](linear(x.numpy(), "to_hidden"))
    if activation == "swiglu":
        hidden = hidden * linear(x.numpy(), "to_gated")
    np.testing.assert_allclose(layer(x).detach(), linear(hidden, "output"), atol=1e-12)
    assert len(state) == (3 if activation == "swiglu" else 2) * (2 if bias else 1)


def test_hidden_is_four_times_the_width_unless_given():
    assert FeedForward(6).to_hidden.weight.shape == (24, 6)


def test_dropout_falls_on_the_hidden_columns():
    layer, x = FeedForward(4, 1000, dropout=0.4), torch.randn(1, 1, 4)
    seen = []
    layer.output.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    layer(x), layer.eval()(x)
    dropped, whole = seen
    assert 0.3 < (dropped[whole > 0] == 0).double().mean() < 0.5
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], whole[kept] / 0.6)


def test_norms_are_their_formulas():
    x = torch.randn(2, 3, 6) * 5 + 2
    layer, rms = make_norm("layer", 6, eps=0.1), make_norm("rms", 6, eps=0.1)
    for norm in (layer, rms):
        for parameter in norm.parameters():
            nn.init.normal_(parameter)
    a = x.numpy()
    centred = (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 0.1)
    np.testing.assert_allclose(layer(x).detach(), centred * layer.weight.detach().numpy() + layer.bias.detach().numpy())
    scaled = a / np.sqrt((a**2).mean(-1, keepdims=True) + 0.1)
    np.testing.assert_allclose(rms(x).detach(), scaled * rms.weight.detach().numpy())
    assert make_norm("layer", 6, bias=False).bias is None


WRONG = {
    "activation": (
        lambda: FeedForward(4, activation="elu"),
        OptionError,
        "activation is 'elu'; it must be one of 'relu'",
    ),
    "hidden": (lambda: FeedForward(4, 0), OptionError, "hidden is 0"),
    "width": (lambda: FeedForward(-4), OptionError, "width is -4"),
    "dropout": (lambda: FeedForward(4, dropout=1.5), OptionError, "dropout is 1.5"),
    "dropout by name": (lambda: FeedForward(4, dropout="much"), OptionError, "dropout is 'much'"),
    "norm": (lambda: make_norm("group", 4), OptionError, "norm is 'group'; it must be one of 'layer', 'rms'"),
    "norm width": (lambda: make_norm("rms", 0), OptionError, "width is 0"),
    "eps": (lambda: make_norm("layer", 4, eps=-1.0), OptionError, "eps is -1.0"),
    "x": (lambda: FeedForward(4)(torch.zeros(2, 3, 5)), ShapeError, "(2, 3, 5); it must be (batch, tokens, 4)"),
    "list": (lambda: FeedForward(4)([1.0]), DtypeError, "x is a list"),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input_is_answered_with_its_numbers(case):
    call, error, says = WRONG[case]
    with pytest.raises(error) as caught:
        call()
    assert says in str(caught.value)
