"""The classifier: what it pools, learns, keeps and refuses."""

import re
from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from regard.errors import FileError, OptionError
from regard.model import Classifier, ClassifierConfig
from regard.model.pooling import POOLINGS, Pooling

from .reading import CONFIG, padded, texts, train

LABELS = ("good", "bad", "neither")


def make(pooling="mean", **changes):
    return Classifier(ClassifierConfig(reader=CONFIG, labels=LABELS, pooling=pooling, dropout=0.0, **changes)).eval()


@pytest.fixture(params=POOLINGS)
def pooling(request):
    return request.param


def stirred(model):
    """With a query that is no longer 0, so that attention differs from the mean."""
    if model.pooling.query is not None:
        torch.nn.init.normal_(model.pooling.query)
    return model


def test_logits_for_each_label(pooling):
    ids, mask = padded(texts(4))
    assert make(pooling)(ids, mask).shape == (4, 3)
    assert make(pooling)(ids[:1, :5]).shape == (1, 3)


def test_padding_changes_nothing(pooling, float64):
    model, rows = stirred(make(pooling)), texts(5)
    found = model(*padded(rows, more=4))
    alone = torch.cat([model(torch.tensor([row])) for row in rows])
    torch.testing.assert_close(found, alone, rtol=1e-12, atol=1e-12)


def test_weights_add_up_and_leave_padding_out(pooling):
    model = stirred(make(pooling))
    ids, mask = padded(texts(5), more=4)
    pooled = model.pooled(ids, mask)
    torch.testing.assert_close(pooled.weights.sum(1), torch.ones(5))
    assert (pooled.weights[~mask] == 0).all()
    mixed = torch.einsum("bn,bne->be", pooled.weights, model.reader(ids, mask))
    torch.testing.assert_close(pooled.vectors, mixed)


def test_each_pooling_is_what_it_says():
    ids, mask = padded(texts(5))
    mean, first, attention = (make(kind) for kind in ("mean", "first", "attention"))
    even = mask / mask.sum(1, keepdim=True)
    torch.testing.assert_close(mean.pooled(ids, mask).weights, even)
    torch.testing.assert_close(first.pooled(ids, mask).vectors, first.reader(ids, mask)[:, 0])
    torch.testing.assert_close(attention.pooled(ids, mask).weights, even, msg="nothing is learned yet")
    vectors = attention.reader(ids, mask)
    stirred(attention)
    scores = (vectors @ attention.pooling.query / 32**0.5).masked_fill(~mask, -torch.inf)
    torch.testing.assert_close(attention.pooled(ids, mask).weights, scores.softmax(-1))


def test_a_text_of_padding_alone_is_finite(pooling):
    model = stirred(make(pooling)).train()
    ids, mask = padded(texts(3))
    mask[1] = False
    found = model(ids, mask)
    assert found.isfinite().all()
    assert (model.pooled(ids, mask).weights[1] == 0).all()
    found.square().sum().backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())


def test_labels_are_learned_by_heart(pooling):
    model = make(pooling)
    ids, mask = padded(texts(64))
    wanted = torch.arange(64) % 3
    train(model, lambda: functional.cross_entropy(model(ids, mask), wanted))
    assert (model(ids, mask).argmax(-1) == wanted).double().mean() >= 0.99


def test_saved_and_loaded_to_the_bit(pooling, tmp_path):
    model = stirred(make(pooling))
    model.save(tmp_path)
    loaded = Classifier.load(tmp_path)
    assert loaded.config == model.config
    ids, mask = padded(texts(3))
    assert torch.equal(loaded(ids, mask), model(ids, mask))


def test_labels_that_fit_no_weights(tmp_path):
    make().save(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(path.read_text().replace('"neither"', '"neither", "other"'))
    with pytest.raises(FileError, match=re.escape("label.bias is (3,), and by config.json beside it (4,)")):
        Classifier.load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"labels": ("one",)}, "there must be 2 or more"),
        ({"labels": ("a", "a")}, "each once"),
        ({"labels": "ab"}, "labels are 'ab'; give names"),
        ({"labels": ("a", 3)}, "give names"),
        ({"pooling": "max"}, "pooling is 'max'; it must be one of 'mean', 'attention', 'first'"),
        ({"dropout": 1}, "dropout is 1"),
        ({"reader": {}}, "it must be a ReaderConfig"),
    ],
)
def test_configs_that_make_no_sense(changes, says):
    with pytest.raises(OptionError, match=re.escape(says)):
        replace(make().config, **changes)


def test_dropout_falls_in_training_alone():
    ids, mask = padded(texts(3))
    model = Classifier(replace(make().config, dropout=0.5)).eval()
    assert torch.equal(model(ids, mask), model(ids, mask))
    model.train()
    assert not torch.equal(model(ids, mask), model(ids, mask))
    with pytest.raises(OptionError, match="width is 0"):
        Pooling("mean", 0)
