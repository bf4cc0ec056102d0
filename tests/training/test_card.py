"""The card of a trained folder: what it is of, how well it does, and the commands that use and make it."""

from pathlib import Path

import pytest
import torch

from regard.training import card
from regard.training.jobs import JOBS
from regard.training.preparing import prepare
from regard.training.progress import Progress

from .corpora import labels, settings


def written(tmp_path, found, pretrained=None, **data):
    path = labels(tmp_path / "labels.tsv")
    chosen = settings("classification", path, data={name: value(path) for name, value in data.items()})
    made = prepare("classification", chosen, tmp_path, pretrained=None, begun=False, say=lambda _: None)
    model = made.job.model(None)
    progress = Progress(step=1500, best_step=1200, seconds=90.0)
    card.write(tmp_path, made, model, card.Made(found, progress, torch.device("cpu"), pretrained))
    return (tmp_path / card.FILE).read_text(), made, model


def test_it_tells_what_it_is_of(tmp_path):
    text, made, model = written(tmp_path, {"loss": 0.123456, "accuracy": 0.98765})
    assert text.startswith(f"# {tmp_path.name}: classification\n")
    assert f"A Classifier of {sum(weight.numel() for weight in model.parameters()):,} weights" in text
    assert "| loss | 0.1235 |\n| accuracy | 0.9877 |" in text
    assert f'regard classify "A text." --model {tmp_path.name}' in text
    assert f"learned from {tmp_path / 'labels.tsv'}: {len(made.learned):,} examples" in text
    assert f"held out a share of 0.1: {len(made.held):,} examples" in text
    assert "these weights: step 1,200, after 1.5 minutes on cpu" in text
    assert "regard train classification --config run.toml --out" in text


def test_what_was_not_measured(tmp_path):
    text, _, _ = written(tmp_path, {})
    assert "| not measured | – |" in text
    assert "--config run.toml --out" in text


def test_what_it_began_with_belongs_to_the_command_that_makes_it(tmp_path):
    text, _, _ = written(tmp_path, {}, pretrained=Path("runs/words"))
    assert "regard train classification --config run.toml --from runs/words --out" in text


def test_files_held_out_are_named(tmp_path):
    text, _, _ = written(tmp_path, {}, held_out=lambda path: [str(path)])
    assert f"held out {tmp_path / 'labels.tsv'}: 256 examples" in text


@pytest.mark.parametrize("task", JOBS)
def test_every_task_has_a_use(task):
    assert "FOLDER" in card.USES[task]
