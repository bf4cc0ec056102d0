"""Records made by hand, whose heads do what one wants them to."""

import numpy as np

from regard.formula import masks
from regard.record import Layer, Record, Run, Tokens
from regard.record.map import Map

WORDS = ("[CLS]", " the", " cat", "s", " sat", " down", ".", "[SEP]")
BEGINS = (True, True, True, False, True, True, True, True)
SHARP = 30.0  # a score by which one key takes all


def looking_at(places, keys):
    """Queries that look at one key each: the keys are one-hot, and so are the queries.   -> (Q, K), (K, K)"""
    return SHARP * np.eye(keys)[list(places)], np.eye(keys)


def layer(heads, *, index=0, kind="encoder", queries=None, keys=None, mask=None):
    """A layer whose heads look at given places, one for each query; None spreads a head evenly."""
    keys = Tokens(WORDS, BEGINS) if keys is None else keys
    queries = keys if queries is None else queries
    made = [looking_at(places, len(keys)) if places is not None else even(len(queries), len(keys)) for places in heads]
    rows, cols = (np.stack(part) for part in zip(*made, strict=True))
    return Layer(
        name=f"layers.{index}", kind=kind, index=index, maps=(Map(queries=rows, keys=cols, scale=1.0, mask=mask),),
        queries=(queries,), keys=(keys,), head_numbers=tuple(range(len(heads))),
    )  # fmt: skip


def even(queries, keys):
    return np.zeros((queries, keys)), np.eye(keys)


def record(*layers, model="by hand"):
    return Record([Run(layers=layers, model=model)])


def causal(heads, tokens, index=0):
    return layer(heads, index=index, kind="decoder", keys=tokens, mask=masks.causal())
