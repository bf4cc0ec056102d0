"""Rollout, relevance, value norms and gradients, each against the dense formula in float64."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
import torch

from regard.errors import DtypeError, OptionError, ShapeError
from regard.formula import masks, threads
from regard.record import Layer, Record, Run, Tokens
from regard.record.map import Map
from regard.record.measures import (
    attention_gradient,
    gradient_received,
    importance,
    relevance,
    rollout,
    value_received,
    value_top,
    value_weighted,
)
from tests.record import measures_cases as cases
from tests.record.measures_cases import CASES, N, case, each_library, each_tiling, numbers

library, tiles = each_library, each_tiling  # fixtures, by the names that tests ask for them


def dense_rollout(dense, residual, heads=slice(None)):
    whole = np.eye(N)
    for layer in dense:
        mixing = residual * np.eye(N) + (1 - residual) * layer.weights[heads].mean(0)
        total = mixing.sum(-1, keepdims=True)
        whole = mixing / np.where(total == 0, 1, total) @ whole
    return whole


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("residual", [0.5, 0.0, 0.9])
def test_rollout_is_the_product_of_the_layers(library, name, residual, tiles):
    record, dense = case(name, library, layers=3)
    found = numbers(rollout(record, [0, 7, -1], residual=residual))
    np.testing.assert_allclose(found, dense_rollout(dense, residual)[[0, 7, -1]], atol=1e-5)


def test_rollout_of_chosen_layers_and_heads(library, tiles):
    record, dense = case("grouped", library, layers=4)
    expected = dense_rollout([dense[0], dense[2]], 0.5, [1, 3])
    np.testing.assert_allclose(
        numbers(rollout(record, slice(15, 18), layers=[2, 0], heads=[1, 3])), expected[15:18], atol=1e-5
    )
    np.testing.assert_allclose(numbers(rollout(record, 5, residual=1)), np.eye(N)[[5]])


def test_rollout_head_by_head_is_the_same(library, monkeypatch, tiles):
    record, dense = case("sinks", library, layers=2)
    monkeypatch.setattr("regard.record.measures.flow.TOGETHER", 0)
    np.testing.assert_allclose(numbers(rollout(record, range(N))), dense_rollout(dense, 0.5), atol=1e-5)


@pytest.mark.parametrize("name", ["grouped", "padded", "sinks", "turned round"])
def test_relevance_is_the_product_of_the_layers(library, name, tiles):
    record, dense = case(name, library, layers=2)
    whole = np.eye(N)
    for layer in dense:
        slopes = layer.gradients @ np.swapaxes(layer.values, -1, -2)
        whole = (np.eye(N) + np.maximum(layer.weights * slopes, 0).mean(0)) @ whole
    np.testing.assert_allclose(numbers(relevance(record, [2, 20])), whole[[2, 20]], atol=1e-4)


def test_rollout_says_what_it_cannot_do():
    record, _ = case("causal", np.asarray, layers=2)
    (first, second) = record.layers
    cross = Layer(**{**vars_of(second), "kind": "cross", "index": 2})
    with pytest.raises(OptionError, match=r"kinds cross, decoder.*choose layers=\[0, 1\] \(decoder\)"):
        rollout(Record([Run(layers=(first, second, cross))]), 0)
    with pytest.raises(OptionError, match=r"kinds cross; attention is rolled out through self-attention of one kind\."):
        rollout(Record([Run(layers=(cross,))]), 0)
    assert rollout(Record([Run(layers=(first, second, cross))]), 0, layers=[0, 1]).shape == (1, N)
    late = Map(queries=first.map.queries[:, -1:], keys=first.map.keys, scale=1.0, offset=N - 1)
    with pytest.raises(ShapeError, match=rf"layer 0 is 1 × {N}, queries × keys"):
        rollout(Record([Run(layers=(Layer(**{**vars_of(first), "maps": (late,)}), second))]), 0)
    with pytest.raises(OptionError, match=r"residual is 1\.5"):
        rollout(record, 0, residual=1.5)
    with pytest.raises(OptionError, match="rows are 23; choose at least one, out of 0 to 22"):
        rollout(record, 23)
    with pytest.raises(OptionError, match=r"heads are \[9\]"):
        rollout(record, 0, heads=[9])
    with pytest.raises(OptionError, match=r"layers are \[\]"):
        rollout(record, 0, layers=[])


def vars_of(layer):
    return {name: getattr(layer, name) for name in ("name", "kind", "index", "maps", "queries", "keys", "head_numbers")}


@pytest.mark.parametrize("name", CASES)
def test_value_norms(library, name, tiles):
    record, (dense,) = case(name, library)
    layer = record.layers[0]
    exact = dense.weights * dense.norms[:, None, :]
    for subject, expected in ((layer, exact), (layer.heads[1], exact[1])):
        found = value_weighted(subject, slice(4, 19), slice(2, 11))
        np.testing.assert_allclose(numbers(found), expected[..., 4:19, 2:11], atol=1e-5)
        np.testing.assert_allclose(numbers(value_received(subject)), expected.sum(-2), atol=1e-5)
        top = value_top(subject, 4, slice(3, 20))
        np.testing.assert_allclose(numbers(top.weights), -np.sort(-expected[..., 3:20, :], axis=-1)[..., :4], atol=1e-5)
        keys = numbers(top.keys)
        there = np.take_along_axis(expected[..., 3:20, :], np.maximum(keys, 0), axis=-1)
        np.testing.assert_allclose(np.where(keys < 0, 0, there), numbers(top.weights), atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_weights(library, name, tiles):
    record, (dense,) = case(name, library)
    layer = record.layers[0]
    exact = dense.weights * (dense.gradients @ np.swapaxes(dense.values, -1, -2))
    for subject, expected in ((layer, exact), (layer.heads[1], exact[1])):
        found = attention_gradient(subject, slice(4, 19), slice(2, 11))
        np.testing.assert_allclose(numbers(found), expected[..., 4:19, 2:11], atol=1e-5)
        np.testing.assert_allclose(numbers(gradient_received(subject)), np.maximum(expected, 0).sum(-2), atol=1e-4)


def test_gradients_are_those_of_autograd():
    """A weight's own gradient, and that of a gate on each head, as autograd finds them on the dense map."""
    record, (dense,) = case("grouped", lambda array: torch.tensor(np.asarray(array)))
    (layer,) = record.layers
    weights, gates = (torch.tensor(array, requires_grad=True) for array in (dense.weights, np.ones(4)))
    output = weights @ torch.tensor(dense.values) * gates[:, None, None]
    output.retain_grad()
    torch.logsumexp(output.flatten() * 3, dim=0).backward()
    learned = replace(layer.map, gradients=output.grad.float())
    seen = Layer(**{**vars_of(layer), "maps": (learned,)})
    expected = (weights * weights.grad).detach()
    torch.testing.assert_close(attention_gradient(seen), expected.float(), atol=1e-6, rtol=1e-4)
    np.testing.assert_allclose(importance(seen)["importance"], numbers(gates.grad.abs()), rtol=1e-4)


def test_what_was_not_kept_is_said():
    bare = Map(queries=np.zeros((2, 3, 4), "f"), keys=np.zeros((2, 3, 4), "f"), scale=1.0)
    tokens = (Tokens.of("abc"),)
    layer = Layer(name="l.0", kind="decoder", index=0, maps=(bare,), queries=tokens, keys=tokens, head_numbers=(0, 1))
    record = Record([Run(layers=(layer,))])
    with pytest.raises(OptionError, match=r"layer 0 \(l\.0\).*regard\.watch\(model, values=True\)"):
        value_weighted(layer.heads[0])
    for ask in (attention_gradient, gradient_received):
        with pytest.raises(OptionError, match=r"values and gradients were not kept.*watch\(model, gradients=True\)"):
            ask(layer)
    with pytest.raises(OptionError, match="not kept"):
        relevance(record, 0)
    with pytest.raises(DtypeError, match="one head or on a layer, and this is a Mean"):
        value_received(record.mean())
    with pytest.raises(OptionError, match="count is 0"):
        value_top(case("plain", np.asarray)[0].layers[0], 0)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_out_of_a_file(tmp_path, dtype):
    """What a record file gives: memory-mapped arrays narrower than float32; all sums are float32's."""
    record, _ = case("causal", np.asarray)
    (layer,) = record.layers
    narrow, wide = {}, {}
    for name in ("queries", "keys", "values", "gradients", "value_norms"):
        array = getattr(layer.map, name).astype(dtype)
        array.tofile(tmp_path / name)
        narrow[name] = np.memmap(tmp_path / name, dtype=dtype, mode="r", shape=array.shape)
        wide[name] = array.astype(np.float64)
    half, full = (
        Record([Run(layers=(Layer(**{**vars_of(layer), "maps": (Map(scale=0.7, mask=masks.causal(), **arrays),)}),))])
        for arrays in (narrow, wide)
    )
    np.testing.assert_allclose(rollout(half, [9, 20]), rollout(full, [9, 20]), atol=1e-6)
    for measure in (value_received, gradient_received):
        np.testing.assert_allclose(measure(half.layers[0]), measure(full.layers[0]), atol=1e-4)


def test_a_large_map_is_not_held(monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 2)
    size, rng = 8192, np.random.default_rng(0)
    arrays = {name: rng.normal(size=(1, size, 8)).astype("f") for name in ("queries", "keys", "values", "gradients")}
    made = Map(**arrays, scale=0.3, mask=masks.causal(), value_norms=np.ones((1, size), "f"))
    tokens = (Tokens.of(["a", "b"] * (size // 2)),)
    layer = Layer(name="l", kind="decoder", index=0, maps=(made,), queries=tokens, keys=tokens, head_numbers=(0,))
    record = Record([Run(layers=(layer, Layer(**{**vars_of(layer), "index": 1})))])
    for call in (
        lambda: rollout(record, [size - 1, 17]),
        lambda: relevance(record, [size - 1]),
        lambda: gradient_received(layer.heads[0]),
        lambda: value_top(layer.heads[0], 3, slice(size - 2000, size)),
    ):
        made.kept.clear()
        cases.assert_never_square(size, call)
