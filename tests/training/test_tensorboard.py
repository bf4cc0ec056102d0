"""TensorBoard: its own reader gives back what the log has, each step once, however often a run was stopped."""

from dataclasses import replace

import numpy as np
import pytest

from regard.training.run import train

from .corpora import labels, settings
from .small import Silent, lines

accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

TRAINING = ("loss", "learning_rate", "norm")  # and tokens_per_second, which the clock says


@pytest.fixture
def chosen(tmp_path):
    path = labels(tmp_path / "labels.tsv", count=64)
    return settings("classification", path, steps=9, evaluate_every=3, save_every=4, ema=0.9, tensorboard=True)


def curves(folder):
    """What TensorBoard shows: the points of each curve."""
    reader = accumulator.EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0})
    reader.Reload()
    return {name: [(event.step, event.value) for event in reader.Scalars(name)] for name in reader.Tags()["scalars"]}


def logged(folder, kind, name):
    """The same curve by the log; TensorBoard keeps float32."""
    return [(line["step"], float(np.float32(line[name]))) for line in lines(folder) if line["kind"] == kind]


def require_as_logged(folder, steps):
    shown = curves(folder)
    expected = {f"training/{name}": logged(folder, "step", name) for name in TRAINING}
    expected |= {f"held-out/{name}": logged(folder, "held-out", name) for name in ("loss", "accuracy")}
    speeds = shown.pop("training/tokens_per_second")
    assert shown == {name: points for name, points in expected.items() if points}
    assert [step for step, _ in speeds] == [step for step, _ in shown["training/loss"]] == list(range(1, steps + 1))
    assert min(speed for _, speed in speeds) > 0


def test_its_reader_gives_back_the_log(tmp_path, chosen):
    outcome = train("classification", chosen, tmp_path / "out")
    require_as_logged(outcome.folder, 9)
    assert [step for step, _ in curves(outcome.folder)["held-out/loss"]] == [3, 6, 9]


def test_a_run_that_stopped_goes_on(tmp_path, chosen):
    stopped = train("classification", chosen, tmp_path / "out", minutes=0)
    assert stopped.step == 1
    require_as_logged(tmp_path / "out", 1)
    train("classification", chosen, tmp_path / "out")
    require_as_logged(tmp_path / "out", 9)


def test_steps_that_are_made_once_more_are_there_once(tmp_path, chosen):
    """The last checkpoint is that of step 6, and 7 was shown already when it broke off."""

    def fail(entry):
        if entry["step"] == 8:
            raise ZeroDivisionError

    unsaved = replace(chosen, training=replace(chosen.training, save_every=100))
    with pytest.raises(ZeroDivisionError):
        train("classification", unsaved, tmp_path / "out", reporters=[Silent(step=fail)])
    began = []
    train(
        "classification", unsaved, tmp_path / "out", reporters=[Silent(begin=lambda told: began.append(told["step"]))]
    )
    assert began == [6]
    require_as_logged(tmp_path / "out", 9)


def test_a_run_that_begins_anew_shows_nothing_of_the_old_one(tmp_path, chosen):
    train("classification", chosen, tmp_path / "out")
    short = replace(chosen, training=replace(chosen.training, steps=4, seed=1))
    train("classification", short, tmp_path / "out", fresh=True)
    require_as_logged(tmp_path / "out", 4)
