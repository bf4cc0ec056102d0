"""Decoding with our own layers: from a cache as without one."""

from itertools import chain

import pytest
import torch
from torch import nn

from regard.formula import masks
from regard.model import BlockConfig, Decoder, Encoder, Rotary
from regard.model.decoding import Limits, Sampling, beam, greedy, sample

V, S, E, END = 13, 6, 16, 1
LIMITS = Limits(end=END, longest=12, shortest=2, forbidden=(0,))


class Layers(nn.Module):
    """A decoder that looks at a source, or an encoder under a causal mask, between an embedding and its logits."""

    def __init__(self, kind):
        super().__init__()
        self.embedding, self.out = nn.Embedding(V, E), nn.Linear(E, V)
        config = BlockConfig(width=E, heads=2, rotary=Rotary(), dropout=0.0)
        self.stack = kind(config, 2)

    def forward(self, ids, source, cache=None):
        x = self.embedding(ids)
        if isinstance(self.stack, Decoder):
            return 3 * self.out(self.stack(x, source, cache=cache))
        return 3 * self.out(self.stack(x, mask=masks.causal(), cache=cache))


class Cached:
    """state: the source and the cache."""

    def __init__(self, model):
        self.model, self.lengths = model, []

    def begin(self, source):
        return source, self.model.stack.new_cache()

    def step(self, tokens, state):
        source, cache = state
        logits = self.model(tokens[:, None], source, cache)[:, -1]
        self.lengths.append(cache.length)
        return logits, state

    def reorder(self, state, index):
        source, cache = state
        cache.reorder(index)
        return source[index], cache


class Uncached:
    """state: the source and all tokens so far, read anew at each step."""

    def __init__(self, model):
        self.model = model

    def begin(self, source):
        return source, torch.zeros(len(source), 0, dtype=torch.int64, device=source.device)

    def step(self, tokens, state):
        source, ids = state
        ids = torch.cat((ids, tokens[:, None]), dim=1)
        return self.model(ids, source)[:, -1], (source, ids)

    def reorder(self, state, index):
        return tuple(part[index] for part in state)


DECODES = {
    "greedy": greedy,
    "beam": lambda *given, **prefix: list(chain(*beam(*given, width=4, n_best=3, **prefix))),
    "sample": lambda *given, **prefix: sample(
        *given, Sampling(top_k=5), generator=torch.Generator(given[2].device).manual_seed(0), **prefix
    ),
}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("prefix", [None, [[3] * (row % 3) for row in range(5)]], ids=["plain", "prefix"])
@pytest.mark.parametrize("decode", DECODES.values(), ids=DECODES)
@pytest.mark.parametrize("kind", [Decoder, Encoder])
@pytest.mark.parametrize("device", ["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
def test_from_a_cache_as_without_one(device, kind, decode, prefix):
    model = Layers(kind).eval().to(device)
    source, start = torch.randn(5, S, E, device=device), torch.arange(5, device=device) + 2
    cached, uncached = Cached(model), Uncached(model)
    found = decode(cached, cached.begin(source), start, LIMITS, prefix=prefix)
    expected = decode(uncached, uncached.begin(source), start, LIMITS, prefix=prefix)
    assert [(one.tokens, one.ended) for one in found] == [(one.tokens, one.ended) for one in expected]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-5)
    assert cached.lengths == list(range(1, len(cached.lengths) + 1))
    assert len({len(one.tokens) for one in found}) > 1
