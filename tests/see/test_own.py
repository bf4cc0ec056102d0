"""The model that ships with the package, and folders of its kind."""

import shutil

import numpy as np
import pytest
import torch

pytest.importorskip("tokenizers")

import regard
from regard import models
from regard.errors import FileError, OptionError
from regard.see import load

TEXT = "The cat sat on the mat"


@pytest.fixture(scope="module")
def encoder():
    return load()


def test_what_is_seen_is_what_the_model_does(encoder):
    record = encoder.look(TEXT).record
    ids = torch.tensor([encoder.tokenizer.encode(TEXT).ids])
    with torch.no_grad(), regard.watch(encoder.model) as again:
        encoder.model(ids)
    assert record.tokens == ("[CLS]", " The", " cat", " sat", " on", " the", " mat", "[SEP]")
    assert len(record.layers) == len(again.layers) == encoder.model.config.depth
    for layer, other in zip(record.layers, again.layers, strict=True):
        np.testing.assert_array_equal(layer.weights(), other.weights())
        np.testing.assert_allclose(layer.weights().sum(-1), 1, atol=1e-5)


def test_a_pair_is_one_text_behind_the_other(encoder):
    tokens = encoder.look("The cat", pair="a mat").record.layers[0].queries[0]
    assert tokens.texts == ("[CLS]", " The", " cat", "[SEP]", " a", " mat", "[SEP]")
    assert tokens.segments == (0, 0, 0, 0, 1, 1, 1)


@pytest.mark.parametrize("text", ["a", "\0", "\x1b[31m", "👨‍👩‍👧‍👦 🇩🇪", "مرحبا بالعالم", "\ud800 half", "猫坐在垫子上"])
def test_any_text_can_be_read(encoder, text):
    layer = encoder.look(text).record.layers[-1]
    assert layer.map.shape[1] == len(layer.queries[0]) > 2


def test_what_it_cannot_do_is_said(encoder):
    with pytest.raises(OptionError, match="encoder only reads"):
        encoder.look(TEXT, generate=3)
    with pytest.raises(OptionError, match="6,003 tokens, and encoder takes at most 1,024"):
        encoder.look("the cat " * 3000)


def test_a_folder_of_its_kind(tmp_path):
    shutil.copytree(models.folder("encoder"), tmp_path / "mine")
    found = load(str(tmp_path / "mine"))
    assert found.look("a").record.model == load().look("a").record.model
    (tmp_path / "mine" / "tokenizer.json").write_text("{}")
    with pytest.raises(FileError, match=r"tokenizer\.json"):
        load(str(tmp_path / "mine"))


def test_a_name_is_needed():
    with pytest.raises(OptionError, match="no name"):
        load("  ")
