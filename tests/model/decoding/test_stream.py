"""One token at a time: greedy and sampled, streamed and whole; ends, limits, prefixes, errors."""

import pytest
import torch

from regard.errors import DtypeError, NotANumber, OptionError, ShapeError
from regard.model.decoding import Limits, Sampling, beam, greedy, sample, stream

from .steppers import Fixed, History, keys

END = 1
LIMITS = Limits(end=END, longest=20)


def by_hand(stepper, key, start, limits, prefix=()):
    text, total = [], 0.0
    for length in range(limits.longest):
        scores = stepper.log_probabilities(key, (start, *prefix, *text))
        allowed = [
            token
            for token in range(len(scores))
            if token not in limits.forbidden and (token != limits.end or length >= limits.shortest)
        ]
        token = max(allowed, key=lambda token: scores[token])
        total += scores[token]
        if token == limits.end:
            return tuple(text), total, True
        text.append(token)
    return tuple(text), total, False


@pytest.mark.parametrize("limits", [LIMITS, Limits(end=END, longest=6, shortest=4, forbidden=(0, 3))])
@pytest.mark.parametrize("prefix", [None, [[2] * (row % 4) for row in range(12)]], ids=["plain", "prefix"])
def test_greedy_is_the_likeliest_token_each_time(limits, prefix):
    stepper = History(7, 1)
    found = greedy(stepper, keys(12), torch.full((12,), 2), limits, prefix=prefix)
    for row, one in enumerate(found):
        given = prefix[row] if prefix else ()
        tokens, score, ended = by_hand(stepper, int(keys(12)[row]), 2, limits, given)
        assert (one.tokens, one.ended) == (tokens, ended)
        assert one.score == pytest.approx(score, abs=1e-9)
        assert not set(one.tokens) & {END, *limits.forbidden}
        assert limits.shortest <= len(one.tokens) <= limits.longest


def test_a_prefix_is_as_if_its_tokens_had_been_stepped_before():
    stepper, prefix = History(9, 4), [[3, END, 0, 5]] * 6  # the end too, where it is given, ends nothing
    state, tokens = keys(6), torch.full((6,), 2)
    for token in prefix[0]:
        _, state = stepper.step(tokens, state)
        tokens = torch.full((6,), token)
    assert greedy(stepper, keys(6), torch.full((6,), 2), LIMITS, prefix=prefix) == greedy(
        stepper, state, tokens, LIMITS
    )
    texts = beam(stepper, keys(6), torch.full((6,), 2), LIMITS, n_best=3, prefix=prefix)
    assert texts == beam(stepper, state, tokens, LIMITS, n_best=3)


def test_streamed_tokens_are_those_of_the_whole_and_ended_rows_drop_out():
    stepper, start = History(5, 3), torch.full((9,), 2)
    whole = greedy(stepper, keys(9), start, LIMITS)
    steps = list(stream(stepper, keys(9), start, LIMITS))
    for row, one in enumerate(whole):
        mine = [
            (step.tokens[place], step.ended[place]) for step in steps for place, r in enumerate(step.rows) if r == row
        ]
        assert [token for token, _ in mine] == [*one.tokens, *[END] * one.ended]
        assert [ended for _, ended in mine] == [False] * len(one.tokens) + [True] * one.ended


@pytest.mark.parametrize("decode", [greedy, sample, lambda *given: beam(*given, width=1)])
def test_no_row_is_stepped_after_its_end_and_none_after_all_have_ended(decode):
    stepper = History(5, 3)
    found = decode(stepper, keys(9), torch.full((9,), 2), LIMITS)
    lengths = [len(one.tokens) + one.ended for one in (row[0] if isinstance(row, list) else row for row in found)]
    assert stepper.calls == [sum(length > step for length in lengths) for step in range(max(lengths))]
    assert min(lengths) < max(lengths) < LIMITS.longest


def test_a_stream_takes_a_step_only_when_it_is_asked():
    stepper = History(5, 3)
    steps = stream(stepper, keys(2), torch.full((2,), 2), Limits(end=None, longest=5))
    for taken in range(1, 4):
        next(steps)
        assert len(stepper.calls) == taken


def test_a_batch_is_as_its_rows_one_by_one():
    stepper, start = History(30, 8), torch.arange(6)
    together = greedy(stepper, keys(6), start, LIMITS)
    for row in range(6):
        assert greedy(stepper, keys(6)[row : row + 1], start[row : row + 1], LIMITS) == together[row : row + 1]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_scores_are_float32_whatever_the_logits(dtype):
    stepper = History(40, 2, dtype)
    whole = History(40, 2)
    whole.table = stepper.table.float()
    start = torch.full((6,), 2)
    assert greedy(stepper, keys(6), start, LIMITS) == greedy(whole, keys(6), start, LIMITS)
    assert beam(stepper, keys(6), start, LIMITS) == beam(whole, keys(6), start, LIMITS)


def test_of_equal_tokens_the_lowest_is_taken():
    logits = torch.zeros(1, 1000)
    logits[0, [700, 300, 900]] = 2.0
    (one,) = greedy(Fixed(logits), torch.tensor([0]), torch.tensor([0]), Limits(end=None, longest=3))
    assert one.tokens == (300, 300, 300)


def test_the_logits_of_the_stepper_are_not_written_into():
    stepper = Fixed(torch.randn(2, 6))
    stepper.step = lambda tokens, state: (stepper.logits[: len(tokens)], state)  # not a copy
    before = stepper.logits.clone()
    greedy(stepper, torch.arange(2), torch.tensor([0, 0]), Limits(end=1, longest=3, shortest=2, forbidden=(0, 4)))
    assert torch.equal(stepper.logits, before)


@pytest.mark.parametrize("decode", [greedy, sample, beam])
@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_nan_is_an_error_that_names_the_row(decode, wrong):
    logits = torch.zeros(4, 6)
    logits[2, 3] = wrong
    with pytest.raises(NotANumber, match=r"step 0: the logits of row 2 hold NaN .*1 of 4 rows"):
        decode(Fixed(logits), torch.arange(4), torch.zeros(4, dtype=torch.int64), Limits(end=None, longest=3))


@pytest.mark.parametrize("decode", [greedy, sample, beam])
def test_nothing_left_to_choose_is_an_error(decode):
    logits = torch.full((2, 3), -torch.inf)
    logits[:, END], logits[0, 2] = 0.0, 0.0
    with pytest.raises(OptionError, match="no token is left to choose for row 1"):
        decode(Fixed(logits), torch.arange(2), torch.tensor([0, 0]), Limits(end=END, longest=3, shortest=1))


@pytest.mark.parametrize("decode", [greedy, sample, beam])
def test_tokens_that_the_model_does_not_have(decode):
    with pytest.raises(OptionError, match="name token 9, and the model has 4: 0 to 3"):
        decode(History(4), keys(1), torch.tensor([0]), Limits(end=1, longest=3, forbidden=(9,)))


@pytest.mark.parametrize("start", [[0, 1], torch.tensor([0.0]), torch.tensor([[0]])])
@pytest.mark.parametrize("decode", [greedy, sample, beam])
def test_a_start_is_one_token_for_each_row(decode, start):
    with pytest.raises(DtypeError, match="start is"):
        decode(History(4), keys(1), start, LIMITS)


def test_a_prefix_for_each_row():
    with pytest.raises(ShapeError, match="1 prefixes and 2 start tokens"):
        greedy(History(4), keys(2), torch.tensor([0, 0]), LIMITS, prefix=[[1]])
    with pytest.raises(OptionError, match="token -3"):
        greedy(History(4), keys(1), torch.tensor([0]), LIMITS, prefix=[[-3]])


def test_logits_must_be_one_row_for_each_token():
    stepper = History(4)
    stepper.step = lambda tokens, state: (torch.zeros(len(tokens), 1, 4), state)
    with pytest.raises(ShapeError, match=r"logits \(2, 1, 4\) for 2 tokens"):
        greedy(stepper, keys(2), torch.tensor([0, 0]), LIMITS)


@pytest.mark.parametrize(
    "wrong", [{"longest": 0}, {"shortest": -1}, {"shortest": 21}, {"end": -1}, {"forbidden": (-2,)}, {"end": True}]
)
def test_limits_that_make_no_sense(wrong):
    with pytest.raises(OptionError):
        Limits(**({"end": 1, "longest": 20} | wrong))


def test_gradients_are_not_followed():
    stepper = History(5)
    stepper.table.requires_grad_()
    seen = []
    inner = stepper.step
    stepper.step = lambda tokens, state: seen.append(torch.is_grad_enabled()) or inner(tokens, state)
    greedy(stepper, keys(2), torch.tensor([2, 2]), LIMITS)
    beam(stepper, keys(2), torch.tensor([2, 2]), LIMITS)
    sample(stepper, keys(2), torch.tensor([2, 2]), LIMITS, Sampling(top_k=2))
    assert not any(seen)
    assert torch.is_grad_enabled()
