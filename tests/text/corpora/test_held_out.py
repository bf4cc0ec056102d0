"""A part held out: by a hash of the text, so that it is stable and no text is on both sides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import FileError, OptionError
from regard.text.corpora import Bad, Corpus, split

EXAMPLES = [{"text": f"review {number}", "label": str(number % 2)} for number in range(10_000)]
FOR_EVER = ["review 238", "review 638", "review 7319", "review 7525", "review 8731"]  # of seed 1


def texts(corpus):
    return [example["text"] for example in corpus]


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9])
def test_its_share(share):
    kept, held = split(Corpus(EXAMPLES), share, seed=3)
    assert abs(len(list(held)) - share * 10_000) < 200  # four times the deviation of a fair draw, or more
    assert sorted(texts(kept) + texts(held)) == sorted(texts(EXAMPLES))


def test_it_is_the_same_for_ever():
    held = split(Corpus(EXAMPLES), 0.0005, seed=1).held
    assert texts(held) == texts(held) == FOR_EVER
    assert texts(split(Corpus(EXAMPLES), 0.0005, seed=2).held) != FOR_EVER


@given(st.lists(st.text(max_size=2)), st.integers())
def test_the_same_text_is_never_on_both_sides(found, seed):
    examples = [{"text": text, "label": str(number)} for number, text in enumerate(found)]
    kept, held = split(Corpus(examples), 0.5, seed)
    assert not set(texts(kept)) & set(texts(held))
    assert len(list(kept)) + len(list(held)) == len(found)


@pytest.mark.parametrize(
    ("example", "other", "together"),
    [
        ({"source": "a", "target": "{}"}, "target", True),
        ({"question": "{}", "context": "a"}, "question", True),
        ({"one": "{}", "two": "a"}, "one", False),
    ],
)
def test_what_decides(example, other, together):
    corpus = Corpus([example | {other: str(number)} for number in range(100)])
    assert (0 in [len(list(part)) for part in split(corpus, 0.5)]) == together


def test_what_is_malformed_counts_on_both_sides():
    corpus = Corpus([*EXAMPLES[:10], Bad("a", 1, "why"), Bad("a", 2, "why")], most_bad=2)
    for part in split(corpus, 0.5):
        assert list(part)
        assert part.skipped.count == 2
    for part in split(Corpus(corpus.found, most_bad=1), 0.5):
        with pytest.raises(FileError, match="a, line 2: why"):
            list(part)


@pytest.mark.parametrize("share", [0, 1, -0.1, 10, float("nan")])
def test_a_share_is_between_none_and_all(share):
    with pytest.raises(OptionError, match=f"share is {share}"):
        split(Corpus(EXAMPLES), share)
