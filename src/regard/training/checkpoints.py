"""Checkpoints of a run: everything that it needs to go on as if nothing had happened, whole or not there at all.

They are torch's distributed checkpoints, whose index is a pickle: a checkpoint is for going on with a run of your own,
never for handing on. What is handed on is the model's folder, in which nothing is a pickle.
"""

import hashlib
import json
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from ..errors import FileError
from ..replacing import reason, write_whole
from .ranks import Ranks

STATE = "state.json"
NAME = "step-{:09d}"
PART = ".{}.part"  # of one that is being written, or removed


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a run, in one folder. keep: so many of the latest stay."""

    folder: Path
    ranks: Ranks
    keep: int = 2

    def steps(self) -> list[int]:
        """The steps of which there are whole checkpoints, in order."""
        found = (re.fullmatch(r"step-(\d{9,})", path.parent.name) for path in self.folder.glob("*/" + STATE))
        return sorted(int(name[1]) for name in found if name)

    def write(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """All tensors and the state of a step. It takes its name when it is complete; only then older ones go."""
        target = self.folder / NAME.format(step)
        part = self.folder / PART.format(target.name)
        with _complaining(target, self.ranks, part), _quiet():
            if self.ranks.first:
                self.folder.mkdir(parents=True, exist_ok=True)
                for left in self.folder.glob(PART.format("step-*")):  # by a process that was killed
                    shutil.rmtree(left, ignore_errors=True)
                part.mkdir()
            self.ranks.wait()
            save(
                dict(tensors), storage_writer=FileSystemWriter(part, sync_files=True),
                no_dist=self.ranks.count == 1,
            )  # fmt: skip
            if self.ranks.first:
                sums = {path.name: _sum_of(path) for path in sorted(part.iterdir())}
                content = json.dumps({**state, "step": step, "files": sums}, indent=1)
                write_whole(part / STATE, (content.encode(),))
                _synced(part)
                if target.exists():
                    shutil.rmtree(target)
                part.rename(target)
                _synced(self.folder)
                for older in self.steps()[: -self.keep]:
                    self._remove(NAME.format(older))
        self.ranks.wait()

    def state(self, step: int) -> dict[str, Any]:
        """What was kept beside the tensors of a step, its files looked through: a damaged one is told here."""
        path = self.folder / NAME.format(step)
        try:
            state = json.loads((path / STATE).read_bytes())
            files = dict(state["files"])
        except (OSError, ValueError, KeyError, TypeError):
            raise self.unreadable(step) from None
        if self.ranks.first:
            for name, known in files.items():
                if not (path / name).is_file() or _sum_of(path / name) != known:
                    raise self._damaged(path, f"{name} is not as it was written")
        return dict(state)

    def read(self, step: int, tensors: Mapping[str, Tensor]) -> None:
        """The tensors of a step, into those that are given, on however many processes they were written."""
        path = self.folder / NAME.format(step)
        reader = FileSystemReader(path)
        try:
            with _quiet():
                load(dict(tensors), storage_reader=reader, no_dist=self.ranks.count == 1)
        except (Exception, CheckpointException) as error:  # which wraps whatever the library meets, and is no Exception
            raise self._damaged(path, _last_line(error)) from None

    def clear(self) -> None:
        """Begin anew."""
        if self.ranks.first:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.ranks.wait()

    def _remove(self, name: str) -> None:
        """Under another name first, so that what a kill leaves is never taken for a whole one."""
        part = self.folder / PART.format(name)
        (self.folder / name).rename(part)
        shutil.rmtree(part)

    def unreadable(self, step: int) -> FileError:
        """The error for a step whose state is not what a run keeps."""
        return self._damaged(self.folder / NAME.format(step), f"its {STATE} cannot be read")

    def _damaged(self, path: Path, why: str) -> FileError:
        others = [step for step in self.steps() if NAME.format(step) != path.name]
        then = f"the run then goes on from step {others[-1]}" if others else "the run then begins anew"
        return FileError(f"{path} is damaged, or no checkpoint of this run: {why}. Delete it; {then}.")


@contextmanager
def _quiet() -> Iterator[None]:
    """One process is what is meant, and the library warns of it nevertheless."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled, unavailable or uninitialized")
        yield


@contextmanager
def _complaining(target: Path, ranks: Ranks, part: Path) -> Iterator[None]:
    """A checkpoint that cannot be written leaves nothing behind, and the older ones as they are."""
    try:
        yield
    except (Exception, CheckpointException) as error:  # which wraps what the disk said, and is no Exception
        if ranks.first:
            shutil.rmtree(part, ignore_errors=True)
        if isinstance(error, FileError):
            raise
        cause = _disk_error(error)
        if cause is None and not isinstance(error, CheckpointException):
            raise
        why = f"{_last_line(error)}." if cause is None else reason(cause, target)
        raise FileError(f"{target} cannot be written: {why} The older checkpoints are whole.") from None


def _disk_error(error: BaseException) -> OSError | None:
    """The error of the disk that an error of the library was made of, if there is one."""
    seen: list[BaseException] = [error]
    for found in seen:
        if isinstance(found, OSError):
            return found
        inner = [found.__cause__, found.__context__, *getattr(found, "failures", {}).values()]
        seen.extend(one for one in map(_error_of, inner) if one is not None and one not in seen)
    return None


def _error_of(found: Any) -> BaseException | None:
    """An error, which the library keeps by itself or together with where it happened."""
    one = found[0] if isinstance(found, tuple) else found
    return one if isinstance(one, BaseException) else None


def _last_line(error: BaseException) -> str:
    """What went wrong, in the library's words, without where in the library it did."""
    return (str(error) or type(error).__name__).splitlines()[-1]


def _sum_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _synced(folder: Path) -> None:
    """The folder's own entries on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
