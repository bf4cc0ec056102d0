"""What a caller may get wrong: an error of ours, with the caller's numbers in it, before anything is computed."""

import numpy as np
import pytest
import torch

from regard.errors import DtypeError, OptionError, RegardError, ShapeError
from regard.formula import attend, scores, statistics, weights


def array(*shape):
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            (array(2, 5, 8), array(2, 5, 4), array(2, 5, 4)),
            r"query \(2, 5, 8\) and key \(2, 5, 4\).*last axis.*head width",
        ),
        ((array(5, 8), array(6, 8), array(5, 8)), r"value has shape \(5, 8\) and there are 6 keys"),
        ((array(8), array(6, 8), array(6, 8)), r"query has shape \(8,\).*two axes"),
        ((array(5, 8), array(6, 8), array(6)), r"value has shape \(6,\)"),
        ((array(2, 5, 8), array(3, 5, 8), array(3, 5, 8)), r"\(2,\).*\(3,\).*heads"),
        ((array(2, 6, 5, 8), array(2, 4, 5, 8), array(2, 4, 5, 8)), r"\(2, 6\).*\(2, 4\).*divide"),
        ((array(2, 6, 5, 8), array(3, 6, 5, 8), array(3, 6, 5, 8)), r"\(2, 6\).*\(3, 6\)"),
        ((array(4, 5, 8), array(4, 5, 8), array(3, 5, 8)), r"the map \(4,\) and value \(3,\)"),
    ],
)
def test_shapes_that_do_not_fit(arguments, words):
    with pytest.raises(ShapeError, match=words):
        attend(*arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[1.0]], array(1, 1), array(1, 1)), r"query is a list.*numpy\.asarray\(query\)"),
        ((array(1, 1), array(1, 1), [[1.0]]), "value is a list"),
        ((array(1, 1), torch.zeros(1, 1), array(1, 1)), "query from numpy, key from torch"),
        ((array(1, 1) > 0, array(1, 1), array(1, 1)), "query has dtype bool"),
        ((array(1, 1) + 1j, array(1, 1), array(1, 1)), "query has dtype complex64"),
        ((array(1, 1), array(1, 1), array(1, 1) > 0), "value has dtype bool"),
        ((None, array(1, 1), array(1, 1)), "query is a NoneType"),
        (("text", array(1, 1), array(1, 1)), "query is a str"),
        ((np.ma.masked_array(array(3, 4)), array(3, 4), array(3, 4)), "query is a MaskedArray"),
    ],
)
def test_things_of_the_wrong_kind(arguments, words):
    with pytest.raises(DtypeError, match=words):
        attend(*arguments)


@pytest.mark.parametrize(
    ("terms", "kind", "words"),
    [
        ({"scale": float("nan")}, OptionError, "scale is nan"),
        ({"scale": "big"}, DtypeError, "scale is 'big'"),
        ({"softcap": 0.0}, OptionError, r"softcap is 0\.0.*None for no cap"),
        ({"softcap": -1.0}, OptionError, r"softcap is -1\.0"),
        ({"bias": np.ones((5, 6), bool)}, DtypeError, "bias has dtype bool.*mask="),
        ({"bias": array(4, 6)}, ShapeError, r"bias has shape \(4, 6\).*\(2, 4, 5, 6\)"),
        ({"bias": [[0.0]]}, DtypeError, "bias is a list"),
        ({"sinks": array(3)}, ShapeError, r"sinks has shape \(3,\).*\(2, 4\).*one number for each head"),
        ({"sinks": array(2, 4, 1)}, ShapeError, r"sinks has shape \(2, 4, 1\)"),
    ],
)
def test_terms_that_make_no_sense(terms, kind, words):
    query, key = array(2, 4, 5, 8), array(2, 4, 6, 8)
    for call in (
        lambda: attend(query, key, key, **terms),
        lambda: weights(query, key, **terms),
        lambda: statistics(query, key, **terms),
    ):
        with pytest.raises(kind, match=words):
            call()


def test_a_rectangle_is_taken_by_slices_without_steps():
    with pytest.raises(OptionError, match=r"rows .* in steps of 2"):
        weights(array(4, 8), array(6, 8), rows=slice(0, 4, 2))
    with pytest.raises(DtypeError, match=r"rows is 3; .*rows=slice\(3, 4\)"):
        weights(array(4, 8), array(6, 8), rows=3)
    with pytest.raises(DtypeError, match="cols is 2"):
        weights(array(4, 8), array(6, 8), cols=2)


def test_a_learned_scale_does_not_lose_its_gradient_in_silence():
    query, scale = torch.zeros(3, 4), torch.tensor(0.5, requires_grad=True)
    for terms in ({"scale": scale}, {"softcap": scale}):
        with pytest.raises(DtypeError, match=r"is an array.*multiplied into the query"):
            attend(query, query, query, **terms)
    assert attend(query, query, query, scale=np.float32(0.5)).shape == (3, 4)


def test_arrays_on_two_devices():
    here, there = torch.zeros(3, 4), torch.zeros(3, 4, device="meta")
    with pytest.raises(DtypeError, match="query on cpu, key on meta"):
        attend(here, there, here)
    with pytest.raises(DtypeError, match="query on cpu, mask on meta"):
        attend(here, here, here, torch.ones(3, 3, dtype=torch.bool, device="meta"))


def test_every_error_has_one_base_and_the_usual_kind():
    for kind, usual in ((ShapeError, ValueError), (DtypeError, TypeError), (OptionError, ValueError)):
        assert issubclass(kind, RegardError)
        assert issubclass(kind, usual)
    with pytest.raises(RegardError):
        scores(array(2, 3), array(2, 4))
