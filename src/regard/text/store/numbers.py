"""The two files of numbers of a token store: written in blocks, read in stretches, held whole by nobody."""

import os
from array import array
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from ...errors import FileError

IDS = "ids.bin"  # the ids of example 0, field by field, then of example 1, ...
ENDS = "ends.bin"  # 0, and where each field of each example ends in ids.bin
ENDS_KIND: np.dtype[Any] = np.dtype("<i8")
BLOCK = 2**17  # numbers that are gathered before they are written


def ids_kind(vocabulary: int) -> np.dtype[Any]:
    """How an id is written: in two bytes where they are enough, else in four."""
    return np.dtype("<u2" if vocabulary <= 2**16 else "<u4")


class Writer:
    """A file of numbers that grows. Left without an error, all of it is on the disk; count: numbers so far."""

    def __init__(self, path: Path, kind: np.dtype[Any]) -> None:
        self._path, self._kind = path, kind
        self._block = array("q")
        self._bytes = 0
        self.count = 0

    def __enter__(self) -> Self:
        try:
            self._file = open(self._path, "wb", buffering=0)
        except OSError as error:
            raise FileError(f"cannot write {self._path}: {error.strerror}.") from None
        return self

    def add(self, numbers: "array[int]") -> None:
        self._block.extend(numbers)
        self.count += len(numbers)
        if len(self._block) >= BLOCK:
            self._write()

    def _write(self) -> None:
        data = memoryview(np.frombuffer(self._block, np.int64).astype(self._kind).tobytes())
        try:
            while data:
                written = self._file.write(data)
                self._bytes += written
                data = data[written:]
        except OSError as error:
            raise self._failed(error) from None
        self._block = array("q")

    def _failed(self, error: OSError) -> FileError:
        return FileError(
            f"cannot write {self._path}: {error.strerror}, after {self._bytes:,} bytes. Nothing of the token store is "
            "kept; make room and build it again."
        )

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                self._write()
                os.fsync(self._file.fileno())
        except OSError as failed:
            raise failed if isinstance(failed, FileError) else self._failed(failed) from None
        finally:
            self._file.close()


def read(path: Path, kind: np.dtype[Any], starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """The numbers starts[i] to stops[i] of a file, one stretch behind the other, as int64."""
    size = kind.itemsize
    sizes = ((stops - starts) * size).tolist()
    try:
        file = os.open(path, os.O_RDONLY)
        try:
            found = [os.pread(file, n, at) for n, at in zip(sizes, (starts * size).tolist(), strict=True)]
        finally:
            os.close(file)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from None
    data = b"".join(found)
    if len(data) != sum(sizes):
        raise FileError(f"{path} is too short: {len(data):,} bytes where {sum(sizes):,} were to be read.")
    return np.frombuffer(data, kind).astype(np.int64)
