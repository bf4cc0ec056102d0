"""Rows of a data set become examples; without `datasets`, it is said what to install."""

import importlib.util

import pytest

from regard.errors import FileError, MissingExtra, OptionError
from regard.text.corpora import hub, rows

ROWS = [
    {"id": 1, "translation": {"en": "one", "zh": "一"}, "label": 0, "score": 0.5, "good": True},
    {"id": 2, "translation": {"en": "two", "zh": None}, "label": 1, "score": 1.5, "good": False},
]


def test_values_become_text():
    corpus = rows(ROWS, {"a": "translation.en", "b": "label", "c": "score", "d": "good"})
    expected = [{"a": "one", "b": "0", "c": "0.5", "d": "true"}, {"a": "two", "b": "1", "c": "1.5", "d": "false"}]
    assert list(corpus) == list(corpus) == expected


def test_what_is_malformed_is_counted():
    corpus = rows(ROWS, {"source": "translation.en", "target": "translation.zh"}, name="pairs, train")
    assert list(corpus) == [{"source": "one", "target": "一"}]
    assert str(corpus.skipped.first[0]) == "pairs, train, line 2: translation.zh is null, not a text or a number"


def test_columns_that_are_not_there():
    with pytest.raises(FileError, match=r"rows has no translation\.de, text; its columns are: id, translation, label"):
        list(rows(ROWS, {"source": "translation.de", "target": "text"}))


def test_rows_must_be_there_again():
    with pytest.raises(OptionError, match="once only"):
        rows(iter(ROWS), ["label"])
    with pytest.raises(OptionError, match="have names"):
        rows(ROWS, {"label": 0})
    with pytest.raises(FileError, match="no row in rows"):
        list(rows([], ["label"]))


@pytest.mark.skipif(importlib.util.find_spec("datasets") is not None, reason="datasets is here")
def test_without_datasets():
    with pytest.raises(MissingExtra, match=r"imdb comes through datasets: pip install regard\[hub\]"):
        hub("imdb", "train", ["text", "label"])
