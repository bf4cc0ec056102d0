"""A file → its record: the header is read and checked, the arrays are views of the disk."""

import json
import math
import os
import re
import stat
from io import BufferedReader
from typing import Any

import numpy as np

from ...errors import FileError, RegardError
from ..record import Record
from .description import field_of, newer, run_of, shown
from .format import DTYPES, FORMAT, LARGEST_HEADER, VERSION, dtype_of, itemsize_of, path_of
from .forms import COUNTS, TEXT

LARGEST_ARRAY = 2**48  # numbers


def open(path: str | os.PathLike[str]) -> Record:
    """The record that a file holds. Its header is read and checked; the arrays stay on disk until they are needed."""
    source = path_of(path)
    try:
        if not stat.S_ISREG(source.stat().st_mode):
            raise FileError(f"this is {'a folder' if source.is_dir() else 'no plain file'}; a record is a file.")
        with source.open("rb") as file:
            record, arrays = _opened(file)
        return Record([run_of(record, arrays)])
    except FileNotFoundError:
        raise FileError(f"{source}: there is no such file.") from None
    except RegardError as error:
        raise FileError(f"{source}: {error}") from None
    except (OSError, ValueError) as error:
        raise FileError(f"{source} cannot be opened: {getattr(error, 'strerror', None) or error}.") from None


def _opened(file: BufferedReader) -> tuple[Any, dict[str, Any]]:
    """A record's description, and its arrays as views of the file."""
    size = os.fstat(file.fileno()).st_size
    if size < 8:
        raise FileError(f"the file is {'empty' if size == 0 else f'{size} bytes long'}; a record begins with 8 bytes.")
    length = int.from_bytes(file.read(8), "little")
    if length > min(size - 8, LARGEST_HEADER):
        raise FileError(
            f"this is no record, or the end of it is missing: the first 8 bytes announce a header of {length:,} bytes, "
            f"and the file has {size:,} (a header at most {LARGEST_HEADER:,})."
        )
    header = _parsed(file.read(length), "the header")
    record = _record_of(header)
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    spans = {name: _span(f"tensor {shown(name)}", entry) for name, entry in entries.items()}
    _require_filled(spans, size - 8 - length)
    data = np.asarray(np.memmap(file, dtype=np.uint8, mode="r"))[8 + length :]
    views = {
        name: data[begin:end].view(dtype_of(entries[name]["dtype"])).reshape(entries[name]["shape"])
        for name, (begin, end) in spans.items()
    }
    return record, views


def _record_of(header: Any) -> Any:
    """The description of the run, out of a header that may be of anything."""
    if not isinstance(header, dict):
        raise FileError("the header is not a JSON object; this is no safetensors file.")
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        names = [name for name in header if name != "__metadata__"]
        raise FileError(
            f"this is a safetensors file of {len(names)} tensors ({', '.join(map(shown, names[:2])) or 'none'}"
            f"{', …' if len(names) > 2 else ''}), not a record; regard.open opens what record.save wrote."
        )
    version = metadata.get("version")
    if not isinstance(version, str) or not re.fullmatch("[1-9][0-9]{0,5}", version):
        raise FileError(f"the version of the format is {shown(version)}; it should be a number.")
    if int(version) > VERSION:
        raise FileError(f"version {version} of the format, {newer()}")
    return _parsed(field_of(metadata, "record", "the header", TEXT), "the description of the record")


def _parsed(text: bytes | str, what: str) -> Any:
    try:
        whole = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(whole, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise FileError(f"{what} is not JSON that can be read ({reason}); the file is damaged, or no record.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise FileError("the header says the same thing twice; the file is damaged.")
    return found


def _span(what: str, entry: Any) -> tuple[int, int]:
    """Where a tensor begins and ends, if it is as long as its shape says."""
    code = field_of(entry, "dtype", what, TEXT)
    if code not in DTYPES:
        raise FileError(f"{what} has dtype {shown(code)}; a record has {', '.join(DTYPES)}.")
    shape, span = (field_of(entry, name, what, COUNTS) for name in ("shape", "data_offsets"))
    if len(shape) > 8 or math.prod(max(size, 1) for size in shape) > LARGEST_ARRAY:
        raise FileError(f"{what} has shape {shown(shape)}; that is more than a record can have.")
    if len(span) != 2 or span[1] - span[0] != math.prod(shape) * itemsize_of(code):
        raise FileError(f"{what}, {shown(shape)} of {code}, lies at {shown(span)}, which is not its size.")
    return span[0], span[1]


def _require_filled(spans: dict[str, tuple[int, int]], room: int) -> None:
    """The tensors lie one behind the other, from the end of the header to the end of the file."""
    end = 0
    for name, (begin, after) in sorted(spans.items(), key=lambda pair: pair[1]):
        if begin != end:
            raise FileError(f"tensor {shown(name)} begins at {begin} and should at {end}; the file is damaged.")
        end = after
    if end != room:
        wrong = "the end of it is missing" if end > room else "something was added to it"
        raise FileError(f"the tensors take {end:,} bytes and the file has {room:,} for them; {wrong}.")
