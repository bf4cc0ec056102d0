"""Rows that share a source: its keys are kept once, and each row gets what it would get from a copy of its own."""

import pytest
import torch

from regard.errors import ShapeError
from regard.model import KeyValueCache, MultiHeadAttention
from regard.model.cache import Readers

E, H, S = 16, 4, 5
SOURCES = {
    "one each": [0, 1, 2],
    "two each": [0, 0, 1, 1, 2, 2],
    "ragged": [0, 0, 0, 1, 2, 2],
    "one nobody reads": [0, 2, 2],
    "in any order": [2, 0, 2, 1, 0, 2],
    "the last one alone": [2],
}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("masked", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("sources", SOURCES.values(), ids=SOURCES)
def test_as_if_each_row_had_a_copy(sources, tokens, masked):
    layer, source, index = MultiHeadAttention(E, H, key_heads=2), torch.randn(3, S, E), torch.tensor(sources)
    mask = torch.arange(S) < torch.tensor([5, 2, 3])[:, None, None, None] if masked else None
    cache, x = KeyValueCache(), torch.randn(len(sources), tokens, E)
    with torch.no_grad():
        layer(torch.randn(3, 1, E), source, mask=mask, cache=cache)  # fills it
        cache.readers = Readers.of(index, 3)
        shared, found = layer.attend(x, source, mask=mask, cache=cache)
        copied, expected = layer.attend(x, source[index], mask=None if mask is None else mask[index])
        torch.testing.assert_close(layer(x, source, mask=mask, cache=cache), copied)
    torch.testing.assert_close(shared, copied)
    torch.testing.assert_close(found, expected)
    assert len(cache.kept()[0]) == 3


def test_row_by_row_needs_no_readers():
    assert Readers.of(torch.tensor([0, 1, 2]), 3) is None
    assert Readers.of(torch.tensor([0, 1]), 3) is not None
    assert Readers.of(torch.tensor([1, 0]), 2) is not None


def test_wrong_sources_are_told():
    with pytest.raises(ShapeError, match="a row looks at source 3 and 3 are kept, 0 to 2"):
        Readers(torch.tensor([0, 3]), 3)
