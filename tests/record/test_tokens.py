"""The tokens on one side of a map: words out of pieces, the texts of a pair, and lists that do not fit."""

import pytest

from regard.errors import OptionError, ShapeError
from regard.record import Tokens

PIECES = Tokens(
    ("[CLS]", " un", "believ", "able", " cats", "[SEP]", " yes", "[SEP]"),
    (True, True, False, False, True, True, True, True),
    segments=(0, 0, 0, 0, 0, 0, 1, 1),
)


def test_words_are_put_together_from_their_pieces():
    assert PIECES.word_edges == [0, 1, 4, 5, 6, 7, 8]
    assert PIECES.words == ("[CLS]", "unbelievable", "cats", "[SEP]", "yes", "[SEP]")
    assert len(PIECES) == 8


def test_bytes_of_one_character_make_it_together():
    tokens = Tokens((" caf", "⟨c3⟩", "⟨a9⟩", " au"), (True, False, False, True))
    assert tokens.words == ("café", "au")


def test_a_text_that_begins_within_a_word():
    """A piece that goes on with a word nobody has: the word begins with it all the same."""
    tokens = Tokens(("ing", "s", " on"), (False, False, True))
    assert tokens.word_edges == [0, 2, 3]
    assert tokens.words == ("ings", "on")


def test_no_tokens():
    tokens = Tokens.of([])
    assert (len(tokens), tokens.word_edges, tokens.words) == (0, [0], ())


def test_the_texts_of_a_pair():
    assert PIECES.span("A") == PIECES.span(0) == slice(0, 6)
    assert PIECES.span("B") == PIECES.span(1) == slice(6, 8)


def test_padding_behind_a_pair_belongs_to_neither_text():
    """Tokenizers mark it 0, as they mark the first text."""
    padded = Tokens(tuple("abcdef"), (True,) * 6, segments=(0, 0, 1, 1, 0, 0))
    assert (padded.span("A"), padded.span("B")) == (slice(0, 2), slice(2, 4))


@pytest.mark.parametrize("segment", ["C", "a", 2, -1])
def test_a_text_that_a_pair_does_not_have(segment):
    with pytest.raises(OptionError, match=rf"there is no text {segment!r} here; a pair has A and B\."):
        PIECES.span(segment)


@pytest.mark.parametrize("segment", ["A", "B", 0, 1])
def test_one_text_is_no_pair(segment):
    with pytest.raises(OptionError, match=f"there is no text {segment!r} here.*this record is of one text"):
        Tokens.of("abc").span(segment)


def test_tokens_without_texts_are_their_places():
    assert Tokens.numbered(3) == Tokens(("0", "1", "2"), (True, True, True))
    assert Tokens.numbered(0) == Tokens((), ())


def test_tokens_that_somebody_gives_are_words():
    tokens = Tokens.of(["New York", "is", 7])
    assert tokens.texts == tokens.words == ("New York", "is", "7")
    assert tokens.word_edges == [0, 1, 2, 3]
    assert (tokens.segments, tokens.generated) == (None, None)


def test_lists_of_different_lengths():
    with pytest.raises(ShapeError, match=r"there are 2 tokens and 1 begins\."):
        Tokens(("a", "b"), (True,))
    with pytest.raises(ShapeError, match=r"there are 2 tokens and 3 segments\."):
        Tokens(("a", "b"), (True, True), segments=(0, 0, 1))
    with pytest.raises(ShapeError, match=r"there are 2 tokens and 0 segments\."):
        Tokens(("a", "b"), (True, True), segments=())
