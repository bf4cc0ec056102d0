"""Gaps to words, by the encoder that ships with the package."""

import json

import pytest
import torch

from regard import models
from regard.errors import OptionError
from regard.model import TextEncoder
from regard.predictions.filling import Filling
from regard.text.bpe import Tokenizer

LONG = "the river ran by the old house . " * 1500


@pytest.fixture(scope="module")
def fill():
    folder = models.folder("encoder")
    return Filling(TextEncoder.load(folder), Tokenizer.load(folder), "encoder")


def test_gaps_are_filled_in_the_order_given(fill):
    texts = ["The United [MASK] of America.", "He was the [MASK] of the [MASK] .", "It was the first [MASK] of all."]
    found = fill(texts, best=3)
    assert found[0].text == "The United States of America."
    assert [len(one.gaps) for one in found] == [1, 2, 1]
    for text, one in zip(texts, found, strict=True):
        alone = fill([text], best=3)[0]
        for gap, same in zip(one.gaps, alone.gaps, strict=True):
            assert text[gap.start : gap.end] == "[MASK]"
            assert [guess.id for guess in gap.guesses] == [guess.id for guess in same.guesses]
            shares = [guess.probability for guess in gap.guesses]
            assert shares == sorted(shares, reverse=True)
            assert shares == pytest.approx([guess.probability for guess in same.guesses], rel=1e-4)
            assert 0 < sum(shares) < 1
            assert len(shares) == 3


def test_guesses_are_those_of_the_model(fill):
    encoded = fill.tokenizer.encode("The [MASK] sat.")
    with torch.no_grad():
        shares = fill.model(torch.tensor([encoded.ids]))[0, encoded.ids.index(fill.tokenizer.mask)].softmax(-1)
    for guess in fill(["The [MASK] sat."], best=10)[0].gaps[0].guesses:
        assert guess.probability == pytest.approx(float(shares[guess.id]), rel=1e-4)
        assert guess.text.strip() == fill.tokenizer.decode([guess.id]).strip()
    every = fill(["[MASK]"], best=10_000)[0].gaps[0].guesses
    assert len(every) == fill.tokenizer.size - 4, "marks are in no text, so they are no guesses"


def test_a_long_text_is_read_around_each_gap(fill):
    end = "The United [MASK] of America."
    found = fill([f"[MASK] United Kingdom. {LONG}{end}", end])
    assert [one.cut for one in found] == [True, False]
    assert found[0].text.startswith("The United Kingdom.")
    assert found[0].text.endswith("The United States of America.")
    assert len(found[0].gaps) == 2
    assert len(fill.look(LONG + end).tokens) == 1024


@pytest.mark.parametrize("text", ["👨‍👩‍👧‍👦 [MASK] 🇩🇪", "猫[MASK]垫子上", "[MASK]", "\0[MASK]\ud800"])
def test_any_text_can_have_a_gap(fill, text):
    found = fill([text])[0]
    assert len(found.gaps[0].guesses) == 5
    assert "[MASK]" not in found.text
    assert json.loads(json.dumps(found.as_json()))["gaps"][0]["guesses"]


def test_what_it_cannot_fill_is_said(fill, other):
    with pytest.raises(OptionError, match=r"text 2 has no \[MASK\]; write it where a word is to be guessed"):
        fill(["a [MASK]", "no gap"])
    with pytest.raises(OptionError, match="text 1 is empty"):
        fill([""])
    with pytest.raises(OptionError, match="best is 0"):
        fill(["[MASK]"], best=0)
    with pytest.raises(OptionError, match="the tokenizer of it is not the one"):
        Filling(fill.model, other, "it")


def test_looking_needs_no_gap(fill):
    assert fill.look("The cat sat").tokens == ("[CLS]", " The", " cat", " sat", "[SEP]")
    assert "[MASK]" in fill.look("The [MASK] sat").tokens
