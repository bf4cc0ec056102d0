"""Prompts in, texts out: whole and as they come, never half a sign."""

import json

import pytest
import torch

from regard.errors import DtypeError, OptionError
from regard.model.decoding import Sampling
from regard.predictions.generation import Generation, _Spelling
from regard.text.pieces import joined

from .writers import TEXTS, language_model, tokenizer

PIECES = tokenizer()


@pytest.fixture
def generation():
    return Generation(language_model(PIECES), PIECES, "small")


def test_prompts_together_as_one_by_one(generation):
    prompts = [TEXTS[1], "a", "", TEXTS[2], "the cat"]
    together = generation(prompts, longest=12)
    assert [one.prompt for one in together] == prompts
    for prompt, found in zip(prompts, together, strict=True):
        (alone,) = generation([prompt], longest=12)
        assert (alone.text, alone.ended, alone.cut) == (found.text, found.ended, found.cut)
        assert alone.score == pytest.approx(found.score, abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_what_comes_piece_by_piece_is_the_whole(seed):
    generation = Generation(language_model(PIECES, seed=seed), PIECES, "small")
    for sampling in (None, Sampling(temperature=2.0)):
        (whole,) = generation(["猫"], longest=20, sampling=sampling, seed=seed)
        pieces = list(generation.stream("猫", longest=20, sampling=sampling, seed=seed))
        assert "".join(pieces) == whole.text
        assert all(pieces)


def test_a_sign_waits_until_it_is_whole():
    pieces = tokenizer(260, ["x"])  # bytes alone
    ids = pieces.encode("猫 é", ends=False).ids
    spelling = _Spelling(pieces, begins=True)
    assert [spelling.add(number) for number in ids if number != pieces.id("Ġ")] == ["", "", "猫", "", "é"]
    spelling = _Spelling(pieces, begins=False)
    assert [spelling.add(pieces.id("Ġ")), spelling.add(ids[-2]), spelling.last()] == [" ", "", "\ufffd"]


def test_it_goes_on_where_the_model_does(generation):
    model, prompt = generation.model, TEXTS[0]
    ids = [PIECES.last, *PIECES.ids([prompt])[0]]
    (found,) = generation([prompt], longest=3)
    with torch.no_grad():
        for _ in range(3):
            logits = model(torch.tensor([ids]))[0, -1]
            logits[[PIECES.pad, PIECES.first, PIECES.mask]] = -torch.inf
            ids.append(int(logits.argmax()))
    assert PIECES.decode(ids) == prompt + found.text


def test_a_long_prompt_loses_its_beginning_and_says_so(generation):
    long = "a b c d " * 20
    short, cut = generation(["a", long], longest=8)
    assert (short.cut, cut.cut) == (False, True)
    assert cut.prompt == long
    assert [generation.cuts(prompt, longest=8) for prompt in ("a", long)] == [False, True]
    row = generation._read(list(range(10, 90)), 8)
    assert row.ids == list(range(65, 90))  # 25 that are read, and 7 of the 8 that are written: 32
    assert generation._read(list(range(10, 90)), 1000).ids == list(range(74, 90))  # half is left to be written
    assert generation._read([10, 11], 1000).longest == 30  # three are read with the mark, and 29 of the 30


def test_it_writes_no_more_than_it_can_hold(generation):
    forever = Generation(language_model(PIECES, seed=5), PIECES, "small")
    with torch.no_grad():
        forever.model.embedding.weight[PIECES.last] = 0
    for found in forever(["a", TEXTS[0], "a b c d " * 20], longest=1000):
        assert not found.ended


def test_what_is_drawn_can_be_drawn_again(generation):
    def draw(seed):
        return [one.text for one in generation(TEXTS, sampling=Sampling(temperature=3.0), seed=seed, longest=8)]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_its_attention_has_names(generation):
    record = generation.look("the cat", " sat")
    assert record.layers[0].queries[0].texts == ("[SEP]", " the", " cat", " sat")[: len(record.layers[0].queries[0])]
    assert record.layers[0].queries[0].generated is None
    written = generation.look("the cat", longest=5).layers[0].queries[0]
    assert written.generated == 1 + len(PIECES.ids(["the cat"])[0])
    assert len(written) <= written.generated + 5
    (found,) = generation(["the cat"], longest=5)
    assert joined(written.texts[written.generated :]) == found.text.strip()


def test_it_goes_through_json(generation):
    told = json.loads(json.dumps(generation(["the"], longest=3)[0].as_json()))
    assert told.keys() == {"prompt", "text", "score", "ended", "cut"}


def test_between_two_pieces_the_caller_is_as_before(generation):
    generation.model.train()
    for _ in generation.stream("the", longest=4):
        assert torch.is_grad_enabled()
        assert generation.model.training


def test_wrong_input_is_told(generation):
    with pytest.raises(DtypeError, match="give a list"):
        generation("the cat")
    with pytest.raises(DtypeError, match="prompt 2 is a NoneType"):
        generation(["a", None])
    with pytest.raises(OptionError, match="longest is 0"):
        generation(["a"], longest=0)
    with pytest.raises(OptionError, match="longest is 0"):
        generation.cuts("a", longest=0)
    with pytest.raises(OptionError, match="seed is"):
        next(generation.stream("a", sampling=Sampling(), seed=2**70))
    with pytest.raises(OptionError, match="not the one that its model was trained with"):
        Generation(generation.model, tokenizer(280), "small")
