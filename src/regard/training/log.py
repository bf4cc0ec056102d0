"""What a run did, step by step: a file of JSON lines that a run which goes on continues without a gap or a double."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import FileError
from ..replacing import reason, write_whole

FILE = "log.jsonl"


class Log:
    """The log of a run. A line has its step, and what is told of it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def begin(self, step: int) -> None:
        """Lines of later steps go: they are made once more, to the bit, by a run that goes on from here."""
        kept = [json.dumps(line) for line in read(self.path) if line["step"] <= step] if step else []
        write_whole(self.path, ["".join(f"{line}\n" for line in kept).encode()])

    def add(self, entry: Mapping[str, Any]) -> None:
        """One line more. A run that goes on makes those behind its checkpoint anew, so none is waited for."""
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(dict(entry)) + "\n")
        except OSError as error:
            raise FileError(f"{self.path} cannot be written: {reason(error, self.path)}") from None

    def keep(self) -> None:
        """All lines so far are on the disk when this comes back."""
        with self.path.open("a", encoding="utf-8") as file:
            os.fsync(file.fileno())


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log. The last may be torn, where a machine went down; what is no line is left out."""
    if not path.exists():
        return
    with path.open("rb") as file:  # a torn line need not be text
        for line in file:
            try:
                entry = json.loads(line)
            except ValueError:
                return
            if isinstance(entry, dict) and isinstance(entry.get("step"), int) and "kind" in entry:
                yield entry
