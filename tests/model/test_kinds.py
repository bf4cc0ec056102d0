"""Models by their kind, and files that only look like what they are not."""

import json

import pytest
import torch

from regard.errors import FileError
from regard.model import Classifier, ClassifierConfig, LanguageModel, LanguageModelConfig, ReaderConfig, load
from regard.model.kinds import KINDS, model_of
from regard.model.saved import safetensors


def small():
    return LanguageModel(LanguageModelConfig(vocabulary=11, width=8, heads=2, depth=1, hidden=16))


def test_a_folder_gives_the_model_that_it_holds(tmp_path):
    reader = ReaderConfig(vocabulary=11, width=8, heads=2, depth=1, hidden=16)
    classifier = Classifier(ClassifierConfig(reader=reader, labels=("no", "yes")))
    classifier.save(tmp_path / "classifier")
    small().save(tmp_path / "language model")
    found = load(tmp_path / "classifier")
    assert isinstance(found, Classifier)
    assert found.config == classifier.config
    assert isinstance(load(tmp_path / "language model"), LanguageModel)


def test_each_kind_is_the_one_that_its_class_names():
    for kind, (file, name) in KINDS.items():
        module = __import__(f"regard.model.{file}", fromlist=[name])
        assert getattr(module, name).kind == kind


def test_an_unknown_kind_is_told_with_those_that_are_known(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"kind": "regard.Oracle"}))
    with pytest.raises(FileError, match=r"'regard\.Oracle', which this Regard does not know; it knows Translator"):
        model_of(tmp_path)


@pytest.mark.parametrize("name", ["depth", "vocabulary", "width", "hidden"])
def test_a_damaged_number_is_told_before_it_is_paid_for(tmp_path, name):
    small().save(tmp_path)
    told = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**told, name: 10**12}))
    with pytest.raises(FileError, match=f"{name} is 1000000000000; it must be at most"):
        load(tmp_path)


def test_a_file_whose_first_bytes_are_those_of_a_pickle_by_chance_is_read(tmp_path):
    """The length of a safetensors header comes first; of 1,152 bytes it begins as a pickle of protocol 4 does."""
    model = small()
    model.save(tmp_path)
    weights = model.state_dict()
    for room in range(2000):
        content = safetensors().save(weights, metadata={"kind": model.kind, "filling": "x" * room})
        if content[:2] == b"\x80\x04":
            break
    else:
        raise AssertionError("no such length was found")
    (tmp_path / "model.safetensors").write_bytes(content)
    found = load(tmp_path).state_dict()
    assert all(torch.equal(weight, found[name]) for name, weight in weights.items())


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_under_the_name_of_weights_is_never_loaded(tmp_path, protocol):
    import pickle

    small().save(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(pickle.dumps({"a": 1}, protocol=protocol))
    with pytest.raises(FileError, match="a pickle under another name, which Regard never loads"):
        load(tmp_path)


def test_what_torch_saves_is_never_loaded(tmp_path):
    small().save(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save({"a": torch.zeros(2)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(FileError, match=r"has pytorch_model\.bin, a pickle, and no model\.safetensors"):
        load(tmp_path)
    (tmp_path / "pytorch_model.bin").rename(tmp_path / "model.safetensors")
    with pytest.raises(FileError, match="a pickle under another name"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("vocabulary", None), ("depth", None), ("tokenizer", 3), ("tokenizer", None), ("tied", "no"), ("dropout", True)],
)
def test_a_field_of_the_wrong_kind_is_told(tmp_path, name, value):
    small().save(tmp_path)
    told = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**told, name: value}))
    with pytest.raises(FileError, match=rf"config\.json .*{name}"):
        load(tmp_path)
