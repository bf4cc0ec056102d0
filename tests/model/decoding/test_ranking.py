"""The k best of a row, and that ties go to the lowest token."""

import pytest
import torch

from regard.model.decoding.ranking import STRETCH, best, likeliest


@pytest.mark.parametrize("k", [1, 2, 5, 39, 40, 60])
@pytest.mark.parametrize("levels", [1, 3, 10, 10**6])
@pytest.mark.parametrize("vocabulary", [40, 40 * STRETCH, 40 * STRETCH + 17])
def test_as_a_stable_sort_of_everything(k, levels, vocabulary):
    scores = torch.randint(levels, (200 if vocabulary == 40 else 10, vocabulary)).float()
    scores[::7, ::3] = -torch.inf
    scores[3, :-2] = -torch.inf
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


def test_nan_comes_first_in_a_large_vocabulary():
    for place in (0, 5000, 40 * STRETCH):
        scores = torch.randn(3, 40 * STRETCH + 17)
        scores[1, place] = torch.nan
        values, tokens = best(scores, 4)
        assert values[:, 0].isnan().tolist() == [False, True, False]
        assert tokens[1, 0] == place == likeliest(scores)[1]


def test_the_likeliest_is_the_lowest_of_equals():
    scores = torch.randint(3, (50, 400)).float()
    assert torch.equal(likeliest(scores), scores.sort(dim=-1, descending=True, stable=True).indices[:, 0])
