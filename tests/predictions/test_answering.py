"""Questions to parts of their contexts: windows, spans by brute force, offsets, and no answer."""

import json
import re
from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from regard.errors import DtypeError, OptionError
from regard.model import Answerer, AnswererConfig
from regard.predictions.answering import Answering, best_spans
from regard.predictions.reading import padded

from .conftest import WORDS

QUESTION = "where is the needle"
COLOURS = ("red", "blue", "green")
FILLER = [word for word in WORDS if word not in ("needle", "where", *COLOURS)]


def contexts(count):
    """Contexts of 4 to 13 words, and where the colour behind the needle stands in it; in one of four there is none."""
    draw = torch.Generator().manual_seed(1)
    for number in range(count):
        words = [FILLER[n] for n in torch.randint(len(FILLER), (4 + number % 10,), generator=draw).tolist()]
        place = int(torch.randint(len(words), (1,), generator=draw))
        if number % 4:
            words[place:place] = ["needle", COLOURS[number % 3]]
        yield " ".join(words), place + 1 if number % 4 else None


@pytest.fixture(scope="module")
def answer(shape, tokenizer, train):
    """One that was trained to find the colour behind the needle."""
    torch.manual_seed(0)
    model = Answerer(AnswererConfig(reader=replace(shape, segments=2)))
    asked, here = tokenizer.encode(QUESTION).ids, torch.device("cpu")
    said = list(contexts(192))
    rows = [[*asked, *found, tokenizer.last] for found in tokenizer.ids([text for text, _ in said])]
    ids, mask = padded(rows, tokenizer.pad, here)
    segments = (torch.arange(ids.shape[1]) >= len(asked)).long() * mask
    wanted = torch.tensor([0 if place is None else place + len(asked) for _, place in said])

    def loss():
        return sum(functional.cross_entropy(edge, wanted) for edge in model(ids, mask, segments))

    train(model, loss, 120)
    return Answering(model, tokenizer, "mine", longest_answer=4)


def test_answers_are_found_in_the_order_given(answer):
    said = ["the cat sat on needle red and the dog ran", "needle green", "a dog and so it needle blue is"]
    found = answer([(QUESTION, context) for context in said])
    assert [one.text for one in found] == ["red", "green", "blue"]
    for context, one in zip(said, found, strict=True):
        assert context[one.start : one.end] == one.text
        assert one.windows == 1
        assert answer([(QUESTION, context)])[0].probability == pytest.approx(one.probability, abs=1e-6)


def test_where_there_is_no_answer_it_says_so(answer):
    none = answer([(QUESTION, "the cat sat on the mat and the dog ran")])[0]
    assert (none.text, none.start, none.end) == ("", 0, 0)
    assert 0.5 < none.probability <= 1


@pytest.mark.parametrize("before", [0, 7, 100, 3000, 9990])
def test_a_long_context_is_read_to_its_end(answer, before):
    words = [FILLER[number % len(FILLER)] for number in range(10_000)]
    words[before:before] = ["needle", "blue"]
    context = " ".join(words)
    found = answer([(QUESTION, context)])[0]
    assert found.text == "blue"
    assert (found.start, found.end) == (context.index("blue"), context.index("blue") + 4)
    assert found.windows > 10_000 / answer.model.config.reader.longest


def test_every_answer_lies_whole_in_a_window(answer, tokenizer):
    """Whatever the length of the context: windows are full, cover it, and overlap by an answer's length."""
    room = answer.model.config.reader.longest - len(tokenizer.encode(QUESTION).ids) - 1
    for length in (1, 2, room - 1, room, room + 1, 2 * room, 5 * room + 3):
        encoded = tokenizer.encode("cat " * length, ends=False)
        encoded = replace(encoded, ids=encoded.ids[:length])
        held = [
            range(one.begin, one.begin + len(one.ids) - one.question - 1)
            for one in answer._windows(0, QUESTION, encoded)
        ]
        assert all(len(one) <= room for one in held)
        for first in range(length - min(answer.longest_answer, length) + 1):
            span = range(first, first + min(answer.longest_answer, length))
            assert any(one.start <= span.start and span.stop <= one.stop for one in held), (length, span)


def test_spans_are_those_of_brute_force():
    draw = torch.Generator().manual_seed(0)
    start, end = (torch.randn(20, 9, generator=draw, dtype=torch.float64).log_softmax(-1) for _ in "12")
    inside = torch.rand(20, 9, generator=draw) > 0.3
    for longest in (1, 3, 9, 50):
        found = best_spans(start, end, inside, longest)
        for row in range(20):
            every = {
                (first, last): float(start[row, first] + end[row, last])
                for first in range(9)
                for last in range(first, min(first + longest, 9))
                if inside[row, first] and inside[row, last]
            }
            best = max(every, key=every.__getitem__)
            assert (int(found.first[row]), int(found.last[row])) == best
            assert float(found.score[row]) == pytest.approx(every[best])


@pytest.mark.parametrize("context", ["👨‍👩‍👧‍👦 🇩🇪", "猫坐在垫子上。狗跑了。", "\0", "\ud800 half", "  x  "])
def test_any_context_can_be_asked(shape, tokenizer, context):
    """By one that knows nothing, so that answers begin and end anywhere."""
    for seed in range(5):
        torch.manual_seed(seed)
        model = Answerer(AnswererConfig(reader=replace(shape, segments=2)))
        model.edges.bias.data.fill_(9.0)
        found = Answering(model, tokenizer, "mine")([("猫?", context)])[0]
        assert context[found.start : found.end] == found.text
        assert 0 <= found.probability <= 1


def test_what_it_cannot_read_is_said(answer, other):
    with pytest.raises(OptionError, match="question 2 is empty"):
        answer([(QUESTION, "a"), ("", "a")])
    with pytest.raises(OptionError, match="context 1 is empty"):
        answer([(QUESTION, " ")])
    with pytest.raises(DtypeError, match=re.escape("pair 1 is 'where'; give (question, context)")):
        answer(["where"])
    with pytest.raises(OptionError, match="question 1 has 32 tokens and mine reads 24 at once"):
        answer([("where" + " where" * 29, "the cat")])
    with pytest.raises(OptionError, match="longest_answer is 0"):
        Answering(answer.model, answer.tokenizer, "mine", longest_answer=0)
    with pytest.raises(OptionError, match="the tokenizer of mine is not the one"):
        Answering(answer.model, other, "mine")
    assert answer([]) == []


def test_looking_shows_the_window_of_the_answer(answer):
    record = answer.look(QUESTION, "cat " * 200 + "needle red " + "dog " * 200)
    tokens = record.layers[0].queries[0]
    assert " needle" in tokens.texts[6:]
    assert " red" in tokens.texts
    assert tokens.segments[:7] == (0, 0, 0, 0, 0, 0, 1)
    assert len(tokens) == 24
    told = json.loads(json.dumps(answer([(QUESTION, "needle red")])[0].as_json()))
    assert set(told) == {"text", "start", "end", "probability", "windows"}
