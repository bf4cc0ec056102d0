"""Sampling: how often each token is drawn, and which ones may be drawn at all."""

import pytest
import torch

from regard.errors import OptionError
from regard.model.decoding import Limits, Sampling, sample

from .steppers import Fixed, History, keys

DRAWS = 20_000
ONCE = Limits(end=None, longest=1)


def drawn(probabilities, sampling, limits=ONCE, seed=0):
    """How often each token came."""
    stepper = Fixed(torch.tensor([probabilities]).log())
    rows = torch.zeros(DRAWS, dtype=torch.int64)
    texts = sample(stepper, rows, rows, limits, sampling, generator=torch.Generator().manual_seed(seed))
    return torch.bincount(torch.tensor([text.tokens[0] for text in texts]), minlength=len(probabilities))


def assert_drawn_by(counts, probabilities):
    """Chi-square below its 99.9th percentile, which for 1 to 7 degrees of freedom is this."""
    percentile = [10.83, 13.82, 16.27, 18.47, 20.52, 22.46, 24.32]
    expected = torch.tensor(probabilities) / sum(probabilities) * DRAWS
    possible = expected > 0
    assert counts[~possible].sum() == 0
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    assert statistic < percentile[int(possible.sum()) - 2]


P = [0.05, 0.3, 0.1, 0.0, 0.35, 0.15, 0.05]


@pytest.mark.parametrize(
    ("sampling", "probabilities"),
    [
        (Sampling(), P),
        (Sampling(temperature=0.5), [p**2 for p in P]),
        (Sampling(temperature=3.0), [p ** (1 / 3) for p in P]),
        (Sampling(top_k=2), [0, 0.3, 0, 0, 0.35, 0, 0]),
        (Sampling(top_k=50), P),
        (Sampling(top_p=0.6), [0, 0.3, 0, 0, 0.35, 0, 0]),  # 0.35 is too little, 0.65 enough
        (Sampling(top_p=0.7), [0, 0.3, 0, 0, 0.35, 0.15, 0]),
        (Sampling(min_p=0.4), [0, 0.3, 0, 0, 0.35, 0.15, 0]),  # 0.14 and above
        (Sampling(top_k=3, top_p=0.8), [0, 0.3, 0, 0, 0.35, 0, 0]),  # 0.65 of the 0.80 that are left is enough
        (Sampling(top_k=5), [0.05, 0.3, 0.1, 0, 0.35, 0.15, 0]),  # of the two equal ones the lowest stays
        (Sampling(top_p=0.91), [0.05, 0.3, 0.1, 0, 0.35, 0.15, 0]),
        (Sampling(temperature=0.5, min_p=0.5), [0, 0.09, 0, 0, 0.1225, 0, 0]),
    ],
    ids=str,
)
def test_tokens_come_as_often_as_they_should(sampling, probabilities):
    assert_drawn_by(drawn(P, sampling), probabilities)


def test_what_is_forbidden_is_shared_out_among_the_rest():
    assert_drawn_by(drawn(P, Sampling(), Limits(end=None, longest=1, forbidden=(4,))), [*P[:4], 0, *P[5:]])


def test_the_likeliest_alone_is_left_by_the_narrowest_options():
    for sampling in (Sampling(top_k=1), Sampling(top_p=1e-6), Sampling(min_p=1.0), Sampling(temperature=1e-3)):
        assert drawn(P, sampling)[4] == DRAWS


def test_scores_are_the_models_own_at_any_temperature():
    stepper, limits = History(6, 1), Limits(end=1, longest=8)
    for row, one in enumerate(
        sample(stepper, keys(5), torch.full((5,), 2), limits, Sampling(temperature=2.0, top_k=3))
    ):
        text, total = (*one.tokens, *[1] * one.ended), 0.0
        for place, token in enumerate(text):
            total += stepper.log_probabilities(int(keys(5)[row]), (2, *text[:place]))[token]
        assert one.score == pytest.approx(total, abs=1e-9)


def test_the_same_generator_gives_the_same_tokens():
    def texts(seed):
        generator = torch.Generator().manual_seed(seed)
        return sample(
            History(50, 1), keys(4), torch.zeros(4, dtype=torch.int64), Limits(end=1, longest=9), generator=generator
        )

    assert texts(3) == texts(3) != texts(4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": 0},
        {"temperature": -1.0},
        {"temperature": 1e-300},
        {"temperature": 1e300},
        {"top_k": 0},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"min_p": -0.1},
        {"min_p": 2},
    ],
)
def test_options_that_make_no_sense(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        Sampling(**wrong)
