"""A whole training: text and settings in, a folder with the trained model out."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import FileError
from ..model.saved import CONFIG, Saved
from . import card
from .checkpoints import Checkpoints
from .engine import Engine
from .feeding import Feed
from .log import FILE as LOG
from .log import Log, read
from .loop import ASKED, Loop, Reporter, seed_of
from .measuring import Numbers
from .preparing import TARGET, Prepared, found, prepare
from .progress import Progress
from .ranks import Ranks, joined
from .settings import FILE as RUN
from .settings import Settings
from .tensorboard import TensorBoard

# What may change from one stretch of a run to the next: how long it goes, how often it speaks, where it runs, and what
# helps it over a step at which it diverged.
FREE = {
    "steps", "epochs", "evaluate_every", "save_every", "log_every", "keep", "patience", "shard", "tensorboard",
    "device", "compile", "learning_rate", "warmup", "clip",
}  # fmt: skip
ENTRY = ("kind", "step", "best")  # what a line of the log has beside the numbers


@dataclass(frozen=True)
class Outcome:
    """What came of a training."""

    folder: Path
    step: int
    steps: int
    best: Mapping[str, float]  # what held-out text said of the weights that were kept, where it was asked
    stopped: str  # why it ended before the last step; "" where it did not
    seconds: float

    @property
    def signalled(self) -> bool:
        """Whether it was Ctrl-C, or a polite kill."""
        return self.stopped == ASKED


def train(
    task: str, settings: Settings, out: Path, *, pretrained: Path | None = None, fresh: bool = False,
    reporters: Sequence[Reporter] = (), minutes: float | None = None,
) -> Outcome:  # fmt: skip
    """Train a model, or go on where the last call stopped.

    pretrained: the folder of a model to begin with. fresh: begin anew where there is a run already. minutes: stop after
    so many, and go on with the next call. Under torchrun all processes call it.
    """
    if settings.training.tensorboard:
        reporters = [*reporters, TensorBoard(out)]
    with joined(settings.training.device) as ranks, _alone_in(out, ranks):
        checkpoints = Checkpoints(out / "checkpoints", ranks, settings.training.keep)
        if fresh:
            checkpoints.clear()
        prepared = _prepared(task, settings, out, pretrained, ranks, checkpoints, reporters)
        return _trained(prepared, out, pretrained, ranks, checkpoints, reporters, minutes)


@contextmanager
def _alone_in(out: Path, ranks: Ranks) -> Iterator[None]:
    """The folder, made if need be, without a model of somebody else's and without another process that trains there.

    The lock goes with the process, however it ends.
    """
    if not ranks.first:
        yield
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        directory = os.open(out, os.O_RDONLY)
    except OSError as error:
        why = "it is a file" if out.is_file() else error.strerror
        raise FileError(f"cannot make the folder {out}: {why}; give another with --out.") from None
    try:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileError(f"another process is training in {out}; wait for it, or give another folder.") from None
        except OSError:
            pass  # a file system without locks
        if (out / CONFIG).exists() and not (out / RUN).exists():
            raise FileError(f"{out} has a model that was not trained there, and would be lost; give another folder.")
        for left in out.glob(".regard-*.part"):  # by a process that was killed while it wrote
            left.unlink(missing_ok=True)
        yield
    finally:
        os.close(directory)


def _prepared(  # noqa: PLR0917
    task: str, settings: Settings, out: Path, pretrained: Path | None, ranks: Ranks, checkpoints: Checkpoints,
    reporters: Sequence[Reporter],
) -> Prepared:  # fmt: skip
    """By the first process, for all."""
    if ranks.first:

        def say(text: str) -> None:
            for reporter in reporters:
                reporter.say(text)

        prepare(task, settings, out, pretrained=pretrained, begun=bool(checkpoints.steps()), say=say)
    ranks.wait()
    return found(task, settings, out)


def _trained(  # noqa: PLR0917
    prepared: Prepared, out: Path, pretrained: Path | None, ranks: Ranks, checkpoints: Checkpoints,
    reporters: Sequence[Reporter], minutes: float | None,
) -> Outcome:  # fmt: skip
    job, training = prepared.job, prepared.job.settings.training
    ranks.require_alike(job.settings.as_toml(job.name))
    torch.manual_seed(seed_of(training.seed))
    model = job.model(pretrained)
    engine = Engine(
        model, job.task, ranks, precision=training.precision, compiled=training.compile, shard=training.shard,
        varied=job.varied,
    )  # fmt: skip
    source, held = job.source(prepared.learned), job.source(prepared.held)
    feed = Feed(
        source, job.task.collate, ranks, seed=training.seed, sized=job.sized, accumulate=training.accumulate
    )  # fmt: skip
    steps = training.steps or max(1, round((training.epochs or 1) * source.steps()))
    kept: Numbers = {}

    def keep(weights: Mapping[str, Tensor], numbers: Numbers, progress: Progress) -> None:
        kept.update(numbers)
        _keep(out, prepared, model, weights, numbers, progress, ranks)

    loop = Loop(
        engine, feed, Feed(held, job.task.collate, ranks, seed=training.seed), training.counted(steps), steps,
        goal=job.goal, checkpoints=checkpoints, log=Log(out), identity=_identity(prepared, model), keep_best=keep,
        reporters=reporters, minutes=minutes,
    )  # fmt: skip
    loop.resume()
    kept.update(_best(out))
    if ranks.first:  # only now: of a run that was refused, the settings stay
        job.settings.save(out, job.name)
    progress = loop.run()
    return Outcome(out, progress.step, steps, kept, loop.stopped, progress.seconds)


def _keep(  # noqa: PLR0917
    out: Path, prepared: Prepared, model: Saved, weights: Mapping[str, Tensor], numbers: Numbers, progress: Progress,
    ranks: Ranks,
) -> None:  # fmt: skip
    """The model's folder: tokenizers, config, weights and card, each file whole."""
    whole = {name: _gathered(weight) for name, weight in weights.items()}
    if ranks.first:
        prepared.job.tokenizer.save(out)
        if prepared.job.target is not None:
            prepared.job.target.save(out, TARGET)
        model.save(out, weights=whole)
        card.write(out, prepared, model, numbers, progress, ranks.device)
    ranks.wait()


def _best(out: Path) -> Numbers:
    """What held-out text said of the weights that are kept, by an earlier stretch of the run."""
    lines = [line for line in read(out / LOG) if line["kind"] == "held-out" and line.get("best")]
    return {name: value for name, value in lines[-1].items() if name not in ENTRY} if lines else {}


def _gathered(weight: Tensor) -> Tensor:
    """A whole weight, where each process has a share of it."""
    return weight.full_tensor() if hasattr(weight, "full_tensor") else weight


def _identity(prepared: Prepared, model: Saved) -> dict[str, Any]:
    """What must be the same for a run to go on."""
    settings = asdict(prepared.job.settings.training)
    told = {name: value for name, value in settings.items() if name not in FREE}
    config = {f"model.{name}": value for name, value in asdict(model.config).items()}
    return _plain({"task": prepared.job.name, "text": prepared.origin, **config, **told})


def _plain(told: dict[str, Any]) -> dict[str, Any]:
    """As it comes back out of JSON, in which a tuple is a list."""
    return dict(json.loads(json.dumps(told)))
