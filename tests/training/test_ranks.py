"""Several processes: two learn what one learns, and a run goes on with another number of them."""

import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from regard.errors import OptionError
from regard.predictions import load
from regard.training.loop import seed_of
from regard.training.ranks import device_of
from regard.training.run import train

from .corpora import settings, translations
from .small import lines, losses, same

CLOSE = {"abs": 1e-5, "rel": 0}
HALF, WHOLE = 3, 5


def free_ports(count):
    """Ports that nobody listens on."""
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [str(one.getsockname()[1]) for one in sockets]


def chosen(path, **training):
    dropout = training.pop("dropout", 0.0)
    common = {
        "steps": WHOLE, "tokens": 150, "ema": 0.9, "evaluate_every": HALF, "save_every": HALF, "learning_rate": 1e-3,
        "clip": 0.0,  # or a gradient that is twice as long would do no harm
        "eps": 1e-4,  # the bias of keys has a gradient of 0 but for rounding, which a small one makes as large as any
    }  # fmt: skip
    return settings("translation", path, model={"dropout": dropout}, **{**common, **training})


KINDS = {
    "ddp": {}, "ddp-parts": {"accumulate": 2}, "fsdp": {"shard": "fsdp"},
    "fsdp-parts": {"shard": "fsdp", "accumulate": 2}, "dropped": {"dropout": 0.2},
}  # fmt: skip
# In one go; and in two halves: the folder, its kind, and where it is copied to after the first half.
WHOLES = ("ddp-parts", "fsdp", "fsdp-parts", "dropped")
HALVES = (("ddp", "ddp", "ddp-on-one"), ("fsdp-again", "fsdp", "fsdp-on-one"), ("dropped-again", "dropped", "copy"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All the trainings of these tests: on two processes by one call of torchrun, the others here."""
    folder = tmp_path_factory.mktemp("ranks")
    path = translations(folder / "numbers.tsv", count=120, longest=6)

    def plan(out, name, steps, **more):
        file = folder / f"{out}-{steps}"
        file.mkdir()
        chosen(path, **{**KINDS[name], "steps": steps}).save(file, "translation")
        return {"out": out, "run": str(file / "run.toml"), **more}

    train("translation", chosen(path), folder / "one")
    train("translation", chosen(path, steps=HALF), folder / "one-on-two")
    shutil.copytree(folder / "one-on-two", folder / "one-on-sharded")
    plans = [plan(name, name, WHOLE) for name in WHOLES]
    for name, kind, copy in HALVES:
        plans += [plan(name, kind, HALF, after=copy), plan(name, kind, WHOLE)]
    plans += [plan("one-on-two", "ddp", WHOLE), plan("one-on-sharded", "fsdp", WHOLE)]
    (folder / "plan.json").write_text(json.dumps(plans))
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *command, Path(__file__).with_name("ranked.py"), folder, *free_ports(len(plans))],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for name in ("ddp-on-one", "fsdp-on-one"):
        train("translation", chosen(path), folder / name)
    return folder


def held_out(folder):
    return [line["loss"] for line in lines(folder) if line["kind"] == "held-out"]


def norms(folder):
    return [line["norm"] for line in lines(folder) if line["kind"] == "step"]


def assert_alike(ours, theirs):
    """All losses and the weights, but for the order in which sums are taken."""
    assert len(losses(ours)) == WHOLE
    assert losses(ours) == pytest.approx(losses(theirs), **CLOSE)
    assert held_out(ours) == pytest.approx(held_out(theirs), **CLOSE)
    assert norms(ours) == pytest.approx(norms(theirs), rel=1e-4)
    weights = load_file(theirs / "model.safetensors")
    for name, weight in load_file(ours / "model.safetensors").items():
        torch.testing.assert_close(weight, weights[name], atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", ["ddp", "ddp-parts", "fsdp", "fsdp-parts"])
def test_two_processes_learn_what_one_does(folder, name):
    assert_alike(folder / name, folder / "one")


@pytest.mark.parametrize("name", ["ddp-on-one", "fsdp-on-one", "one-on-two", "one-on-sharded"])
def test_a_run_goes_on_with_another_number_of_processes(folder, name):
    assert_alike(folder / name, folder / "one")


@pytest.mark.parametrize(("again", "whole"), [("fsdp-again", "fsdp"), ("dropped-again", "dropped")])
def test_a_run_on_two_goes_on_with_two_to_the_bit(folder, again, whole):
    assert lines(folder / again) == lines(folder / whole)
    assert same(load_file(folder / again / "model.safetensors"), load_file(folder / whole / "model.safetensors"))


def test_dropout_is_on(folder):
    assert losses(folder / "dropped") != pytest.approx(losses(folder / "ddp"), **CLOSE)


def test_each_step_of_each_process_draws_its_own():
    seeds = {seed_of(0, step, rank) for step in range(50) for rank in range(4)}
    assert len(seeds) == 200


def test_what_shards_made_is_a_model_like_any(folder):
    assert isinstance(load(folder / "fsdp")(["one two"], longest=4)[0].text, str)


def test_devices():
    assert device_of("cpu") == torch.device("cpu")
    with pytest.raises(OptionError, match=r"process 99 of this machine wants a GPU of its own, and there are \d+"):
        device_of("cuda", 99)


def test_processes_that_were_told_different_things_are_refused():
    says = (
        "from regard.training.ranks import joined\n"
        "with joined('cpu') as ranks:\n"
        "    ranks.require_alike('the same')\n"
        "    ranks.require_alike(f'tokens = {ranks.rank}')\n"
    )
    (port,) = free_ports(1)
    common = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", says], env={**common, "RANK": rank, "LOCAL_RANK": rank}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for rank in ("0", "1")
    ]  # fmt: skip
    for process in started:
        assert "were started with different settings" in process.communicate(timeout=60)[0]
