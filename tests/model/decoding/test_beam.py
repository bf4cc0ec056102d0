"""Beam search: against all texts, against a plain one with lists, and against itself."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import OptionError
from regard.model.decoding import GNMT, MEAN, TOTAL, LengthPenalty, Limits, beam, greedy

from .steppers import Fixed, History, every_text, gnmt, keys, plain_beam

PENALTIES = [(TOTAL, lambda n: 1.0), (GNMT, gnmt(0.6)), (LengthPenalty(alpha=1.7), gnmt(1.7)), (MEAN, float)]
END = 1


def assert_same(found, expected):
    assert [(one.tokens, one.ended) for one in found] == [(text, ended) for _, text, ended in expected]
    assert [one.score for one in found] == pytest.approx([score for score, _, _ in expected], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("penalty", "divisor"), PENALTIES, ids=["total", "gnmt", "steep", "mean"])
@pytest.mark.parametrize(
    ("end", "longest", "shortest", "forbidden"),
    [(END, 4, 0, ()), (END, 4, 2, ()), (END, 3, 3, ()), (None, 3, 0, ()), (END, 4, 1, (0,)), (END, 1, 0, ())],
)
@pytest.mark.parametrize("seed", range(4))
def test_wide_enough_it_finds_the_best_of_all_texts(penalty, divisor, end, longest, shortest, forbidden, seed):
    stepper, limits = History(4, seed), Limits(end=end, longest=longest, shortest=shortest, forbidden=forbidden)
    found = beam(stepper, keys(2), torch.tensor([2, 3]), limits, width=4**longest, n_best=5 - longest, penalty=penalty)
    for row, start in enumerate((2, 3)):
        expected = every_text(stepper, int(keys(2)[row]), start, limits, divisor)
        assert_same(found[row], expected[: 5 - longest])


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_it_does_as_a_plain_one_that_never_stops_early(data):
    stepper = History(data.draw(st.integers(3, 7)), data.draw(st.integers(0, 10**6)))
    longest = data.draw(st.integers(1, 7))
    limits = Limits(
        end=END,
        longest=longest,
        shortest=data.draw(st.integers(0, longest)),
        forbidden=data.draw(st.sampled_from([(), (0,)])),
    )
    penalty, divisor = data.draw(st.sampled_from(PENALTIES))
    width = data.draw(st.integers(1, 6))
    n_best = data.draw(st.integers(1, width))
    batch = data.draw(st.integers(1, 4))
    prefix = data.draw(st.lists(st.lists(st.integers(0, 2), max_size=3), min_size=batch, max_size=batch))
    found = beam(
        stepper,
        keys(batch),
        torch.full((batch,), 2),
        limits,
        width=width,
        n_best=n_best,
        penalty=penalty,
        prefix=prefix,
    )
    for row in range(batch):
        expected = plain_beam(stepper, int(keys(batch)[row]), 2, limits, divisor, width, tuple(prefix[row]))
        assert_same(found[row], expected[:n_best])


@pytest.mark.parametrize("penalty", [TOTAL, GNMT, MEAN])
@pytest.mark.parametrize("seed", range(10))
def test_width_1_is_greedy(seed, penalty):
    stepper, limits, start = History(6, seed), Limits(end=END, longest=12, shortest=1), torch.full((5,), 2)
    ones, likeliest = (
        beam(stepper, keys(5), start, limits, width=1, penalty=penalty),
        greedy(stepper, keys(5), start, limits),
    )
    assert [(one.tokens, one.ended) for (one,) in ones] == [(one.tokens, one.ended) for one in likeliest]
    if penalty is TOTAL:
        assert [one.score for (one,) in ones] == pytest.approx([one.score for one in likeliest], rel=1e-12)


def test_a_batch_is_as_its_rows_one_by_one():
    stepper, limits, start = History(9, 5), Limits(end=END, longest=15), torch.arange(8) % 5
    prefix = [[2] * (row % 4) for row in range(8)]
    together = beam(stepper, keys(8), start, limits, width=4, n_best=4, prefix=prefix)
    for row in range(8):
        rows = slice(row, row + 1)
        assert (
            beam(stepper, keys(8)[rows], start[rows], limits, width=4, n_best=4, prefix=prefix[rows]) == together[rows]
        )
    assert len({len(texts[0].tokens) for texts in together}) > 2  # they do end at different steps


def test_the_n_best_are_sorted_and_differ():
    stepper, limits = History(8, 2), Limits(end=END, longest=10)
    for texts in beam(stepper, keys(16), torch.full((16,), 2), limits, width=6, n_best=6):
        assert len({text.tokens for text in texts}) == 6
        assert [text.score for text in texts] == sorted((text.score for text in texts), reverse=True)


def test_a_row_stops_when_no_open_beam_can_win_and_not_before():
    # The end is likeliest at once, so nothing that goes on has a higher total. Under the mean a longer text might win.
    logits, limits = [[0.0, 2.0, 1.0]], Limits(end=END, longest=50)
    counted = History(3)
    counted.table = torch.tensor(logits).expand(1009, 3)
    beam(counted, keys(1), torch.tensor([2]), limits, width=2, penalty=TOTAL)
    assert counted.calls == [1]
    counted.calls.clear()
    beam(counted, keys(1), torch.tensor([2]), limits, width=2, penalty=MEAN)
    assert counted.calls == [1, 1]  # the second place ends one step later


def test_only_open_beams_are_stepped():
    stepper, limits = History(6, 3), Limits(end=END, longest=30)
    beam(stepper, keys(10), torch.full((10,), 2), limits, width=4, penalty=MEAN)
    assert stepper.calls[0] == 10  # one beginning for each row
    assert max(stepper.calls) <= 40
    assert stepper.calls[-1] < 10
    assert len(stepper.calls) < 30


def test_equal_scores_take_the_lowest_tokens():
    limits = Limits(end=None, longest=3)
    (texts,) = beam(Fixed(torch.zeros(1, 50)), torch.tensor([0]), torch.tensor([0]), limits, width=4, n_best=4)
    assert [text.tokens for text in texts] == [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 0, 3)]


def test_an_impossible_token_is_never_taken():
    logits = torch.tensor([[0.0, -torch.inf, -torch.inf, 1.0]])
    (texts,) = beam(Fixed(logits), torch.tensor([0]), torch.tensor([0]), Limits(end=1, longest=2), width=9, n_best=9)
    assert [text.tokens for text in texts] == [(3, 3), (3, 0), (0, 3), (0, 0)]


def test_more_texts_than_the_beam_is_wide_cannot_be_had():
    with pytest.raises(OptionError, match="n_best is 5 and width is 4"):
        beam(History(4), keys(1), torch.tensor([0]), Limits(end=1, longest=2), width=4, n_best=5)


def test_an_empty_batch_has_no_texts_and_takes_no_step():
    stepper = History(4)
    assert beam(stepper, keys(0), torch.zeros(0, dtype=torch.int64), Limits(end=1, longest=2)) == []
    assert stepper.calls == []
