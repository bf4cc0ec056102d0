"""A whole training: text and settings in, a folder with the trained model out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..model.saved import Saved
from ..text.bpe import TARGET
from . import card
from .card import Made
from .checkpoints import Checkpoints
from .engine import Engine
from .feeding import Feed
from .log import FILE as LOG
from .log import Log, read
from .loop import ASKED, Keeping, Loop, Reporter, seed_of
from .measuring import Numbers
from .place import alone_in
from .preparing import Prepared, found, prepare
from .progress import Progress
from .ranks import Ranks, joined
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
    with joined(settings.training.device) as ranks, alone_in(out, ranks):
        checkpoints = Checkpoints(out / "checkpoints", ranks, settings.training.keep)
        if fresh:
            checkpoints.clear()
        run = _Run(out, ranks, checkpoints, tuple(reporters), pretrained)
        return run.trained(run.prepared(task, settings), minutes)


@dataclass(frozen=True)
class _Run:
    """Where a training happens: its folder, its processes, who is told of it, and what it begins with."""

    out: Path
    ranks: Ranks
    checkpoints: Checkpoints
    reporters: tuple[Reporter, ...]
    pretrained: Path | None

    def prepared(self, task: str, settings: Settings) -> Prepared:
        """The text as ids, by the first process for all."""
        if self.ranks.first:
            begun = bool(self.checkpoints.steps())
            prepare(task, settings, self.out, pretrained=self.pretrained, begun=begun, say=self._say)
        self.ranks.wait()
        return found(task, settings, self.out)

    def trained(self, prepared: Prepared, minutes: float | None) -> Outcome:
        """The loop, from the last checkpoint on."""
        job, training, ranks = prepared.job, prepared.job.settings.training, self.ranks
        ranks.require_alike(job.settings.as_toml(job.name))
        torch.manual_seed(seed_of(training.seed))
        model = job.model(self.pretrained)
        engine = Engine(
            model, job.task, ranks, precision=training.precision, compiled=training.compile, shard=training.shard,
            varied=job.varied,
        )  # fmt: skip
        source, held = job.source(prepared.learned), job.source(prepared.held)
        steps = training.steps or max(1, round((training.epochs or 1) * source.steps()))
        kept: Numbers = {}

        def keep(weights: Mapping[str, Tensor], numbers: Numbers, progress: Progress) -> None:
            kept.update(numbers)
            self._keep(prepared, model, weights, Made(numbers, progress, ranks.device, self.pretrained))

        loop = Loop(
            engine,
            Feed(source, job.task.collate, ranks, seed=training.seed, sized=job.sized, accumulate=training.accumulate),
            Feed(held, job.task.collate, ranks, seed=training.seed), training.counted(steps), steps=steps,
            keeping=Keeping(self.checkpoints, Log(self.out), _identity(prepared, model), keep), goal=job.goal,
            reporters=self.reporters, minutes=minutes,
        )  # fmt: skip
        loop.resume()
        kept.update(_best(self.out))
        if ranks.first:  # only now: of a run that was refused, the settings stay
            job.settings.save(self.out, job.name, self.pretrained)
        progress = loop.run()
        return Outcome(self.out, progress.step, steps, kept, loop.stopped, progress.seconds)

    def _keep(self, prepared: Prepared, model: Saved, weights: Mapping[str, Tensor], made: Made) -> None:
        """The model's folder: tokenizers, config, weights and card, each file whole."""
        whole = {}
        for name, weight in weights.items():  # one at a time: several processes may each have a share of it
            gathered = weight.full_tensor() if hasattr(weight, "full_tensor") else weight
            if self.ranks.first:
                whole[name] = gathered.cpu()
        if self.ranks.first:
            prepared.job.tokenizer.save(self.out)
            if prepared.job.target is not None:
                prepared.job.target.save(self.out, TARGET)
            model.save(self.out, weights=whole)
            card.write(self.out, prepared, model, made)
        self.ranks.wait()

    def _say(self, text: str) -> None:
        for reporter in self.reporters:
            reporter.say(text)


def _best(out: Path) -> Numbers:
    """What held-out text said of the weights that are kept, by an earlier stretch of the run."""
    lines = [line for line in read(out / LOG) if line["kind"] == "held-out" and line.get("best")]
    return {name: value for name, value in lines[-1].items() if name not in ENTRY} if lines else {}


def _identity(prepared: Prepared, model: Saved) -> dict[str, Any]:
    """What must be the same for a run to go on."""
    settings = asdict(prepared.job.settings.training)
    told = {name: value for name, value in settings.items() if name not in FREE}
    config = {f"model.{name}": value for name, value in asdict(model.config).items()}
    return _plain({"task": prepared.job.name, "text": prepared.origin, **config, **told})


def _plain(told: dict[str, Any]) -> dict[str, Any]:
    """As it comes back out of JSON, in which a tuple is a list."""
    return dict(json.loads(json.dumps(told)))
