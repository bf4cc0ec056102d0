"""Attention once more, in plain float64 NumPy and as slow as it likes: what the package is held against."""

import numpy as np


def scores(query, key, *, allowed=None, scale=None, softcap=None, bias=None):
    query, key = (np.asarray(array, dtype=np.float64) for array in (query, key))
    key = repeated(key, query)
    table = query @ np.swapaxes(key, -1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        table = softcap * np.tanh(table / softcap)
    if bias is not None:
        table = table + np.asarray(bias, dtype=np.float64)
    return table if allowed is None else np.where(allowed, table, -np.inf)


def weights(query, key, *, sinks=None, **shaping):
    table = scores(query, key, **shaping)
    with np.errstate(invalid="ignore"):
        peak = np.max(table, axis=-1, keepdims=True, initial=-np.inf)
        if sinks is not None:
            sinks = np.asarray(sinks, dtype=np.float64)[..., None, None]
            peak = np.maximum(peak, sinks)
        peak = np.where(np.isneginf(peak), 0, peak)
        powers = np.exp(table - peak)
        total = powers.sum(axis=-1, keepdims=True)
        if sinks is not None:
            total = total + np.exp(sinks - peak)
    return powers / np.where(total == 0, 1, total)


def attend(query, key, value, **shaping):
    mixing = weights(query, key, **shaping)
    return mixing @ repeated(np.asarray(value, dtype=np.float64), mixing)


def repeated(keys, heads_of):
    """Grouped heads, written out."""
    if keys.ndim < 3 or heads_of.ndim < 3 or keys.shape[-3] in (1, heads_of.shape[-3]) or heads_of.shape[-3] == 1:
        return keys
    return np.repeat(keys, heads_of.shape[-3] // keys.shape[-3], axis=-3)
