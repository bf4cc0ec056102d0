"""A folder by its kind, and what is wrong with one that cannot be loaded."""

import json

import pytest
import torch

from regard.errors import FileError
from regard.predictions import load
from regard.predictions.generation import Generation
from regard.predictions.translation import Translation

from .writers import language_model, tokenizer, translator

PIECES = tokenizer()


@pytest.fixture
def folder(tmp_path):
    translator(PIECES).save(tmp_path)
    PIECES.save(tmp_path)
    return tmp_path


def test_a_translator_translates(folder):
    found = load(folder)
    assert isinstance(found, Translation)
    assert found.name == str(folder)
    assert found(["the cat"]) == Translation(translator(PIECES), PIECES, "same")(["the cat"])


def test_with_two_tokenizers(tmp_path):
    other = tokenizer(280, ["der hund lief"])
    translator(PIECES, target_vocabulary=other.size, target_tokenizer=other.hash).save(tmp_path)
    PIECES.save(tmp_path)
    with pytest.raises(FileError, match=r"has no target-tokenizer\.json"):
        load(tmp_path)
    other.save(tmp_path, "target-tokenizer.json")
    assert load(str(tmp_path)).target_tokenizer.hash == other.hash
    PIECES.save(tmp_path, "target-tokenizer.json")
    with pytest.raises(FileError, match="target is not the one"):
        load(tmp_path)


def test_a_language_model_goes_on(tmp_path):
    language_model(PIECES).save(tmp_path)
    PIECES.save(tmp_path)
    assert isinstance(load(tmp_path), Generation)


def test_one_that_ships_by_its_name():
    found = load("encoder")
    assert found.name == "encoder"
    assert type(found).__name__ == "Filling"


def test_a_foreign_tokenizer_is_told(folder):
    tokenizer(280).save(folder)
    with pytest.raises(FileError, match="not the one that its model was trained with"):
        load(folder)


@pytest.mark.parametrize("missing", ["tokenizer.json", "config.json", "model.safetensors"])
def test_a_missing_file_is_named(folder, missing):
    (folder / missing).unlink()
    with pytest.raises(FileError, match=missing):
        load(folder)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt"])
def test_a_pickle_is_never_loaded(folder, name):
    (folder / "model.safetensors").unlink()
    torch.save({"weight": torch.zeros(2)}, folder / name)
    with pytest.raises(FileError, match=f"{name}, a pickle"):
        load(folder)
    (folder / name).rename(folder / "model.safetensors")
    with pytest.raises(FileError, match="a pickle under another name"):
        load(folder)


def test_an_unknown_kind_is_told(folder):
    told = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**told, "kind": "regard.Painter"}))
    with pytest.raises(FileError, match=r"'regard\.Painter', which this Regard does not know; it knows Translator"):
        load(folder)


def test_no_folder_is_told(folder):
    with pytest.raises(FileError, match="there is no folder"):
        load(folder / "nowhere")
    with pytest.raises(FileError, match="is a file"):
        load(folder / "config.json")
