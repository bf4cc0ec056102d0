"""The text encoder: shapes, padding, and folders that are whole, damaged or of something else."""

import json
import re
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.errors import DtypeError, FileError, OptionError, RegardError, ShapeError
from regard.formula import masks
from regard.model.text_encoder import TextEncoder, TextEncoderConfig

CONFIG = TextEncoderConfig(vocabulary=11, width=8, heads=2, depth=2, hidden=12, longest=6)
IDS = torch.tensor([[1, 5, 9, 2], [1, 7, 7, 2]])


@pytest.fixture
def model():
    return TextEncoder(CONFIG).eval()


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path)
    return tmp_path


def test_logits_for_each_place(model):
    assert model(IDS).shape == (2, 4, 11)
    assert model.vectors(IDS).shape == (2, 4, 8)
    torch.testing.assert_close(model(IDS)[:, 1], model.guess(model.vectors(IDS)[:, 1]))
    torch.testing.assert_close(model(IDS.int()), model(IDS))


def test_input_and_output_share_their_matrix(model):
    assert [name for name, weight in model.named_parameters() if 11 in weight.shape] == ["bias", "embedding.weight"]
    model(IDS)[0, 0, 3].backward()
    assert model.embedding.weight.grad[3].abs().sum() > 0, "3 is not in the text, but was asked about"


def test_places_matter(model):
    turned = model.vectors(IDS.flip(1)).flip(1)
    assert not torch.allclose(turned, model.vectors(IDS), atol=1e-4)


def test_padding_changes_nothing(model):
    padded = torch.cat([IDS, torch.zeros(2, 2, dtype=torch.int64)], dim=1)
    found = model(padded, mask=masks.padding_of_ids(padded, 0))[:, :4]
    torch.testing.assert_close(found, model(IDS))
    assert not torch.allclose(model(padded)[:, :4], model(IDS), atol=1e-4)


def test_dropout_falls_in_training_alone(model):
    assert torch.equal(model(IDS), model(IDS))
    model.train()
    assert not torch.equal(model(IDS), model(IDS))


@pytest.mark.parametrize(
    ("ids", "error", "says"),
    [
        ([[1, 2]], DtypeError, "ids is a list; make it a tensor"),
        (torch.ones(1, 2), DtypeError, "ids has dtype torch.float32"),
        (torch.tensor([1, 2]), ShapeError, "ids has shape (2,); it must be (batch, tokens), 1 or more of each. For a"),
        (torch.ones(1, 0, dtype=torch.int64), ShapeError, "ids has shape (1, 0)"),
        (torch.ones(1, 7, dtype=torch.int64), ShapeError, "ids reaches 7 tokens and this model was made for at most 6"),
        (torch.tensor([[1, 11]]), OptionError, "ids holds 11, which is no token id here; they are 0 to 10"),
        (torch.tensor([[1, -1]]), OptionError, "ids holds -1"),
    ],
)
def test_wrong_ids(model, ids, error, says):
    with pytest.raises(error, match=re.escape(says)):
        model(ids)


def test_a_mask_of_booleans_says_where_tokens_are(model, float64):
    model = model.double()
    padded = torch.cat([IDS, torch.zeros(2, 2, dtype=torch.int64)], dim=1)
    torch.testing.assert_close(model(padded, mask=padded != 0)[:, :4], model(IDS), rtol=1e-12, atol=1e-12)
    with pytest.raises(ShapeError, match=re.escape("mask is (2, 4) and the ids are (2, 6)")):
        model(padded, mask=IDS != 0)


def test_what_follows_is_asked_of_the_first_token(model):
    asked = TextEncoder(replace(CONFIG, segments=2, next_sentence=True)).eval()
    vectors = asked.vectors(IDS, segments=torch.tensor([[0, 0, 1, 1]] * 2))
    assert asked.follows(vectors).shape == (2, 2)
    torch.testing.assert_close(asked.follows(vectors), asked.follows(vectors[:, :1]))
    with pytest.raises(OptionError, match="next_sentence=True"):
        model.follows(vectors)


@pytest.mark.parametrize(
    "changes",
    [{"segments": -1}, {"tokenizer": 3}, {"next_sentence": 7}, {"vocabulary": 0}, {"width": 9}, {"depth": 0},
     {"longest": 1.5}, {"dropout": 1.0}, {"norm": "batch"}, {"rotary_base": 0}, {"hidden": -1}, {"activation": "sine"}],
    ids=str,
)  # fmt: skip
def test_shapes_that_make_no_sense(changes):
    with pytest.raises(RegardError, match=str(next(iter(changes.values())))):
        replace(CONFIG, **changes)


def test_saved_and_loaded_to_the_bit(model, folder):
    loaded = TextEncoder.load(folder)
    assert loaded.config == CONFIG
    assert not loaded.training
    assert torch.equal(loaded(IDS), model(IDS))


def test_saved_in_half_precision(model, folder):
    model.save(folder, half=True)
    loaded = TextEncoder.load(folder)
    for name, weight in loaded.state_dict().items():
        assert weight.dtype == torch.float32
        torch.testing.assert_close(weight, model.state_dict()[name].half().float(), rtol=0, atol=0)
    assert {weight.dtype for weight in load_file(folder / "model.safetensors").values()} == {torch.float16}


def test_saving_again_changes_nothing(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    TextEncoder.load(folder).save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert set(before) == {"config.json", "model.safetensors"}, "no temporary file is left"


def test_other_files_of_the_folder_are_kept(model, tmp_path):
    (tmp_path / "README.md").write_text("a card")
    model.save(tmp_path)
    assert (tmp_path / "README.md").read_text() == "a card"


def test_what_half_precision_cannot_hold_is_not_saved(model, folder):
    before = (folder / "model.safetensors").read_bytes()
    with torch.no_grad():
        model.bias[3] = 1e6
    with pytest.raises(OptionError, match="bias has numbers that half precision cannot hold"):
        model.save(folder, half=True)
    assert (folder / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_is_missing(folder, name):
    (folder / name).unlink()
    with pytest.raises(FileError, match=f"cannot read .*{re.escape(name)}: No such file"):
        TextEncoder.load(folder)


@pytest.mark.parametrize("content", [b"", b"\x08\0\0\0\0\0\0\0not json", b"\xff" * 64, None], ids=repr)
def test_weights_that_are_damaged(folder, content):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-7] if content is None else content)
    with pytest.raises(FileError, match=r"model\.safetensors is damaged, or no safetensors file"):
        TextEncoder.load(folder)


def test_weights_of_another_model(folder):
    path = folder / "model.safetensors"
    weights = load_file(path)
    bias = weights.pop("bias")
    save_file(weights, path)
    with pytest.raises(FileError, match=r"model\.safetensors lacks bias"):
        TextEncoder.load(folder)
    save_file({**weights, "bias": bias, **{name: torch.zeros(1) for name in "abcd"}}, path)
    with pytest.raises(FileError, match="has the unknown a, b, c and 1 more"):
        TextEncoder.load(folder)
    save_file({**weights, "bias": bias[:5].clone()}, path)
    with pytest.raises(FileError, match=re.escape("bias is (5,), and by config.json beside it (11,)")):
        TextEncoder.load(folder)
    save_file({**weights, "bias": bias / 0}, path)
    with pytest.raises(FileError, match="bias has numbers that are not finite"):
        TextEncoder.load(folder)


def changed(told, **changes):
    return json.dumps({key: value for key, value in {**told, **changes}.items() if value is not None})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda told: "{", "is not JSON"),
        (lambda told: "[" * 100_000, "is not JSON"),
        (lambda told: "[1]", "has kind 'none'"),
        (lambda told: changed(told, kind="bert"), "has kind 'bert'"),
        (lambda told: changed(told, width=None), "lacks width"),
        (lambda told: changed(told, colour=1), "has the unknown colour"),
        (lambda told: changed(told, heads=3), "describes no model: 3 heads do not divide a width of 8"),
        (lambda told: changed(told, width="8"), "describes no model: width is '8'"),
        (
            lambda told: changed(told, vocabulary=10**6),
            "the file holds 1,395 numbers, config.json describes a model of 9,001,296.",
        ),
        (lambda told: changed(told, vocabulary=10**30), "it must be at most 16,777,216"),
        (lambda told: changed(told, hidden=10**18), "hidden is 1000000000000000000; it must be at most 1,048,576"),
        (lambda told: changed(told, depth=10**12), "depth is 1000000000000; it must be at most 1,024"),
        (lambda told: changed(told, width=2 * 10**12), "width is 2000000000000; it must be at most 65,536"),
        (lambda told: changed(told, norm=[]), "describes no model: norm is ()"),
        (
            lambda told: changed(told, vocabulary=12),
            "bias is (11,), and by config.json beside it (12,)",
        ),
    ],
)
def test_a_config_that_is_damaged_or_of_something_else(folder, change, says):
    path = folder / "config.json"
    path.write_text(change(json.loads(path.read_text())))
    with pytest.raises(FileError, match=re.escape(says)):
        TextEncoder.load(folder)
