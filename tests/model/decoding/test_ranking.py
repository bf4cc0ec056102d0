"""The k best of a row, and that ties go to the lowest token."""

import pytest
import torch

from regard.model.decoding.ranking import best


@pytest.mark.parametrize("k", [1, 2, 5, 39, 40, 60])
@pytest.mark.parametrize("levels", [1, 3, 10, 10**6])
def test_as_a_stable_sort_of_everything(k, levels):
    scores = torch.randint(levels, (200, 40)).float()
    scores[::7, ::3] = -torch.inf
    values, tokens = scores.sort(dim=-1, descending=True, stable=True)
    found = best(scores, k)
    assert torch.equal(found[0], values[:, :k])
    possible = values[:, :k] > -torch.inf  # the impossible may come in any order
    assert torch.equal(found[1][possible], tokens[:, :k][possible])


def test_nan_comes_first():
    scores = torch.randn(3, 20)
    scores[1, 7] = torch.nan
    for k in (2, 20):
        values, _ = best(scores, k)
        assert values[:, 0].isnan().tolist() == [False, True, False]
