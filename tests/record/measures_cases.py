"""Records made by hand for the measures, each with its dense weights in float64 beside it."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from regard.formula import masks, positions, tiled
from regard.record import Layer, Record, Run, Tokens
from regard.record.map import Map
from regard.record.measures import repeats, standing, words
from tests import reference

LIBRARIES = {"numpy": np.asarray, "torch": lambda array: torch.tensor(np.asarray(array))}
if torch.cuda.is_available():
    LIBRARIES["torch-cuda"] = lambda array: torch.tensor(np.asarray(array), device="cuda")

N = 23  # tokens
TEXT = "the cat saw the dog and the dog saw the cat so the cat ran and the dog ran as well . ."
WORDS = [f" {word}" for word in TEXT.split()]

# name: heads, key heads, and what else shapes a weight, made by the library and from random numbers
CASES = {
    "plain": (3, 3, lambda lib, rng: {}),
    "causal": (3, 3, lambda lib, rng: {"mask": masks.causal()}),
    "grouped": (4, 2, lambda lib, rng: {"mask": masks.causal()}),
    "one key head": (3, 1, lambda lib, rng: {"mask": masks.causal(), "scale": 0.2}),
    "window": (2, 2, lambda lib, rng: {"mask": masks.causal() & masks.window(5, 0)}),
    "padded": (2, 2, lambda lib, rng: {"mask": masks.padding(17)}),
    "padded in front": (2, 2, lambda lib, rng: {"mask": masks.causal() & masks.keys(lib(np.arange(N) > 3))}),
    "ranges": (2, 2, lambda lib, rng: {"mask": masks.ranges(lib(np.arange(N) // 2), lib(np.arange(N) // 2 + 8))}),
    "segments": (2, 2, lambda lib, rng: {"mask": masks.causal() & masks.segments(lib(np.arange(N) // 9))}),
    "global": (2, 2, lambda lib, rng: {"mask": masks.window(2, 2) | masks.global_tokens([0])}),
    "turned round": (2, 2, lambda lib, rng: {"mask": ~masks.causal()}),  # the last row sees nothing
    "given": (2, 1, lambda lib, rng: {"mask": masks.given(lib(rng.random((2, N, N)) < 0.4))}),
    "given rows": (2, 2, lambda lib, rng: {"mask": masks.given(lib(rng.random((N, 1)) < 0.8)) & masks.causal()}),
    "bias": (2, 2, lambda lib, rng: {"bias": positions.bias.as_bias(lib(drawn(rng, 1, N, N)))}),
    "alibi": (3, 3, lambda lib, rng: {"mask": masks.causal(), "bias": positions.alibi(3)}),
    "t5": (3, 3, lambda lib, rng: {"bias": positions.t5(lib(drawn(rng, 8, 3)), both_ways=True)}),
    "distances": (2, 2, lambda lib, rng: {"bias": positions.by_distance(lib(drawn(rng, 2, 2 * N - 1)), 1 - N)}),
    "sinks": (2, 2, lambda lib, rng: {"mask": masks.causal(), "sinks": lib(np.asarray([0.5, 3.0], "f"))}),
    "softcap": (2, 2, lambda lib, rng: {"mask": masks.causal(), "softcap": 1.5}),
}  # fmt: skip


@pytest.fixture(params=LIBRARIES)
def each_library(request):
    return LIBRARIES[request.param]


@pytest.fixture(params=["whole", "small tiles"])
def each_tiling(request, monkeypatch):
    if request.param == "small tiles":
        shrink(monkeypatch)


def case(name, library, *, seed=1, kind="decoder", layers=1, size=N, texts=WORDS):
    """A record of a few layers, and for each layer what a float64 NumPy makes of it."""
    heads, groups, terms = CASES[name]
    rng = np.random.default_rng(seed)
    made, dense = [], []
    for index in range(layers):
        layer, plain = one_layer(library, rng, heads, groups, terms(library, rng), index, kind, size, texts)
        made.append(layer)
        dense.append(plain)
    return Record([Run(layers=tuple(made))]), dense


def one_layer(library, rng, heads, groups, terms, index, kind, size, texts):
    arrays = {
        "queries": drawn(rng, heads, size, 8), "keys": drawn(rng, groups, size, 8),
        "values": drawn(rng, groups, size, 6),
        "gradients": drawn(rng, heads, size, 6), "value_norms": np.abs(drawn(rng, heads, size)),
    }  # fmt: skip
    made = Map(**{"scale": 0.7, **terms}, **{name: library(array) for name, array in arrays.items()})
    tokens = Tokens.of(texts)
    layer = Layer(
        name=f"layers.{index}.attention", kind=kind, index=index, maps=(made,), queries=(tokens,), keys=(tokens,),
        head_numbers=tuple(range(heads)),
    )  # fmt: skip
    everything, keys = (slice(None), slice(None)), np.repeat(arrays["keys"], heads // groups, axis=0)
    shaping = {
        "scale": made.scale, "softcap": made.softcap,
        "allowed": None if made.mask is None else numbers(made.mask.dense(heads, size, size, like=made.queries)),
        "bias": None if made.bias is None else numbers(made.bias.tile(*everything, made.shape, like=made.queries)),
    }  # fmt: skip
    sinks = None if made.sinks is None else numbers(made.sinks)
    weights = reference.weights(arrays["queries"], keys, sinks=sinks, **shaping)
    lse = np.logaddexp.reduce(reference.scores(arrays["queries"], keys, **shaping), axis=-1)
    values = np.repeat(arrays["values"], heads // groups, axis=0).astype(np.float64)
    return layer, SimpleNamespace(
        weights=weights, values=values, gradients=arrays["gradients"].astype(np.float64), norms=arrays["value_norms"],
        seeing=weights.sum(-1) > 0, lse=lse if sinks is None else np.logaddexp(lse, sinks[:, None]),
    )  # fmt: skip


def drawn(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def numbers(array):
    return array.detach().cpu().numpy() if isinstance(array, torch.Tensor) else np.asarray(array)


def shrink(patch):
    """Every map goes through many small tiles."""
    for module, sizes in (
        (tiled, {"ROWS": 9, "COLS": 7, "TOGETHER": 500}),
        (standing, {"BAND": 5}),
        (repeats, {"ROWS": 6, "ROOM": 60}),
        (words, {"WORDS": 2}),
    ):
        for name, size in sizes.items():
            patch.setattr(module, name, size)


def assert_never_square(size, call):
    """At no time does a call hold an eighth of the map of float32."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size**2 * 4 / 8
