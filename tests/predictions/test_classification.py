"""Texts to labels: in order, cut in the open, whatever the text."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

import regard
from regard.errors import DtypeError, OptionError
from regard.model import Classifier, ClassifierConfig
from regard.predictions.classification import Classification
from regard.predictions.reading import by_length, padded

from .conftest import WORDS


@pytest.fixture(scope="module")
def classify(shape, tokenizer, train):
    """One that was trained to tell whether a text says good or bad."""
    torch.manual_seed(0)
    model = Classifier(ClassifierConfig(reader=shape, labels=("good", "bad"), pooling="attention"))
    said = [
        (" ".join([*WORDS[n % 9 : n % 9 + n % 7], ("good", "bad")[n % 2], *WORDS[: n % 5]]), n % 2) for n in range(64)
    ]
    ids, mask = padded(tokenizer.ids([text for text, _ in said], ends=True), tokenizer.pad, torch.device("cpu"))
    wanted = torch.tensor([label for _, label in said])
    train(model, lambda: functional.cross_entropy(model(ids, mask), wanted), 60)
    return Classification(model, tokenizer, "mine")


def test_texts_get_their_labels_in_their_order(classify):
    texts = ["the cat is bad", "so good", "bad", "it is very very very good and so is the dog", "a bad mat"]
    found = classify(texts)
    assert [one.label for one in found] == ["bad", "good", "bad", "good", "bad"]
    for one in found:
        assert one.probability == max(one.probabilities.values()) > 0.5
        assert sum(one.probabilities.values()) == pytest.approx(1)
        assert set(one.probabilities) == {"good", "bad"}
    for text, one in zip(texts, found, strict=True):
        assert classify([text])[0].probability == pytest.approx(one.probability, abs=1e-6)


def test_what_is_cut_is_said(classify):
    fits, long, longer = classify(["good", "red " * 10_000 + "bad", "good " * 10_000])
    assert (fits.cut, long.cut, longer.cut) == (False, True, True)
    assert longer.label == "good"
    kept = classify(["red " * 21 + "red"])[0]
    assert not kept.cut
    assert kept.probabilities == pytest.approx(long.probabilities, abs=1e-6), "the end was left out"


@pytest.mark.parametrize("text", ["👨‍👩‍👧‍👦 🇩🇪", "猫坐在垫子上", "\0", "\ud800 half", "x"])
def test_any_text_has_a_label(classify, text):
    assert classify([text])[0].label in ("good", "bad")


def test_results_are_json(classify):
    told = json.loads(json.dumps(classify(["good"])[0].as_json()))
    assert set(told) == {"label", "probability", "probabilities", "cut"}
    assert classify([]) == []


def test_what_it_cannot_read_is_said(classify):
    with pytest.raises(OptionError, match="text 2 is empty"):
        classify(["good", " \n"])
    with pytest.raises(DtypeError, match=re.escape("one text is given; give a list of them, ['good']")):
        classify("good")
    with pytest.raises(DtypeError, match="text 1 is a NoneType"):
        classify([None])


def test_a_tokenizer_that_is_not_the_models(classify, other, shape):
    with pytest.raises(OptionError, match="the tokenizer of mine is not the one that its model was trained with"):
        Classification(classify.model, other, "mine")
    small = Classifier(ClassifierConfig(reader=replace(shape, tokenizer="", vocabulary=265), labels=("a", "b")))
    with pytest.raises(OptionError, match="has 270 pieces and its model knows 265"):
        Classification(small, other, "mine")


def test_looking_changes_nothing_and_shows_what_ran(classify):
    classify.model.train()
    before = classify(["the cat is bad"])
    record = classify.look("the cat is bad")
    assert classify.model.training, "it is left as it was"
    classify.model.eval()
    assert classify(["the cat is bad"]) == before
    assert record.tokens == ("[CLS]", " the", " cat", " is", " bad", "[SEP]")
    with torch.no_grad(), regard.watch(classify.model) as again:
        classify.model(torch.tensor([classify.tokenizer.encode("the cat is bad").ids]))
    np.testing.assert_array_equal(record.layers[0].weights(), again.layers[0].weights())
    assert len(classify.look("red " * 50).tokens) == 24


def test_batches_hold_so_many_tokens():
    lengths = [5, 1, 9, 3, 30, 2]
    found = list(by_length(lengths, tokens=10))
    assert sorted(number for batch in found for number in batch) == list(range(6))
    assert found == [[1, 5, 3], [0], [2], [4]]
