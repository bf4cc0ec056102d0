"""A path, several, or a folder → a corpus; the ending of a name says how a file is written."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BufferedReader
from os import PathLike
from pathlib import Path

from ...errors import FileError, OptionError
from . import compressed
from .corpus import Bad, Corpus, Example
from .fields import Columns, Fields, columns_of
from .objects import objects
from .plain import each_line, each_paragraph, whole_file
from .tables import commas, tabs

Reader = Callable[[BufferedReader, str, Columns], Iterator[Example | Bad]]
READERS: dict[str, Reader] = {
    "tsv": tabs, "csv": commas, "jsonl": objects, "lines": each_line, "paragraphs": each_paragraph, "whole": whole_file,
}  # fmt: skip
ENDINGS = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "text", ".text": "text"}
FORMS = ("tsv", "csv", "jsonl", "text")


@dataclass(frozen=True)
class File:
    """A file, how it is read, and the label of the folder that it stands in, where that says one."""

    path: Path
    form: str
    columns: Columns
    label: str | None = None

    def __iter__(self) -> Iterator[Example | Bad]:
        with compressed.opened(self.path) as file:
            for found in READERS[self.form](file, str(self.path), self.columns):
                yield found if self.label is None or isinstance(found, Bad) else found | {"label": self.label}


@dataclass(frozen=True)
class Files:
    """Files one after the other, in which there is something."""

    files: tuple[File, ...]

    def __iter__(self) -> Iterator[Example | Bad]:
        empty = True
        for file in self.files:
            for found in file:
                empty = False
                yield found
        if empty:
            others = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
            raise FileError(f"There is no example in {self.files[0].path}{others}.")


def read(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    fields: Fields | None = None,
    *,
    form: str | None = None,
    whole: bool = False,
    paragraphs: bool = False,
    most_bad: int = 100,
) -> Corpus:
    """The examples of a file, of several, or of a folder.

    fields: which columns become which fields: {"source": "en"} by the names in the first line, or in the objects of
        JSON lines; ["text", "label"] where both have the same names; {"text": 1} by numbers from 0 on, in a table whose
        first line is an example. Plain text has one field, "text" if nothing is said.
    form: "tsv", "csv", "jsonl" or "text", for files whose names do not say it.
    whole, paragraphs: an example of plain text is a file, or what stands between blank lines, instead of a line.

    A folder that has folders in it is one of labels: their names become the field "label", each file in them an example
    if it is plain text. Any other folder is its files, by name. In folders only files whose endings say their form are
    read, and those next to the folders of labels are not.
    """
    if form not in (None, *FORMS):
        raise OptionError(f"form is {form!r}; it is one of {', '.join(FORMS)}.")
    if whole and paragraphs:
        raise OptionError("whole and paragraphs cannot both be: an example is a file or a part of one.")
    given = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    if not given:
        raise OptionError("There is no path to read; give one at least.")
    unit = "whole" if whole else "paragraphs" if paragraphs else None
    reading = _Reading(form, unit, None if fields is None else columns_of(fields))
    return Corpus(Files(tuple(file for path in given for file in reading.found(Path(path)))), most_bad)


@dataclass(frozen=True)
class _Reading:
    """How the caller wants files to be read."""

    form: str | None
    unit: str | None  # of plain text
    columns: Columns | None

    def found(self, path: Path) -> list[File]:
        if not path.is_dir():
            compressed.require_file(path)
            return [self.file(path)]
        folders = [inner for inner in _inside(path) if inner.is_dir()]
        if not folders:
            return self.files(path)
        labelled = replace(self, unit=self.unit or "whole", columns=_without_label(self.columns))
        return [replace(file, label=inner.name) for inner in folders for file in labelled.files(inner)]

    def files(self, folder: Path) -> list[File]:
        files = [self.file(path) for path in _inside(folder) if path.is_file() and (self.form or _form(path))]
        if not files:
            raise FileError(f"The folder {folder} has no file to read: none that ends in {_endings()}.")
        return files

    def file(self, path: Path) -> File:
        form = self.form or _form(path)
        if not form:
            raise FileError(
                f"The name of {path} does not say how it is written: it should end in {_endings()}; "
                f"or give form, one of {', '.join(FORMS)}."
            )
        if form == "text":
            return File(path, self.unit or "lines", self.columns or {"text": "text"})
        if self.unit:
            raise OptionError(f"{path} is {form}, and {self.unit} is for plain text.")
        if not self.columns:
            raise OptionError(f'Say which columns of {path} become which fields, as in fields={{"text": "review"}}.')
        return File(path, form, self.columns)


def _form(path: Path) -> str | None:
    return ENDINGS.get(compressed.bare(path).suffix.lower())


def _inside(folder: Path) -> list[Path]:
    """What is in a folder, by name, without what is hidden."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _without_label(columns: Columns | None) -> Columns | None:
    """The label comes from the folder."""
    return None if columns is None else {field: column for field, column in columns.items() if field != "label"}


def _endings() -> str:
    return f"{', '.join(ENDINGS)} (and {', '.join(compressed.ENDINGS)} behind it)"
