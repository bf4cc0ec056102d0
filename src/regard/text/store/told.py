"""What a token store says of itself, store.json: its fields, its counts, and what was cut or skipped."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...errors import FileError
from ...replacing import write_whole

FILE = "store.json"
FORM = "regard token store 1"


@dataclass(frozen=True, kw_only=True)
class Told:
    """The counts of a store, and what its maker wants to be known of it.

    tokens, cut: per field, how many ids there are and how many examples lost some. longest: the most ids a field may
    have, where there is a limit. description: the maker's own words, such as the hash of the tokenizer.
    """

    fields: tuple[str, ...]
    vocabulary: int
    examples: int
    tokens: dict[str, int]
    longest: dict[str, int]
    cut: dict[str, int]
    skipped: int
    description: dict[str, str]

    def sentence(self) -> str:
        """What there is and what was lost, in a line for the user."""
        lost = [
            f"{self.cut[name]:,} of {self.examples:,} were cut at {self.longest[name]:,} tokens in {name!r}"
            for name in self.fields
            if self.cut[name]
        ]
        if self.skipped:
            lost.append(f"{self.skipped:,} more were skipped, being longer than {limits(self.longest)}")
        there = f"{self.examples:,} examples, {sum(self.tokens.values()):,} tokens"
        return f"{there}; {'; '.join(lost) or 'none was cut or skipped'}."


def limits(longest: dict[str, int]) -> str:
    """The limits in words: 256 tokens in 'source' or 128 in 'target'."""
    return " or ".join(f"{most:,} tokens in {name!r}" for name, most in longest.items())


def write(folder: Path, told: Told) -> None:
    """Last of all files and in one step: a store that has it is whole."""
    text = json.dumps({"form": FORM, **asdict(told)}, ensure_ascii=False, indent=1)
    write_whole(folder / FILE, [text.encode()])


def read(folder: Path) -> Told:
    """What store.json says, if it is one and says it all."""
    path = folder / FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if folder.is_dir() and any(folder.glob("*.bin")):
            raise FileError(f"the token store {folder} is unfinished: it has no {FILE}. Build it again.") from None
        raise FileError(f"there is no token store in {folder}: it has no {FILE}.") from None
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from None
    except ValueError:
        raise FileError(f"{path} is damaged: it is not JSON. Build the store again.") from None
    if not isinstance(found, dict) or found.get("form") != FORM:
        form = found.get("form") if isinstance(found, dict) else None
        raise FileError(f"{path} is not of a token store that this version reads: form {form!r}, not {FORM!r}.")
    if not _is_whole(found):
        raise FileError(f"{path} is damaged: its counts are missing or make no sense. Build the store again.")
    del found["form"]
    return Told(**{**found, "fields": tuple(found["fields"])})


def _is_whole(found: dict[str, Any]) -> bool:
    """Whether all is there, of the right kind, and the counts agree with each other."""
    if set(found) != {"form", *Told.__dataclass_fields__}:
        return False
    fields = found["fields"]
    if not isinstance(fields, list) or not fields or not all(isinstance(name, str) for name in fields):
        return False
    counts = [found["tokens"], found["cut"], found["longest"]]
    if not all(isinstance(one, dict) for one in [*counts, found["description"]]):
        return False
    numbers = [found["vocabulary"], found["examples"], found["skipped"], *(n for one in counts for n in one.values())]
    if not all(isinstance(n, int) and n >= 0 for n in numbers):
        return False
    least = found["examples"]
    return (
        set(found["tokens"]) == set(found["cut"]) == set(fields) >= set(found["longest"])
        and len(set(fields)) == len(fields)
        and found["vocabulary"] >= 1
        and least >= 1
        and all(n >= least for n in found["tokens"].values())
        and all(isinstance(word, str) for word in found["description"].values())
    )
