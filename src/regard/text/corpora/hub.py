"""Data sets of the Hugging Face hub, by name, through `datasets`; and any other rows that have names and values."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ...errors import FileError, MissingExtra, OptionError
from .corpus import Bad, Corpus, Example, Malformed
from .fields import Columns, Fields, columns_of, missing, picked


@dataclass(frozen=True)
class Rows:
    """Rows that are gone through again and again, and the name to call them by."""

    rows: Iterable[Mapping[str, Any]]
    columns: Columns
    name: str

    def __iter__(self) -> Iterator[Example | Bad]:
        number = 0
        for number, row in enumerate(self.rows, 1):
            if number == 1 and (lacking := missing(row, self.columns)):
                raise FileError(f"{self.name} has no {', '.join(lacking)}; its columns are: {', '.join(row)}.")
            try:
                yield picked(row, self.columns)
            except Malformed as why:
                yield Bad(self.name, number, str(why))
        if not number:
            raise FileError(f"There is no row in {self.name}.")


def rows(found: Iterable[Mapping[str, Any]], fields: Fields, *, name: str = "rows", most_bad: int = 100) -> Corpus:
    """Examples from rows that are there already: a list of mappings, or a data set that was loaded by other means."""
    if isinstance(found, Iterator):
        raise OptionError(
            f"{name} can be gone through once only; a corpus needs what can be iterated again, as a list."
        )
    columns = columns_of(fields)
    if not all(isinstance(column, str) for column in columns.values()):
        raise OptionError(f"fields is {columns}, and the columns of {name} have names.")
    return Corpus(Rows(found, columns, name), most_bad)


def hub(name: str, split: str, fields: Fields, *, subset: str | None = None, most_bad: int = 100) -> Corpus:
    """A split of a data set of the hub, streamed. {"source": "translation.en"} takes a value that is inside another."""
    try:
        datasets = import_module("datasets")
    except ImportError as absent:
        raise MissingExtra(f"the data set {name} comes through datasets: pip install regard[hub]") from absent
    try:
        found = datasets.load_dataset(name, subset, split=split, streaming=True)
    except (OSError, ValueError) as error:
        raise FileError(f"The split {split} of the data set {name} cannot be had: {error}") from error
    return rows(found, fields, name=f"{name}, {split}", most_bad=most_bad)
