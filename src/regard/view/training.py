"""A training as it goes, on standard error: a bar, a line for each look at held-out text, the curve at the end."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from .labels import printable
from .loss_curve import Series, drawn

HEIGHT = 12  # rows of the curve
WIDEST = 100  # cells of it
QUIET = 30  # seconds without a line, after which one says how far it is where there is no bar
UNNAMED = {"step", "epoch", "best", "loss"}  # of an evaluation; all else is told by its own name


class TrainingView:
    """Told how a training goes, it tells those who watch. Without a terminal there are lines, no bar and no curve."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._spoke, self._steps = clock, clock(), ""
        self._goal = "loss"
        self.console = console or Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._trained, self._held_out = Series(), Series()
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def begin(self, told: Mapping[str, Any]) -> None:
        """The bar; a run that goes on begins where it was."""
        self._spoke = self._clock()
        self._steps = f" of {told['steps']:,}" if told.get("steps") else ""
        self._goal = told.get("goal", self._goal)
        if told.get("step"):
            self.console.print(Text(f"going on after step {told['step']:,}{self._steps}"), soft_wrap=True)
        if not self.console.is_terminal:
            return
        says = TextColumn("{task.description}", markup=False)
        columns = MofNCompleteColumn(), BarColumn(), says, TimeRemainingColumn()
        self._bar = Progress(*columns, console=self.console, transient=True)
        self._task = self._bar.add_task("", total=told.get("steps"), completed=told.get("step", 0))
        self._bar.start()

    def step(self, entry: Mapping[str, Any]) -> None:
        """How far it is, with the loss and the speed."""
        if math.isfinite(entry["loss"]):
            self._trained.add(entry["step"], entry["loss"])
        says = f"loss {entry['loss']:.3f}"
        if "tokens_per_second" in entry:
            says += f"  {entry['tokens_per_second']:,.0f} tokens/s"
        if self._bar is not None:
            self._bar.update(self._task, completed=entry["step"], description=says)
        elif self._clock() - self._spoke >= QUIET:
            self._spoke = self._clock()
            self.console.print(Text(f"step {entry['step']:,}{self._steps}  {says}"), soft_wrap=True)

    def evaluated(self, entry: Mapping[str, Any]) -> None:
        """A line."""
        self._spoke = self._clock()
        if math.isfinite(entry.get("loss", math.nan)):
            self._held_out.add(entry["step"], entry["loss"])
        self.console.print(evaluation_line(entry, self._goal), soft_wrap=True)

    def end(self, told: Mapping[str, Any]) -> None:
        """The curve, where somebody watches."""
        if self._bar is None:
            return
        self._bar.stop()
        self._bar = None
        unicode = self.console.encoding.lower().startswith("utf")
        width = min(self.console.width, WIDEST)
        for line in drawn(self._trained.points, self._held_out.points, width=width, height=HEIGHT, unicode=unicode):
            self.console.print(line)

    def say(self, text: str) -> None:
        """A line about what is done with the text before the first step, and what was lost of it."""
        self.console.print(Text(printable(text)), soft_wrap=True)

    def stop(self) -> None:
        """The bar is taken away, whatever happened: an error, or Ctrl-C."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def evaluation_line(entry: Mapping[str, Any], goal: str = "loss") -> Text:
    """Held-out text at one step, in one line. goal: what is to be best, and told where it is not the loss"""
    line = Text(f"step {entry['step']:,}")
    if "epoch" in entry:
        line.append(f"  epoch {entry['epoch']:g}")
    if "loss" in entry:
        line.append(f"  held-out loss {entry['loss']:.4f}")
    for name, value in entry.items():
        if name not in UNNAMED and isinstance(value, (int, float)):
            line.append(f"  {printable(name)} {value:.4g}")
    if entry.get("best"):
        line.append("  best" if goal == "loss" else f"  best {printable(goal)}", style="bold green")
    return line
