"""Examples → the files of a token store, in a stream: what is held is one block of ids, never the corpus."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, get_args

from ...errors import DtypeError, FileError, OptionError
from ...locking import locked
from . import told
from .numbers import ENDS, ENDS_KIND, IDS, Writer, ids_kind
from .told import Told, limits

TooLong = Literal["cut", "skip", "error"]


def build(
    folder: Path, examples: Iterable[Mapping[str, Sequence[int]]], fields: tuple[str, ...], *,
    vocabulary: int, longest: dict[str, int], too_long: TooLong, description: dict[str, str],
) -> None:  # fmt: skip
    """The whole store; see TokenStore.build."""
    _check(fields, vocabulary, longest, too_long, description)
    tally = _Tally(fields, longest, too_long)
    with _alone_in(folder):
        with Writer(folder / IDS, ids_kind(vocabulary)) as ids, Writer(folder / ENDS, ENDS_KIND) as ends:
            ends.add(array("q", [0]))
            for number, example in enumerate(examples):
                rows = [_row(number, example, field, vocabulary) for field in fields]
                for row in tally.fitted(number, rows):
                    ids.add(row)
                    ends.add(array("q", [ids.count]))
            tally.check(folder)
        told.write(folder, Told(
            fields=fields, vocabulary=vocabulary, examples=tally.examples, tokens=tally.tokens, longest=longest,
            cut=tally.cut, skipped=tally.skipped, description=description,
        ))  # fmt: skip


class _Tally:
    """Which examples fit, and the counts of those that did not."""

    def __init__(self, fields: tuple[str, ...], longest: dict[str, int], too_long: TooLong) -> None:
        self.longest, self.too_long = longest, too_long
        self.examples = self.skipped = 0
        self.tokens, self.cut = dict.fromkeys(fields, 0), dict.fromkeys(fields, 0)

    def fitted(self, number: int, rows: "list[array[int]]") -> "list[array[int]]":
        """The fields of an example as they are kept: whole or cut; none of them if it is skipped."""
        named = dict(zip(self.tokens, rows, strict=True))
        long = [name for name, row in named.items() if len(row) > self.longest.get(name, len(row))]
        if long and self.too_long == "error":
            raise OptionError(
                f"example {number:,} has {len(named[long[0]]):,} tokens in {long[0]!r}, and the limit is "
                f'{self.longest[long[0]]:,}. Raise it, or say too_long="cut" or "skip".'
            )
        if long and self.too_long == "skip":
            self.skipped += 1
            return []
        for name in long:
            self.cut[name] += 1
            # What ends a text, [SEP], stays its end.
            named[name] = named[name][: self.longest[name] - 1] + named[name][-1:]
        for name, row in named.items():
            self.tokens[name] += len(row)
        self.examples += 1
        return list(named.values())

    def check(self, folder: Path) -> None:
        if not self.examples:
            why = f": {self.skipped:,} came, all longer than {limits(self.longest)}" if self.skipped else ""
            raise OptionError(f"there are no examples to build the token store {folder} from{why}.")


def _row(number: int, example: Mapping[str, Sequence[int]], field: str, vocabulary: int) -> "array[int]":
    """The ids of a field, if they are ids."""
    if field not in example:
        there = ", ".join(map(repr, example)) or "nothing"
        raise OptionError(f"example {number:,} has no {field!r}; it has {there}.")
    try:
        row = array("q", example[field])
    except (TypeError, OverflowError, ValueError) as error:
        raise DtypeError(f"example {number:,} should have ids, whole numbers, in {field!r}: {error}.") from None
    if not row:
        raise OptionError(f"example {number:,} has no ids in {field!r}; leave such examples out.")
    if min(row) < 0 or max(row) >= vocabulary:
        wrong = min(row) if min(row) < 0 else max(row)
        raise OptionError(
            f"example {number:,} has {wrong} in {field!r}; with a vocabulary of {vocabulary:,}, ids are 0 to "
            f"{vocabulary - 1}."
        )
    return row


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """The folder, made if need be, without a finished store and without another process that builds one."""
    with locked(folder, busy=f"another process is building a token store in {folder}; wait until it is done."):
        if (folder / told.FILE).exists():
            raise FileError(f"{folder} has a finished token store; open it, or remove the folder to build it again.")
        try:
            yield
        except BaseException:  # a disk that is full is not to stay full of what nobody can use
            for name in (IDS, ENDS):
                (folder / name).unlink(missing_ok=True)
            raise


def _check(
    fields: tuple[str, ...], vocabulary: int, longest: dict[str, int], too_long: str, description: dict[str, str]
) -> None:
    if not fields or len(set(fields)) != len(fields):
        raise OptionError(f"fields is {fields}; it must be one name or more, each once.")
    if vocabulary < 1 or vocabulary > 2**32:
        raise OptionError(f"vocabulary is {vocabulary}; it must be 1 or more, and 2**32 at most.")
    for field, most in longest.items():
        if field not in fields or most < 1:
            raise OptionError(f"longest has {most} for {field!r}; it must be 1 or more, for one of {fields}.")
    if too_long not in get_args(TooLong):
        raise OptionError(f'too_long is {too_long!r}; it must be "cut", "skip" or "error".')
    if not all(isinstance(word, str) for pair in description.items() for word in pair):
        raise DtypeError(f"description is {description}; its names and values must be text, for they go into JSON.")
