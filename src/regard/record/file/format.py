"""What writing and reading agree on: the name of a file, the format's version, its dtypes, the arrays of a map."""

# H query heads, G key heads, Q queries, K keys, D width, V value width

import os
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DtypeError, FileError
from ...formula.arrays import Array

FORMAT, VERSION = "regard-record", 1
LARGEST_HEADER = 100_000_000  # bytes; the safetensors library reads none that is larger

DTYPES = {  # what safetensors calls a dtype, and what NumPy and PyTorch call it
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
}  # fmt: skip
CODES = {name: code for code, name in DTYPES.items()}
ARRAYS = {"queries": "HQD", "keys": "GKD", "sinks": "H", "values": "GKV", "value_norms": "HK", "gradients": "HQV",
          "lse": "HQ"}  # of a map, with their axes  # fmt: skip


def dtype_of(code: str) -> Any:
    """NumPy's dtype for one of safetensors', little-endian."""
    if code == "BF16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(DTYPES[code]).newbyteorder("<")


def itemsize_of(code: str) -> int:
    """Bytes of a number of one of safetensors' dtypes."""
    return 2 if code == "BF16" else np.dtype(DTYPES[code]).itemsize


def dtype_name(array: Array) -> str:
    """What NumPy and PyTorch both call an array's dtype."""
    return str(getattr(array.dtype, "name", array.dtype)).removeprefix("torch.")


def path_of(path: Any) -> Path:
    """The path that a caller named, if it can be one of a file."""
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise DtypeError(f"path is {path!r}; it must be the name of a file.") from None
    if "\0" in name or not _is_encodable(name):
        raise FileError(f"{name!r} is no name of a file.")
    return Path(name)


def _is_encodable(name: str) -> bool:
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return True
