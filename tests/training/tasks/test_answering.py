"""Question answering: windows of contexts, where answers are in them, and the loss of a real answerer."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn import functional

from regard.errors import FileError, OptionError
from regard.model.answerer import Answerer, AnswererConfig
from regard.model.reader import ReaderConfig
from regard.training.tasks import Answering

from . import cases

V = 40
CONTEXT = "Nobody knows where the cat went after that; the dog does. 我喜欢猫。"


def task(**changes):
    return Answering(**{"pad": 0, "longest": 128, "overlap": 8, **changes})


def model():
    torch.manual_seed(0)
    reader = ReaderConfig(vocabulary=V, width=16, heads=2, depth=1, hidden=16, dropout=0.0, longest=32, segments=2)
    return Answerer(AnswererConfig(reader=reader)).double()


def asked(answer, start=None, context=CONTEXT, question="Who?"):
    start = context.index(answer) if start is None else start
    return {"question": question, "context": context, "answer": answer, "start": str(start)}


@pytest.fixture(scope="module")
def tokenizer():
    return cases.tokenizer()


@pytest.fixture
def examples():
    generator = np.random.default_rng(0)
    found = []
    for place, ids in enumerate(cases.rows(generator, 5, 8, 20, V)):
        span = [0, 0] if place == 2 else sorted(generator.integers(4, len(ids) - 1, 2))
        found.append({"ids": ids, "segment": np.array([4]), "span": np.array(span)})
    return found


@pytest.mark.parametrize("answer", ["cat", "the cat went", "Nobody", "does.", "喜欢", "猫", "o", "我喜欢猫。"])
def test_the_pieces_of_the_span_are_the_answer(tokenizer, answer):
    [window] = task().encode([asked(answer)], tokenizer)
    start, end = window["span"]
    ids, encoded = window["ids"], tokenizer.encode(CONTEXT, ends=False)
    [size] = window["segment"]
    assert ids == [*tokenizer.encode("Who?").ids, *encoded.ids, tokenizer.last]
    first, last = encoded.offsets[start - size][0], encoded.offsets[end - size][1]
    # Pieces may be longer than the answer, but no piece less would hold it.
    assert first <= CONTEXT.index(answer) < CONTEXT.index(answer) + len(answer) <= last
    assert encoded.offsets[start - size][1] > CONTEXT.index(answer)
    assert encoded.offsets[end - size][0] < CONTEXT.index(answer) + len(answer)


def test_the_answer_is_taken_where_it_is_said_to_be(tokenizer):
    context = "the cat and the cat"
    spans = [window["span"] for start in (4, 16) for window in task().encode([asked("cat", start, context)], tokenizer)]
    assert spans[0] < spans[1]


def test_no_answer_points_at_the_first_token(tokenizer):
    told = Counter()
    [window] = task().encode([asked("", -1)], tokenizer, told)
    assert window["span"] == [0, 0]
    assert told == {"windows": 1, "without answer": 1, "questions cut": 0}


def test_a_long_context_becomes_windows_that_overlap(tokenizer):
    context = " ".join(["the cat sat on the mat"] * 10) + " zebra"
    ours = task(longest=32, overlap=8)
    whole = tokenizer.encode(context, ends=False).ids
    told = Counter()
    windows = list(ours.encode([asked("zebra", context=context)], tokenizer, told))
    assert told["windows"] == len(windows) > 2
    assert max(len(window["ids"]) for window in windows) == 32
    pieces = [window["ids"][window["segment"][0] : -1] for window in windows]
    joined = pieces[0]
    for before, piece in pairwise(pieces):
        assert before[-8:] == piece[:8]
        assert len(piece) > 8
        joined = joined + piece[8:]
    assert joined == whole
    *others, last = windows
    start, end = last["span"]
    assert tokenizer.decode(last["ids"][start : end + 1]) == "zebra"
    assert all(window["span"] == [0, 0] for window in others)
    assert told["without answer"] == len(others)


def test_a_window_that_holds_half_of_the_answer_does_not_hold_it(tokenizer):
    context = " ".join(["the cat sat on the mat"] * 4)
    answer = context[: len(context) // 2]
    windows = list(task(longest=16, overlap=2).encode([asked(answer, 0, context)], tokenizer))
    assert len(windows) > 3
    assert {tuple(window["span"]) for window in windows} == {(0, 0)}


@pytest.mark.parametrize("start", ["3", "1000"])
def test_a_malformed_answer_is_counted_and_skipped_up_to_a_limit(tokenizer, start):
    told = Counter()
    bad = asked("cat") | {"start": start}
    found = list(task(most_bad=2).encode([bad, asked("cat"), bad], tokenizer, told))
    assert (len(found), told["malformed"]) == (1, 2)
    with pytest.raises(FileError, match=rf"question 3: the answer does not stand at character {start} .*2 malformed"):
        list(task(most_bad=2).encode([bad] * 3, tokenizer))


def test_white_space_around_an_answer_is_no_part_of_it(tokenizer):
    spans = [window["span"] for answer in ("cat", " cat ") for window in task().encode([asked(answer)], tokenizer)]
    assert spans[0] == spans[1]


def test_an_answer_of_white_space_alone_is_malformed(tokenizer):
    told = Counter()
    assert not list(task().encode([asked(" ", 6)], tokenizer, told))
    assert told["malformed"] == 1


def test_a_question_too_long_is_cut_and_told_of(tokenizer):
    told = Counter()
    windows = list(task(longest=32).encode([asked("cat", question="why " * 40)], tokenizer, told))
    assert told["questions cut"] == 1
    assert {window["segment"][0] for window in windows} == {16 + 2}
    assert max(len(window["ids"]) for window in windows) == 32


@pytest.mark.parametrize(("longest", "overlap"), [(8, 0), (64, 32), (64, -1)])
def test_windows_that_would_not_move_on_are_refused(longest, overlap):
    with pytest.raises(OptionError, match=f"longest is {longest} and overlap {overlap}"):
        task(longest=longest, overlap=overlap)


def test_collate():
    batch = task().collate(
        [{"ids": [1, 5, 2, 6, 7, 2], "segment": [3], "span": [3, 4]}, {"ids": [1] * 9, "segment": [2], "span": [0, 0]}],
        [],
    )
    assert batch.counts == {"answers": 2}
    assert batch.tensors["segments"].tolist() == [[0, 0, 0, 1, 1, 1] + [0] * 10, [0, 0] + [1] * 7 + [0] * 7]
    assert (batch.tensors["starts"].tolist(), batch.tensors["ends"].tolist()) == ([3, 0], [4, 0])


def test_the_loss_is_that_of_one_window_after_the_other(examples):
    answerer = model()
    expected = likely = 0
    for example in examples:
        ids, (first, last) = torch.as_tensor(example["ids"])[None], torch.as_tensor(example["span"])
        start, end = answerer(ids, None, (torch.arange(ids.shape[1]) >= 4).long()[None])
        expected += (functional.cross_entropy(start[0], first) + functional.cross_entropy(end[0], last)) / 2
        likely += int(start.argmax() == first and end.argmax() == last)
    tensors = task().collate(examples, cases.draws(5)).tensors
    torch.testing.assert_close(task().losses(answerer, tensors)["answers"], expected)
    measured = task().measures(answerer, tensors)
    torch.testing.assert_close(measured["answers/loss"], expected)
    assert int(measured["answers/right"]) == likely


def test_an_answer_is_right_only_with_both_ends(examples):
    answerer = model()
    tensors = task().collate(examples, cases.draws(5)).tensors
    start, end = answerer(tensors["ids"], tensors["mask"], tensors["segments"])
    tensors |= {"starts": start.argmax(-1), "ends": end.argmax(-1)}
    assert int(task().measures(answerer, tensors)["answers/right"]) == 5
    tensors["ends"][0] = (tensors["ends"][0] - 3) % 3
    assert int(task().measures(answerer, tensors)["answers/right"]) == 4


def test_shares_of_a_batch_are_the_whole(examples):
    cases.assert_shares_are_the_whole(task(), model(), examples)
    cases.assert_nothing_is_learned_from_nothing(task(), model())
