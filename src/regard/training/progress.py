"""Where a run stands, all of it that is not a tensor; it goes through JSON and back."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..text.batches import Place
from .watchfulness import Watch

BEGINNING = Place(0, 0, 0)


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
    watch: Watch = field(default_factory=Watch)

    def as_json(self) -> dict[str, Any]:
        """Plain numbers; infinity, which JSON does not have, as None."""
        told = asdict(self)
        told["watch"]["lowest"] = None if math.isinf(self.watch.lowest) else self.watch.lowest
        return told

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "Progress":
        """What as_json made."""
        watch = told["watch"]
        lowest = math.inf if watch["lowest"] is None else watch["lowest"]
        return cls(**{**told, "place": Place(*told["place"]), "watch": Watch(watch["mean"], lowest)})
