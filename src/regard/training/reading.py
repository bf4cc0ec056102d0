"""The section [data] → corpora: what is learned from, and what is held out to measure by."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..text import corpora
from ..text.corpora import Corpus, Parts
from .settings import DataSettings

TEXTS = ("paragraphs", "whole")
ENDS = 2**20  # bytes


def read(data: DataSettings, fields: Sequence[str], seed: int = 0) -> Parts:
    """Both parts, streamed. fields: what the task wants of an example, and the columns where [data] names none."""
    if not data.paths:
        raise OptionError("there is no data to learn from; give some, as in: --data train.tsv")
    columns: Mapping[str, Any] | Sequence[str] = data.fields or list(fields)
    missing = [name for name in fields if name not in columns]
    if missing:
        raise OptionError(
            f"fields has {', '.join(columns)}, and this task needs {', '.join(missing)} as well; "
            f"as in: --fields {','.join(f'{name}=column' for name in fields)}"
        )
    learned = corpus_of(data.paths, columns, data)
    if isinstance(data.held_out, tuple):
        return Parts(learned, corpus_of(data.held_out, columns, data))
    return corpora.split(learned, data.held_out, seed)


def corpus_of(paths: Sequence[str], fields: Any, data: DataSettings) -> Corpus:
    """The examples of some paths, read as [data] says."""
    if data.form == "parallel":
        if len(paths) != 2:
            raise OptionError(f"form is parallel and there are {len(paths)} paths; give two: the sources, the targets.")
        return corpora.parallel(paths[0], paths[1], most_bad=data.most_bad)
    if data.form == "questions":
        return _joined([corpora.questions(path, most_bad=data.most_bad) for path in paths], data.most_bad)
    if data.form == "hub":
        return _joined([_from_hub(path, fields, data.most_bad) for path in paths], data.most_bad)
    if data.form in TEXTS:
        chosen = {data.form: True}
        return corpora.read(paths, fields, form="text", most_bad=data.most_bad, **chosen)
    return corpora.read(paths, fields, form=data.form or None, most_bad=data.most_bad)


def stamp(paths: Sequence[str]) -> list[list[Any]]:
    """What tells whether files are still the ones they were, wherever they are now: name, size, beginning and end."""
    files = [inner for path in map(Path, paths) for inner in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    return [[file.name, file.stat().st_size, _ends(file)] for file in files if file.is_file()]


def _ends(file: Path) -> str:
    """A number for the first and the last bytes of a file."""
    with file.open("rb") as opened:
        first = opened.read(ENDS)
        opened.seek(max(file.stat().st_size - ENDS, 0))
        return hashlib.sha256(first + opened.read(ENDS)).hexdigest()


def _from_hub(path: str, fields: Any, most_bad: int) -> Corpus:
    name, *rest = path.split(":")
    if len(rest) not in (1, 2):
        raise OptionError(f"{path!r} names no split; write name:split, or name:subset:split, as in wmt19:zh-en:train.")
    return corpora.hub(name, rest[-1], fields, subset=rest[0] if len(rest) == 2 else None, most_bad=most_bad)


class _Chained:
    """What several corpora find, one behind the other."""

    def __init__(self, parts: Sequence[Corpus]) -> None:
        self.parts = parts

    def __iter__(self) -> Any:
        for part in self.parts:
            yield from part.found


def _joined(parts: Sequence[Corpus], most_bad: int) -> Corpus:
    return parts[0] if len(parts) == 1 else Corpus(_Chained(parts), most_bad)
