"""The loop: one for all tasks, which goes on after a kill as if nothing had happened, to the bit."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ..errors import FileError, NotANumber
from .checkpoints import Checkpoints
from .engine import Engine
from .feeding import Feed, Portion, moved
from .log import Log
from .measuring import Numbers, measure
from .optimiser import Optimiser, put
from .progress import Progress
from .schedule import rate
from .settings import TrainingSettings
from .signals import noted

ASKED = "it was asked to"  # by a signal


class Reporter(Protocol):
    """Somebody who is told how a run goes; the terminal, TensorBoard."""

    def begin(self, told: Mapping[str, Any]) -> None: ...
    def step(self, entry: Mapping[str, Any]) -> None: ...
    def evaluated(self, entry: Mapping[str, Any]) -> None: ...
    def end(self, told: Mapping[str, Any]) -> None: ...
    def say(self, text: str) -> None: ...


@dataclass
class _Pending:
    """Steps whose losses are still on their way from the device."""

    sums: list[Tensor] = field(default_factory=list)
    norms: list[Tensor] = field(default_factory=list)
    counts: list[list[float]] = field(default_factory=list)
    numbers: list[np.ndarray] = field(default_factory=list)


@dataclass(frozen=True)
class Keeping:
    """What a run leaves on the disk."""

    checkpoints: Checkpoints
    log: Log
    identity: Mapping[str, Any]  # what the run is of; a checkpoint of another is refused
    # Called with the weights to use, when held-out text was never told as well.
    best: Callable[[Mapping[str, Tensor], Numbers, Progress], None]


class Loop:
    """Trains a model on what a feed gives, and keeps what it needs to go on.

    goal: what is to be best on held-out text, the least loss or the most of what it names. minutes: stop after so many.
    """

    def __init__(
        self, engine: Engine, feed: Feed, held_out: Feed, settings: TrainingSettings, *, steps: int, keeping: Keeping,
        goal: str = "loss", reporters: Sequence[Reporter] = (), minutes: float | None = None,
    ) -> None:  # fmt: skip
        self.engine, self.feed, self.held_out, self.settings, self.steps = engine, feed, held_out, settings, steps
        self.checkpoints, self.log, self.identity = keeping.checkpoints, keeping.log, dict(keeping.identity)
        self.keep_best, self.goal, self.reporters, self.minutes = keeping.best, goal, reporters, minutes
        self.ranks = engine.ranks
        self.optimiser = Optimiser(
            engine.model, betas=settings.betas, eps=settings.eps, weight_decay=settings.weight_decay, ema=settings.ema
        )
        self.progress = Progress()
        self.pending = _Pending()
        self.stopped = ""  # why it stopped before the last step
        self._marked = (time.perf_counter(), 0)  # when the last entry was made, and tokens since

    def run(self) -> Progress:
        """Until the last step, the end of patience, or a signal to stop; what was done so far is kept in each case.

        It begins where `resume` put it.
        """
        began = self.progress
        folder = str(self.checkpoints.folder.parent)
        self._tell("begin", {"step": began.step, "steps": self.steps, "folder": folder, "goal": self.goal})
        try:
            with noted() as signalled:
                self._go_on(signalled)
        finally:  # after an error too: what led to it is on the curve
            self._tell("end", {"step": self.progress.step, "best": self.progress.best, "stopped": self.stopped})
        return self.progress

    def _go_on(self, signalled: list[str]) -> None:
        began, started = self.progress, time.perf_counter()
        self._marked = (started, began.tokens)
        with closing(self.feed.after(began.place)) as portions:  # or its thread would outlive an error
            while not self._finished():
                self._step(next(portions))
                seconds = began.seconds + time.perf_counter() - started
                self.progress = replace(self.progress, seconds=seconds)
                self._between(self._asked_to_stop(signalled, seconds - began.seconds))

    def _step(self, portion: Portion) -> None:
        """One step of learning: forward and back over the parts, then AdamW."""
        done, settings = self.progress.step, self.settings
        # Random numbers are a function of seed, step and process, so that no state of a generator has to be kept.
        torch.manual_seed(seed_of(settings.seed, done, self.ranks.rank))
        names = sorted(portion.parts[0].counts)
        here = [float(sum(part.counts[name] for part in portion.parts)) for name in names]
        *counts, tokens = self.ranks.sum([*here, float(portion.tokens)])
        sums: list[Tensor] = []
        for place, part in enumerate(portion.parts):
            tensors = moved(part.tensors, self.ranks.device)
            last = place == len(portion.parts) - 1
            found = self.engine.backward(tensors, dict(zip(names, counts, strict=True)), last=last)
            sums.append(torch.stack([found[name] for name in names]))
        self.pending.norms.append(self.optimiser.step(done, self._rate(done), settings.clip))
        self.pending.sums.append(torch.stack(sums).sum(0))
        self.pending.counts.append(counts)
        self.pending.numbers.append(portion.numbers)
        self.progress = replace(
            self.progress, step=done + 1, place=portion.place, tokens=self.progress.tokens + int(tokens)
        )

    def _between(self, stop: str) -> None:
        """What is due after a step: a line in the log, a look at the held-out text, a checkpoint."""
        step, settings = self.progress.step, self.settings
        final = step >= self.steps or bool(stop)
        looks = step % settings.evaluate_every == 0 or step >= self.steps
        saves = step % settings.save_every == 0 or looks or final
        says = step % settings.log_every == 0 or step >= self.steps
        if says or saves:
            self._flush()
        if says:
            self._say()
        if looks:
            self._evaluate()
        elif stop and self.progress.best is None:  # so that there is a model; the run itself knows nothing of it
            self.keep_best(self.optimiser.averaged(), self.evaluate(), self.progress)
        if saves:
            self._save()
        self.stopped = stop if step < self.steps else ""

    def _finished(self) -> bool:
        if self.progress.step >= self.steps:
            return True
        self.stopped = self.stopped or self._impatient()
        return bool(self.stopped)

    def _impatient(self) -> str:
        waited, patience = self.progress.waited, self.settings.patience
        return f"no better for {waited} evaluations" if patience and waited >= patience else ""

    def _asked_to_stop(self, signalled: list[str], seconds: float) -> str:
        """Why to stop, if any process was asked to; all stop at the same step."""
        late = self.minutes is not None and seconds > 60 * self.minutes
        asked, over = self.ranks.sum([float(bool(signalled)), float(late)])
        return ASKED if asked else f"{self.minutes:g} minutes are over" if over else ""

    def _flush(self) -> None:
        """The losses of the last steps, looked at, and stopped at where they are no numbers."""
        pending, self.pending = self.pending, _Pending()
        if not pending.sums:
            return
        flat = torch.cat([torch.stack(pending.sums).flatten(), torch.stack(pending.norms)]).cpu().double().tolist()
        width = len(pending.counts[0])
        sums, norms = self.ranks.sum(flat[: width * len(pending.sums)]), flat[width * len(pending.sums) :]
        first = self.progress.step - len(pending.sums) + 1
        watch, unsaid = self.progress.watch, list(self.progress.unsaid)
        for i, (counts, norm, numbers) in enumerate(zip(pending.counts, norms, pending.numbers, strict=True)):
            loss = sum(sums[i * width + j] / max(count, 1) for j, count in enumerate(counts))
            watch = watch.after(first + i, loss, norm, numbers)
            unsaid.append(loss)
        self.progress = replace(self.progress, watch=watch, unsaid=tuple(unsaid), norm=norms[-1])

    def _say(self) -> None:
        """A line in the log: the mean loss since the last one."""
        progress, now = self.progress, time.perf_counter()
        since, before = self._marked
        entry = {
            "step": progress.step, "epoch": progress.place.epoch, "loss": sum(progress.unsaid) / len(progress.unsaid),
            "norm": progress.norm, "learning_rate": self._rate(progress.step - 1), "tokens": progress.tokens,
            "tokens_per_second": (progress.tokens - before) / max(now - since, 1e-9), "seconds": progress.seconds,
        }  # fmt: skip
        self._marked, self.progress = (now, progress.tokens), replace(progress, unsaid=())
        if self.ranks.first:
            self.log.add({"kind": "step", **entry})
        self._tell("step", entry)

    def _rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        settings = self.settings
        return settings.learning_rate * rate(
            step, schedule=settings.schedule, warmup=settings.warmup, steps=self.steps, final_share=settings.final_share
        )

    def _evaluate(self) -> None:
        """A look at the held-out text; the best weights so far are kept as the model."""
        found = self.evaluate()
        if not math.isfinite(found["loss"]):
            raise NotANumber(
                f"step {self.progress.step}: the loss on held-out text is {found['loss']}. Nothing of it was kept; "
                "look at that text, or lower the learning rate, and go on from the last checkpoint."
            )
        goal = found["loss"] if self.goal == "loss" else -found[self.goal]
        better = self.progress.best is None or goal < self.progress.best
        if better:
            self.progress = replace(self.progress, best=goal, best_step=self.progress.step, waited=0)
            self.keep_best(self.optimiser.averaged(), found, self.progress)
        else:
            self.progress = replace(self.progress, waited=self.progress.waited + 1)
        entry = {"step": self.progress.step, "best": better, **found}
        if self.ranks.first:
            self.log.add({"kind": "held-out", **entry})
        self._tell("evaluated", entry)
        self._marked = (time.perf_counter(), self.progress.tokens)

    def evaluate(self) -> Numbers:
        """What the task measures, over the whole held-out text, with the weights to use."""
        with self._averaged():
            return measure(self.engine, self.held_out)

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """With the mean of the weights in the model's place, where it is kept."""
        named = self.optimiser.named
        if not self.optimiser.means:
            yield
            return
        now = [weight.detach().clone() for weight in named.values()]
        put(named, self.optimiser.means.values())
        try:
            yield
        finally:
            put(named, now)

    def _save(self) -> None:
        state = {"progress": self.progress.as_json(), "identity": self.identity, "processes": self.ranks.count}
        if self.ranks.first:
            self.log.keep()
        self.checkpoints.write(self.progress.step, self.optimiser.tensors(), state)

    def resume(self) -> None:
        """To the last checkpoint, where there is one; one of another run is refused."""
        steps = self.checkpoints.steps()
        if steps:
            state = self.checkpoints.state(steps[-1])
            try:
                identity, progress = dict(state["identity"]), Progress.of(state["progress"])
            except (KeyError, TypeError, ValueError):
                raise self.checkpoints.unreadable(steps[-1]) from None
            if progress.step != steps[-1]:
                raise self.checkpoints.unreadable(steps[-1])
            _require_same(identity, self.identity, self.checkpoints)
            self.checkpoints.read(steps[-1], self.optimiser.tensors())
            self.progress = progress
            self.optimiser.restored(self.progress.step)
        if self.ranks.first:
            self.log.begin(self.progress.step)
        self.ranks.wait()

    def _tell(self, what: str, entry: Mapping[str, Any]) -> None:
        if self.ranks.first:
            for reporter in self.reporters:
                getattr(reporter, what)(entry)


def seed_of(*numbers: int) -> int:
    """One seed out of several numbers, such that neighbours have nothing in common."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def _require_same(theirs: Mapping[str, Any], ours: Mapping[str, Any], checkpoints: Checkpoints) -> None:
    """A run goes on with the same model, data and settings that it began with."""
    differing = sorted(name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name))
    if differing:
        few = "; ".join(f"{name} was {theirs.get(name)!r} and is {ours.get(name)!r}" for name in differing[:3])
        more = f" and {len(differing) - 3} more" if len(differing) > 3 else ""
        raise FileError(
            f"{checkpoints.folder} has checkpoints of another run: {few}{more}. Go on with the settings it was begun "
            "with, give another folder with --out, or begin anew with --fresh."
        )
