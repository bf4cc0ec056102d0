"""Everything about a training that can be set: the text, the tokenizer, the model and the loop, each checked."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from ..errors import OptionError
from ..replacing import write_whole
from .toml import written
from .values import Unfit, fitting, told

FILE = "run.toml"


class Checked:
    """A dataclass whose values are of the types of its fields, or are made so."""

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            try:
                object.__setattr__(self, one.name, fitting(value, one.type))
            except Unfit:
                raise OptionError(f"{one.name} is {value!r}; it must be {told(one.type)}.") from None

    def _require(self, name: str, fits: bool, wanted: str) -> None:
        if not fits:
            raise OptionError(f"{name} is {getattr(self, name)!r}; it must be {wanted}.")

    def _counts(self, *names: str, least: int) -> None:
        for name in names:
            self._require(name, getattr(self, name) >= least, f"{least} or more")

    def _shares(self, *names: str) -> None:
        for name in names:
            self._require(name, 0 <= getattr(self, name) < 1, "from 0 up to, but not including, 1")


@dataclass(frozen=True, kw_only=True)
class DataSettings(Checked):
    """What is learned from, and what it is measured by."""

    paths: tuple[str, ...] = ()
    # By the endings of the names where nothing is said. "parallel": files in pairs, source and target, line by line.
    form: Literal["", "tsv", "csv", "jsonl", "text", "paragraphs", "whole", "parallel", "questions", "hub"] = ""
    fields: Mapping[str, str | int] = field(default_factory=dict)  # field → column, where the form has columns
    held_out: float | tuple[str, ...] = 0.01  # a share of the data, or files of their own
    most_bad: int = 100  # malformed lines that are skipped before it is an error
    longest: int = 512  # tokens of an example, or of a window of running text
    too_long: Literal["cut", "skip", "error"] = "cut"  # what becomes of a longer one; it is counted and told

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "held_out", _share(self.held_out))
        fits = 0 < self.held_out < 1 if isinstance(self.held_out, float) else bool(self.held_out)
        self._require("held_out", fits, "a share between 0 and 1, or files")
        self._counts("most_bad", least=0)
        self._counts("longest", least=1)


@dataclass(frozen=True, kw_only=True)
class TokenizerSettings(Checked):
    """The pieces that text is taken apart into."""

    size: int = 8000  # pieces of the vocabulary that is made of the data, if no path is given
    shared: bool = True  # one vocabulary for the source and the target
    path: str = ""  # a folder or a tokenizer.json that is there already

    def __post_init__(self) -> None:
        super().__post_init__()
        self._counts("size", least=260)  # every byte, and four special pieces
        self._require("size", self.size <= 2**24, f"at most {2**24:,}")


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(Checked):
    """How the loop goes."""

    steps: int | None = None  # how long: so many steps,
    epochs: float | None = None  # or so many times through the data; one of the two is given
    tokens: int = 4096  # of one step, over all processes and parts
    accumulate: int = 1  # the parts that a step is gone through in, one behind the other
    learning_rate: float = 1e-3  # the highest
    schedule: Literal["cosine", "inverse-sqrt", "constant"] = "cosine"
    warmup: int | float = 100  # steps; below 1: a share of them all
    final_share: float = 0.1  # of the learning rate at the end of the cosine
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    weight_decay: float = 0.01
    clip: float = 1.0  # the longest gradient; 0: any length
    label_smoothing: float = 0.0
    r_drop: float = 0.0  # α of R-Drop; 0: each example goes through the model once
    masked_share: float = 0.15  # of the tokens that a masked language model is to guess
    ema: float = 0.0  # decay of the running mean of the weights; 0: none is kept
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False
    seed: int = 0
    evaluate_every: int | float = 500  # steps; below 1: a share of them all
    save_every: int = 500
    log_every: int = 10
    keep: int = 2  # checkpoints, besides the best
    patience: int = 0  # evaluations without a better one after which it stops; 0: it never stops early
    shard: Literal["none", "fsdp"] = "none"
    tensorboard: bool = False
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.steps is None) == (self.epochs is None):
            raise OptionError(f"steps is {self.steps} and epochs is {self.epochs}; give one of them.")
        if self.steps is not None:
            self._counts("steps", least=1)
        if self.epochs is not None:
            self._require("epochs", 0 < self.epochs < math.inf, "a number above 0")
        self._counts("tokens", "accumulate", "save_every", "log_every", "keep", least=1)
        self._counts("seed", "patience", least=0)
        self._steps("warmup", least=0)
        self._steps("evaluate_every", least=1)
        for name in ("learning_rate", "eps"):
            self._require(name, 0 < getattr(self, name) < math.inf, "a number above 0")
        for name in ("weight_decay", "clip", "r_drop"):
            self._require(name, 0 <= getattr(self, name) < math.inf, "a number, 0 or more")
        self._require("final_share", 0 <= self.final_share <= 1, "from 0 to 1")
        self._shares("label_smoothing", "masked_share", "ema")
        self._require("betas", all(0 <= beta < 1 for beta in self.betas), "two numbers from 0 up to, but not, 1")
        # It falls as √(warmup / step), so that without a warm-up it would be 0 from the beginning.
        self._require("warmup", self.schedule != "inverse-sqrt" or self.warmup > 0, "1 or more with inverse-sqrt")

    def _steps(self, name: str, *, least: int) -> None:
        value = getattr(self, name)
        if isinstance(value, float):
            self._require(name, 0 < value < 1, "a whole number of steps, or a share of all steps between 0 and 1")
        else:
            self._counts(name, least=least)

    def counted(self, steps: int) -> "TrainingSettings":
        """The same for a run of so many steps: what is a share of them is a number of them."""

        def of(value: int | float) -> int:
            return value if isinstance(value, int) else max(1, round(value * steps))

        return replace(self, warmup=of(self.warmup), evaluate_every=of(self.evaluate_every))


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All of them. model: fields of the config of the task's model, which checks them when the model is made."""

    data: DataSettings
    tokenizer: TokenizerSettings
    model: Mapping[str, Any]
    training: TrainingSettings

    def as_toml(self, task: str, pretrained: Path | None = None) -> str:
        """A file for `regard train --config`: all settings, so that defaults may change and this training does not."""
        parts = {one.name: getattr(self, one.name) for one in fields(self)}
        tables = {name: dict(part) if isinstance(part, Mapping) else asdict(part) for name, part in parts.items()}
        return f"# regard train {task} --config {FILE}{beginning(pretrained)}\n\n" + written({"task": task, **tables})

    def save(self, folder: Path, task: str, pretrained: Path | None = None) -> None:
        """As run.toml of a folder."""
        write_whole(folder / FILE, (self.as_toml(task, pretrained).encode(),))


def beginning(pretrained: Path | None) -> str:
    """What a command says of the weights that it begins with."""
    return "" if pretrained is None else f" --from {pretrained}"


def _share(given: float | tuple[str, ...]) -> float | tuple[str, ...]:
    """A share that was written as a text, as a command line does, is the number."""
    if not isinstance(given, tuple) or len(given) != 1:
        return given
    try:
        return float(given[0])
    except ValueError:
        return given
