"""The answerer: where an answer may be, what it learns and keeps."""

import re
from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from regard.errors import OptionError, ShapeError
from regard.model import Answerer, AnswererConfig

from .reading import CONFIG, padded, texts, train

SHAPE = replace(CONFIG, segments=2)


@pytest.fixture
def model():
    return Answerer(AnswererConfig(reader=SHAPE)).eval()


def questions(count):
    """Questions of 3 tokens with their marks, and contexts: ids, mask, segments."""
    rows = [[1, 4 + number % 8, 2, *context[1:]] for number, context in enumerate(texts(count))]
    ids, mask = padded(rows)
    return ids, mask, ((torch.arange(ids.shape[1]) > 2) & mask).long()


def test_answers_lie_in_the_context_or_nowhere(model):
    ids, mask, segments = questions(5)
    for edge in model(ids, mask, segments):
        assert edge.shape == ids.shape
        assert edge[:, 0].isfinite().all()
        assert edge[segments == 1].isfinite().all()
        assert (edge[:, 1:][segments[:, 1:] == 0] == -torch.inf).all()


def test_the_rule_does_not_trust_the_caller(model):
    """Padding that is marked as context is barred nevertheless."""
    ids, mask, segments = questions(5)
    careless = torch.where(mask, segments, 1)
    for edge in model(ids, mask, careless):
        assert (edge[~mask] == -torch.inf).all()


def test_padding_changes_nothing(model, float64):
    model = model.double()
    ids, mask, segments = questions(5)
    for number, (start, end) in enumerate(zip(*model(ids, mask, segments), strict=True)):
        size = int(mask[number].sum())
        alone = model(ids[number : number + 1, :size], None, segments[number : number + 1, :size])
        for found, one in zip((start, end), alone, strict=True):
            torch.testing.assert_close(found[:size], one[0], rtol=1e-12, atol=1e-12)


def test_a_row_of_padding_alone_is_finite(model):
    ids, mask, segments = questions(3)
    mask[1] = False
    start, end = model.train()(ids, mask, segments)
    assert start[1, 0].isfinite()
    (start.log_softmax(-1)[:, 0] + end.log_softmax(-1)[:, 0]).sum().backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())


def test_answers_are_learned_by_heart(model):
    ids, mask, segments = questions(64)
    lengths = mask.sum(1) - 4  # tokens of the context
    first = 3 + torch.arange(64) % lengths
    last = torch.minimum(first + 1, mask.sum(1) - 2)
    first[::8] = last[::8] = 0  # no answer

    def loss():
        return sum(
            functional.cross_entropy(*pair) for pair in zip(model(ids, mask, segments), (first, last), strict=True)
        )

    train(model, loss, steps=250)
    start, end = model(ids, mask, segments)
    assert ((start.argmax(-1) == first) & (end.argmax(-1) == last)).double().mean() >= 0.99


def test_saved_and_loaded_to_the_bit(model, tmp_path):
    model.save(tmp_path)
    loaded = Answerer.load(tmp_path)
    assert loaded.config == model.config
    for one, other in zip(loaded(*questions(3)), model(*questions(3)), strict=True):
        assert torch.equal(one, other)


def test_what_does_not_fit_is_said(model):
    with pytest.raises(OptionError, match="segments is 0; an answerer has 2, question and context"):
        AnswererConfig(reader=CONFIG)
    with pytest.raises(OptionError, match="it must be a ReaderConfig"):
        AnswererConfig(reader=None)
    with pytest.raises(ShapeError, match=re.escape("segments are missing")):
        model(torch.tensor([[1, 4, 2]]))
