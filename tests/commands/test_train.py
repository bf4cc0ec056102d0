"""`regard train` and what follows it: settings from the command line, a run, and the folder used and measured."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import tomllib

import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")
pytest.importorskip("torch")

from regard.commands.train import Task
from regard.training.recipes import TASKS

from ..refusals import refused

SMALL = ["--set", "width=32", "--set", "heads=2", "--set", "depth=1", "--set", "hidden=32", "--set", "size=300"]
QUICK = ["--set", "tokens=256", "--set", "evaluate_every=20", "--set", "save_every=20", "--set", "warmup=5"]
GOOD, BAD = ("fine", "great", "lovely"), ("awful", "boring", "dull")


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """A table of texts whose label is said by one word."""
    draw = random.Random(0)
    path = tmp_path_factory.mktemp("data") / "reviews.tsv"
    rows = []
    for number in range(300):
        label, words = (("good", GOOD), ("bad", BAD))[number % 2]
        rows.append(f"film {draw.randrange(100)} was {draw.choice(words)} to see\t{label}")
    path.write_text("\n".join(["review\tlabel", *rows]) + "\n")
    return path


def shown(run, *arguments):
    """The settings that a call would train with."""
    code, out, err = run("train", *arguments, "--show")
    assert (code, err) == (0, "")
    return tomllib.loads(out)


class TestSettings:
    def test_the_tasks_are_the_recipes(self):
        assert list(Task) == list(TASKS)

    @pytest.mark.parametrize("task", Task)
    def test_every_task_has_settings(self, run, task):
        assert shown(run, task)["task"] == task

    def test_the_file_then_the_options_then_each_set(self, run, tmp_path):
        config = tmp_path / "my.toml"
        config.write_text("[model]\nwidth = 64\nheads = 2\n[data]\npaths = ['file.tsv']\n[training]\nsteps = 7\n")
        arguments = ["translation", "--config", config, "--data", "a.tsv", "--data", "b.tsv", "--set", "width=128"]
        told = shown(run, *arguments, "--fields", "source=en,target=zh", "--held-out", "0.2", "--set", "norm=rms")
        assert (told["model"]["width"], told["model"]["heads"], told["model"]["norm"]) == (128, 2, "rms")
        assert told["data"]["paths"] == ["a.tsv", "b.tsv"]
        assert (told["data"]["fields"], told["data"]["held_out"]) == ({"source": "en", "target": "zh"}, 0.2)
        assert told["training"]["steps"] == 7
        assert "epochs" not in told["training"]

    def test_no_longer_than_a_pretrained_model_reads(self, run, tmp_path):
        for name, config in (("mlm", {"longest": 128}), ("reader", {"reader": {"longest": 96}}), ("other", {})):
            (tmp_path / name).mkdir()
            (tmp_path / name / "config.json").write_text(json.dumps(config))

        def longest(name, *more):
            return shown(run, "classification", "--from", tmp_path / name, *more)["data"]["longest"]

        assert [longest(name) for name in ("mlm", "reader", "other", "none")] == [128, 96, 256, 256]
        assert longest("mlm", "--set", "longest=200") == 200  # what is said is not changed; the run refuses it

    def test_a_model_that_ships_is_begun_with_by_its_name(self, run, tmp_path, monkeypatch):
        window = ["--set", "longest=2000"]  # more than it reads, so that nothing is trained
        (tmp_path / "text.tsv").write_text("text\tlabel\n" + "a\tx\nb\ty\n" * 20)
        monkeypatch.chdir(tmp_path)
        call = ["train", "classification", "--data", "text.tsv", "--from", "encoder"]
        code, out, err = run(*call, *window)
        assert (code, out) == (2, "")
        assert "longest is 2,000, and the model of" in err
        assert "models/encoder was made for 1,024 tokens" in err.replace(os.sep, "/")
        (tmp_path / "encoder").mkdir()  # a folder of that name goes before
        code, out, err = run(*call)
        assert (code, out) == (1, "")
        assert "cannot read encoder" in err

    @pytest.mark.parametrize(
        ("arguments", "part"),
        [
            (["poetry"], "'poetry' is not one of 'translation', 'classification'"),
            ([], "Choose from: translation, classification, language-model"),
            (["translation", "--sett", "a=1"], "--set). Try: regard train --help"),
            (["translation"], "there is nothing to learn from; give --data FILE"),
            (["translation", "--set", "widht=3"], "--set widht=3: there is no setting widht; did you mean width"),
            (["classification", "--set", "poolin=mean"], "did you mean pooling"),
            (["translation", "--set", "vocabulary=3"], "there is no setting vocabulary"),
            (["translation", "--held-out", "7"], "--held-out: data.held_out is 7.0"),
            (["translation", "--fields", "="], "--fields: data.fields is '='"),
        ],
    )
    def test_refused(self, run, arguments, part):
        refused(run("train", *arguments), 2, part)

    def test_files_that_are_not_there(self, run, tmp_path):
        refused(run("train", "translation", "--config", tmp_path / "none.toml"), 1, "cannot read", "none.toml")

    def test_help_has_an_example(self, run):
        code, out, _ = run("train", "--help")
        assert code == 0
        assert "regard train translation --data" in out


def test_a_model_is_trained_used_and_measured(run, reviews, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    folder = tmp_path / "films"
    wanted = ["--data", reviews, "--fields", "text=review,label=label", "--out", folder, *SMALL, *QUICK]
    code, out, err = run("train", "classification", *wanted, "--set", "steps=60", "--set", "learning_rate=0.01")
    assert code == 0, err
    assert out == f'trained: {folder}, for regard classify "A text." --model {folder}\n'
    looks = [line for line in err.splitlines() if line.startswith("step ")]
    assert [line.split()[1] for line in looks] == ["20", "40", "60"]
    assert looks[0].endswith("  best accuracy")

    code, out, err = run("classify", "film 7 was lovely to see", "film 8 was dull to see", "--model", folder)
    assert (code, err) == (0, "")
    assert [line.split("\t")[0] for line in out.splitlines()] == ["good", "bad"]

    code, out, err = run("evaluate", reviews, "--model", folder, "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["examples"] == 300
    assert told["numbers"]["accuracy"] > 0.99

    settings = tomllib.loads((folder / "run.toml").read_text())
    assert settings["data"]["paths"] == [str(reviews)]
    monkeypatch.chdir(tmp_path)  # the settings that were kept are all that it takes, wherever one is
    code, out, err = run(
        "train", "classification", "--config", folder / "run.toml", "--out", "again", "--set", "steps=2"
    )
    assert code == 0, err
    assert shown(run, "classification", "--config", tmp_path / "again" / "run.toml")["model"] == settings["model"]


def test_what_is_stopped_early_has_a_model_all_the_same(run, reviews, tmp_path):
    wanted = ["--data", reviews, "--fields", "text=review,label=label", "--out", tmp_path / "films", *SMALL]
    code, out, err = run("train", "classification", *wanted, "--set", "steps=500", "--minutes", "0.000001")
    assert code == 0, err
    assert out.startswith("stopped after step 1 of 500: ")
    assert "\ntrained: " in out
    assert run("classify", "a film", "--model", tmp_path / "films")[0] == 0
    (tmp_path / "films" / "config.json").unlink()  # as after a kill before the first look
    refused(run("classify", "a film", "--model", tmp_path / "films"), 1, "has a training, and no model yet")


def test_what_a_signal_stops_does_not_pass_for_done(run, reviews, tmp_path):
    wanted = ["--data", reviews, "--fields", "text=review,label=label", "--out", tmp_path / "films", *SMALL]
    log = tmp_path / "films" / "log.jsonl"

    def ask():
        while not (log.exists() and log.stat().st_size):  # it has begun to learn
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=ask, daemon=True).start()
    code, out, _ = run("train", "classification", *wanted, "--set", "steps=1000000")
    assert code == 130
    assert "it was asked to; it can go on in" in out


@pytest.mark.parametrize("library", ["torch", "tokenizers"])
@pytest.mark.parametrize(
    "arguments", [["train", "translation", "--show"], ["fill", "a [MASK]"], ["evaluate", "x.txt", "--model", "encoder"]]
)
def test_what_is_not_installed_is_named(library, arguments):
    program = f"import sys; sys.modules[{library!r}] = None; from regard.commands import main; main({arguments})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    refused((done.returncode, done.stdout, done.stderr), 1, "pip install regard[")
