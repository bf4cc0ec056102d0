"""`regard evaluate` and `regard export`, on models that were never trained: what matters is what is told of them."""

import json
import math

import numpy as np
import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")
pytest.importorskip("torch")

import torch

from regard.predictions import load
from regard.text.bpe import Tokenizer
from regard.training.recipes import TASKS

from ..refusals import refused
from .folders import TEXTS, save_all


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return save_all(tmp_path_factory.mktemp("trained"))


def measured(run, *arguments):
    code, out, err = run("evaluate", *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


class TestEvaluate:
    def test_translations(self, run, folders, tmp_path):
        pytest.importorskip("sacrebleu")
        own = [one.text for one in load(folders["translator"])(TEXTS)]
        rows = [f"{source}\t{target}" for source, target in zip(TEXTS, own, strict=True)]
        (tmp_path / "pairs.tsv").write_text("\n".join(["en\tzh", *rows]))
        arguments = [tmp_path / "pairs.tsv", "--model", folders["translator"], "--fields", "source=en,target=zh"]
        told = measured(run, *arguments)
        assert told["examples"] == 4
        assert math.isclose(told["numbers"]["BLEU"], 100)  # its own translations are what it is measured by
        assert told["signatures"]["BLEU"].startswith("nrefs:1")
        code, out, err = run("evaluate", *arguments)
        assert (code, err) == (0, "")
        assert f"BLEU: {told['signatures']['BLEU']}" in " ".join(out.split())

    @pytest.mark.parametrize(
        ("task", "names"), [("translation", ["BLEU", "chrF"]), ("summarisation", ["ROUGE-1", "ROUGE-2", "ROUGE-L"])]
    )
    def test_a_folder_says_how_it_was_trained(self, run, tmp_path, task, names):
        if task == "translation":
            pytest.importorskip("sacrebleu")
        folder = save_all(tmp_path)["translator"]
        recipe = TASKS[task](data={"form": "tsv", "fields": {"source": "long", "target": "short"}})
        recipe.save(folder, task)
        (tmp_path / "pairs.txt").write_text("long\tshort\tother\na cat\ta\tb\n")
        told = measured(run, tmp_path / "pairs.txt", "--model", folder)
        assert (told["examples"], list(told["numbers"])) == (1, names)
        (tmp_path / "other.csv").write_text("a,b\na cat,a\na dog,a\n")  # what is said goes before
        told = measured(
            run, tmp_path / "other.csv", "--model", folder, "--form", "csv", "--fields", "source=a,target=b"
        )
        assert told["examples"] == 2

    def test_without_a_run_all_is_measured(self, run, folders, tmp_path):
        pytest.importorskip("sacrebleu")
        (tmp_path / "pairs.tsv").write_text("source\ttarget\na cat\ta\n")
        told = measured(run, tmp_path / "pairs.tsv", "--model", folders["translator"])
        assert list(told["numbers"]) == ["BLEU", "chrF", "ROUGE-1", "ROUGE-2", "ROUGE-L"]

    @pytest.mark.parametrize("content", [b"task = ", b"\xff", b"[data]", b"task = 'translation'\ndata = 3"])
    def test_a_run_that_is_damaged(self, run, tmp_path, content):
        folder = save_all(tmp_path)["translator"]
        (folder / "run.toml").write_bytes(content)
        (tmp_path / "pairs.tsv").write_text("source\ttarget\na cat\ta\n")
        refused(run("evaluate", tmp_path / "pairs.tsv", "--model", folder), 1, "run.toml is damaged")

    def test_running_text(self, run, folders, tmp_path):
        (tmp_path / "text.txt").write_text("\n".join(TEXTS))
        told = measured(run, tmp_path / "text.txt", "--model", folders["language-model"])
        tokenizer, model = Tokenizer.load(folders["language-model"]), load(folders["language-model"]).model
        ids = [number for text in tokenizer.ids(TEXTS) for number in (*text, tokenizer.last)]
        longest, losses = model.config.longest, []
        with torch.no_grad():
            for start in range(0, len(ids) - 1, longest):
                window = torch.tensor([ids[start : start + longest + 1]])
                logits = model(window[:, :-1])[0]
                losses += torch.nn.functional.cross_entropy(logits, window[0, 1:], reduction="none").tolist()
        assert math.isclose(told["numbers"]["loss"], np.mean(losses), rel_tol=1e-5)
        assert math.isclose(told["numbers"]["perplexity"], math.exp(np.mean(losses)), rel_tol=1e-5)

    def test_hidden_words(self, run, tmp_path):
        (tmp_path / "text.txt").write_text("The cat sat on the mat and the dog sat on the floor.\n" * 20)
        assert measured(run, tmp_path / "text.txt", "--model", "encoder")["numbers"]["accuracy"] > 0.1

    def test_answers(self, run, folders, tmp_path):
        found = load(folders["answerer"])([("who sat?", TEXTS[0])])[0]
        answer = [found.text, found.start] if found.text else ["", -1]
        (tmp_path / "asked.jsonl").write_text(json.dumps({"context": TEXTS[0], "qas": [["who sat?", *answer]]}))
        told = measured(run, tmp_path / "asked.jsonl", "--model", folders["answerer"])
        assert told["numbers"] == {"exact match": 1.0, "F1": 1.0}

    def test_lines_that_were_skipped_are_told(self, run, folders, tmp_path):
        (tmp_path / "labels.tsv").write_text("text\tlabel\na cat\tgood\nbroken\nb\tbad\n")
        code, out, _ = run("evaluate", tmp_path / "labels.tsv", "--model", folders["classifier"])
        assert code == 0
        assert "2 examples\n1 malformed ones were skipped" in out

    def test_refused(self, run, folders, tmp_path):
        (tmp_path / "labels.tsv").write_text("text\tlabel\na cat\tsuperb\n")
        data, model = tmp_path / "labels.tsv", ["--model", folders["classifier"]]
        refused(run("evaluate", data, *model), 2, "does not know: superb; it knows good, bad")
        refused(run("evaluate", data, *model, "--fields", "text=text"), 2, "label is needed as well")
        refused(run("evaluate", data, *model, "--form", "xml"), 2, "form is 'xml'; it must be one of")
        refused(run("evaluate", tmp_path / "none.tsv", *model), 1, "none.tsv")
        refused(run("evaluate", data), 2, "--model")


class TestExport:
    def test_the_same_translations(self, run, folders, tmp_path):
        ctranslate2 = pytest.importorskip("ctranslate2")
        code, out, err = run("export", "--model", folders["translator"], "--out", tmp_path / "ct2")
        assert (code, err) == (0, "")
        assert out == f"written: {tmp_path / 'ct2'}, for ctranslate2\n"
        ours = load(folders["translator"])
        engine = ctranslate2.Translator(str(tmp_path / "ct2"), inter_threads=1, intra_threads=1)
        assert Tokenizer.load(tmp_path / "ct2").hash == ours.tokenizer.hash  # or nobody could make its pieces
        pieces = [[ours.tokenizer.piece(number) for number in ids] + ["[SEP]"] for ids in ours.tokenizer.ids(TEXTS)]
        marks = [["[PAD]"], ["[CLS]"], ["[MASK]"]]  # ours never writes them, trained or not
        found = engine.translate_batch(pieces, beam_size=1, max_decoding_length=8, suppress_sequences=marks)
        written = [[ours.tokenizer.id(piece) for piece in one.hypotheses[0]] for one in found]
        assert [ours.tokenizer.decode(ids) for ids in written] == [
            one.text for one in ours(TEXTS, width=1, longest=8)
        ]  # fmt: skip

    def test_refused(self, run, folders, tmp_path):
        refused(run("export", "--model", folders["classifier"], "--out", tmp_path / "x"), 2, "holds a Classifier")
        refused(run("export", "--model", folders["translator"]), 2, "--out")
        options = ["--out", tmp_path / "x", "--to", "onnx"]
        refused(run("export", "--model", folders["translator"], *options), 2, "onnx")
