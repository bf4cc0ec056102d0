"""Where a run stands, all of it that is not a tensor; it goes through JSON and back."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..text.batches import Place
from .values import Unfit, fitting
from .watchfulness import Watch

BEGINNING = Place(0, 0, 0)
COUNTED = {"step", "best", "best_step", "waited", "seconds", "tokens", "norm", "unsaid"}  # the plain numbers of it


@dataclass(frozen=True)
class Progress:
    """Counted in steps, evaluations, seconds and tokens."""

    step: int = 0  # steps that are done
    place: Place = BEGINNING
    best: float | None = None
    best_step: int = 0
    waited: int = 0  # evaluations since the best
    seconds: float = 0.0
    tokens: int = 0
    norm: float = 0.0  # of the last gradients
    unsaid: tuple[float, ...] = ()  # losses since the last line of the log
    watch: Watch = field(default_factory=Watch)

    def as_json(self) -> dict[str, Any]:
        """Plain numbers; infinity, which JSON does not have, as None."""
        told = asdict(self)
        told["watch"]["lowest"] = None if math.isinf(self.watch.lowest) else self.watch.lowest
        return told

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "Progress":
        """What as_json made; ValueError where it is something else."""
        try:
            watch = {**told["watch"]}
            numbers = {
                one.name: fitting(told[one.name], one.type) for one in fields(cls) if one.name in COUNTED & told.keys()
            }
            place = Place(*fitting(told["place"], tuple[int, int, int]))
            lowest, mean = (fitting(watch[name], float | None) for name in ("lowest", "mean"))
        except (Unfit, KeyError, TypeError) as error:
            raise ValueError(f"not where a run stands: {error}") from None
        return cls(**numbers, place=place, watch=Watch(mean, math.inf if lowest is None else lowest))
