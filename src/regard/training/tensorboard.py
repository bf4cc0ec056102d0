"""A run in TensorBoard: losses, learning rate, norms and what held-out text says, step by step."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import MissingExtra

FOLDER = "tensorboard"


class TensorBoard:
    """Told how a run goes, it writes what `tensorboard --logdir FOLDER` shows."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard.writer import SummaryWriter
        except ImportError as missing:
            raise MissingExtra("tensorboard=true needs tensorboard: pip install regard[train]") from missing
        self._make, self._folder = SummaryWriter, folder / FOLDER
        self._writer: Any = None

    def begin(self, told: Mapping[str, Any]) -> None:
        """What an interrupted run wrote of later steps goes: they are made once more."""
        self._writer = self._make(str(self._folder), purge_step=told["step"] + 1)

    def step(self, entry: Mapping[str, Any]) -> None:
        """A point on each curve of the training."""
        for name in ("loss", "learning_rate", "norm", "tokens_per_second"):
            self._writer.add_scalar(f"training/{name}", entry[name], entry["step"])

    def evaluated(self, entry: Mapping[str, Any]) -> None:
        """A point on each curve of the held-out text."""
        for name, value in entry.items():
            if name not in ("step", "best"):
                self._writer.add_scalar(f"held-out/{name}", value, entry["step"])
        self._writer.flush()

    def end(self, told: Mapping[str, Any]) -> None:
        """Everything is on the disk."""
        self._writer.close()

    def say(self, text: str) -> None:
        """Nothing: what is said of the text is no curve."""
