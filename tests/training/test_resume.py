"""Exact resume: a training that was killed with -9 many times ends as one that never was, to the bit."""

import os
import subprocess
import sys
from pathlib import Path

from safetensors.torch import load_file

from .corpora import settings, translations
from .small import ALONE, lines, same

KILLS = 8
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def last_checkpoint(folder):
    """All tensors of it, and its state but for what the clock said and the sums of files, in which there are paths."""
    from torch.distributed.checkpoint import FileSystemReader
    from torch.distributed.checkpoint.format_utils import _EmptyStateDictLoadPlanner
    from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

    from regard.training.checkpoints import Checkpoints

    checkpoints = Checkpoints(folder / "checkpoints", ALONE)
    step = checkpoints.steps()[-1]
    found = {}
    path = folder / "checkpoints" / f"step-{step:09d}"
    _load_state_dict(found, FileSystemReader(path), planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    state = checkpoints.state(step)
    state["progress"].pop("seconds")
    return found, {name: value for name, value in state.items() if name != "files"}


def test_kills_lose_nothing(tmp_path):
    path = translations(tmp_path / "numbers.tsv")
    chosen = settings(
        "translation", path, model={"dropout": 0.2}, steps=40, ema=0.9, label_smoothing=0.1, schedule="cosine",
        evaluate_every=5, save_every=3, accumulate=2,
    )  # fmt: skip
    (tmp_path / "settings").mkdir()
    chosen.save(tmp_path / "settings", "translation")
    whole, broken = tmp_path / "whole", tmp_path / "broken"

    def command(out):
        return ["translation", "--config", str(tmp_path / "settings" / "run.toml"), "--out", str(out)]

    with (
        subprocess.Popen(
            [sys.executable, "-m", "regard", "train", *command(whole)], env=ONE_THREAD, stdout=subprocess.DEVNULL
        ) as straight,
        subprocess.Popen(
            [sys.executable, Path(__file__).with_name("killing.py"), broken, str(KILLS), "7", *command(broken)],
            env=ONE_THREAD, stdout=subprocess.PIPE, text=True,
        ) as killing,
    ):  # fmt: skip
        killed = killing.communicate()[0].split()
    assert (straight.returncode, killing.returncode) == (0, 0)
    assert {"checkpoint", "evaluation", "lines"} <= set(killed)
    assert lines(broken) == lines(whole)
    assert [line["step"] for line in lines(whole) if line["kind"] == "step"] == list(range(1, 41))
    assert same(load_file(broken / "model.safetensors"), load_file(whole / "model.safetensors"))
    (ours, our_state), (theirs, their_state) = last_checkpoint(broken), last_checkpoint(whole)
    assert same(ours, theirs)
    assert our_state == their_state
    assert not [path for path in (broken / "checkpoints").iterdir() if path.name.startswith(".")]
