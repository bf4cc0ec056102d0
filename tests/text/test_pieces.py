"""The pieces of a tokenizer, as they are read: four ways of writing them, one way of showing them."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text.pieces import _bytes, joined, readable


def read(*pieces, specials=None):
    found = readable(pieces, specials)
    return [piece.text for piece in found], [piece.begins for piece in found]


def words(*pieces, specials=None):
    """The words that the pieces make together."""
    made = []
    for piece in readable(pieces, specials):
        made = [*made, [piece.text]] if piece.begins else [*made[:-1], [*made[-1], piece.text]]
    return [joined(texts) for texts in made]


def byte_level(text):
    """A text as byte-level BPE writes it, a letter for each byte."""
    letters = {byte: letter for letter, byte in _bytes().items()}
    return "".join(letters[byte] for byte in text.encode())


class TestFourWays:
    def test_wordpiece(self):
        texts, begins = read("the", "cat", "##s", "sit", "##ting", ".")
        assert texts == ["the", "cat", "s", "sit", "ting", "."]
        assert begins == [True, True, False, True, False, True]

    def test_sentencepiece(self):
        texts, begins = read("▁the", "▁cat", "s", "▁sat", ".")
        assert texts == [" the", " cat", "s", " sat", "."]
        assert begins == [True, True, False, True, True]

    def test_byte_level(self):
        texts, begins = read("The", "Ġcat", "s", "Ġsat", "Ċ", "!")
        assert texts == ["The", " cat", "s", " sat", "\n", "!"]
        assert begins == [True, True, False, True, True, True]

    def test_ends(self):
        texts, begins = read("the</w>", "cat", "s</w>", "sat</w>")
        assert texts == ["the", "cat", "s", "sat"]
        assert begins == [True, True, False, True]

    def test_plain(self):
        assert read("the", " cat", "s") == (["the", " cat", "s"], [True, True, False])

    def test_none(self):
        assert readable([]) == []


class TestBytes:
    def test_characters_in_parts_are_shown_as_numbers(self):
        smile = byte_level("😀")
        texts, begins = read(*smile, byte_level(" ok"))
        assert texts == ["⟨f0⟩", "⟨9f⟩", "⟨98⟩", "⟨80⟩", " ok"]
        assert begins == [True, False, False, False, True]

    def test_and_joined_again(self):
        assert words(*byte_level("😀"), byte_level(" ok")) == ["😀", "ok"]
        assert words("▁a", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>") == ["a", "😀"]

    def test_bytes_that_make_no_character(self):
        assert read("<0xFF>", "▁a")[0] == ["⟨ff⟩", " a"]
        assert joined(["⟨ff⟩"]) == "\ufffd"

    def test_accents_stay_in_their_word(self):
        assert words(byte_level("caf"), *byte_level("é"), byte_level("s")) == ["cafés"]


class TestScripts:
    def test_scripts_without_blanks_have_a_word_in_each_token(self):
        assert words("▁猫", "坐在", "垫子") == ["猫", "坐在", "垫子"]

    def test_arabic_goes_on(self):
        assert words("▁مر", "حبا", "▁بال", "عالم") == ["مرحبا", "بالعالم"]


class TestMarks:
    def test_marks_are_words_of_their_own(self):
        pieces = ("[CLS]", "cat", "##s", "[SEP]")
        texts, begins = read(*pieces, specials=[True, False, False, True])
        assert texts == ["[CLS]", "cat", "s", "[SEP]"]
        assert begins == [True, True, False, True]

    def test_a_mark_is_shown_as_it_is_written(self):
        assert read("<|Ġend|>", "Ġa", specials=[True, False])[0] == ["<|Ġend|>", " a"]

    def test_a_word_begins_after_a_mark(self):
        assert words("<s>", "s", "▁a", specials=[True, False, False]) == ["<s>", "s", "a"]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20), st.data())
def test_byte_level_pieces_say_what_stands_in_the_text(text, data):
    """However a text is cut, its words together are the text again, blanks between them aside."""
    letters = byte_level(f" {text}")
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(letters) - 1)), max_size=6)))
    edges = [0, *(cut for cut in cuts if cut < len(letters)), len(letters)]
    pieces = [letters[begin:end] for begin, end in pairwise(edges)]
    shown = "".join(words(*pieces))
    if "⟨" not in text and "\ufffd" not in shown:
        assert shown.replace(" ", "") == text.replace(" ", "")


def test_the_pieces_of_the_model_that_ships_with_the_package():
    pytest.importorskip("tokenizers")
    from regard import models

    vocabulary = json.loads((models.folder("encoder") / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    assert all(piece.text for piece in readable(list(vocabulary)))
