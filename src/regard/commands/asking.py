"""A trained model asked, text by text: its results as lines or JSON, and the attention of what it did."""

import json
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import FileError, OptionError
from .showing import Files, show
from .waiting import waiting

BATCH = 64  # texts that are asked about at once; no more are held, however many there are
# what a folder holds: the command that uses it, and the task that makes it
USES = {
    "regard.Translator": ("translate", "translation"),
    "regard.LanguageModel": ("generate", "language-model"),
    "regard.Classifier": ("classify", "classification"),
    "regard.TextEncoder": ("fill", "masked-language-model"),
    "regard.Answerer": ("answer", "question-answering"),
}


class Wanted(NamedTuple):
    """What is to come out."""

    as_json: bool
    see: bool
    save: Path | None

    @property
    def looks(self) -> bool:
        """Whether the attention is wanted."""
        return self.see or self.save is not None

    def texts(self, texts: Iterator[str]) -> Iterator[str]:
        """The texts to ask about: one alone where its attention is wanted. What is wrong is said before the work."""
        Files(save=self.save).require_places()
        if not self.looks:
            return texts
        some = list(islice((text for text in texts if text.strip()), 2))
        if len(some) != 1:
            raise OptionError(f"the attention of one text is shown, and there {'is none' if not some else 'are more'}.")
        return iter(some)

    def show(self, record: Any, name: str) -> None:
        """The attention, as `regard see` shows it."""
        from ..view.labels import printable

        files = Files(save=self.save)
        kept = "run.regard" if self.save is None else printable(str(self.save))
        hint = f"other heads: {'--save run.regard, then ' * (self.save is None)}regard open {kept} --layer 0 --head 0"
        show(record, model=name, layer=None, head=None, words=None, files=files, as_json=self.as_json, hint=hint)


def loaded(folder: str, kind: str) -> Any:
    """What predicts with the model of a folder, if that is of the kind."""
    from ..predictions import load

    if (Path(folder) / "run.toml").exists() and not (Path(folder) / "config.json").exists():
        raise FileError(
            f"{folder} has a training, and no model yet: it is kept at the first look at held-out text. Go on with "
            "the same regard train; --set evaluate_every=N has it look sooner."
        )
    with waiting(f"loading {folder}"):
        predictor = load(folder)
    found = predictor.model.kind
    if found != kind:
        command, _ = USES[found]
        _, task = USES[kind]
        raise OptionError(
            f"{folder} holds {_a(found)}, which is for regard {command}; this needs {_a(kind)}: regard train {task} "
            "makes one."
        )
    return predictor


def ask(
    texts: Iterator[str], predict: Callable[[list[str]], list[Any]], line: Callable[[Any], str], wanted: Wanted, *,
    look: Callable[[str, Any], Any], name: str, blank: bool = False,
) -> None:  # fmt: skip
    """Print a result for each text, and a blank line, or null, for a blank one unless that is a text like any other.

    look: a text and its result → the record of what was done with it.
    """
    cut = 0
    text, result = "", None
    for some in _batches(texts):
        full = [text for text in some if blank or text.strip()]
        with waiting(f"{name} works"):
            results = iter(predict(full) if full else [])
        for text in some:
            result = next(results) if blank or text.strip() else None
            cut += bool(result is not None and getattr(result, "cut", False))
            _tell(result, line, as_json=wanted.as_json)
        sys.stdout.flush()
    tell_cut(cut, name)
    if wanted.looks and result is not None:
        wanted.show(look(text, result), name)


def tell_cut(count: int, name: str) -> None:
    """How many texts were cut, on standard error, where any were."""
    if count:
        print(f"regard: {_texts(count)} longer than {name} reads, and cut.", file=sys.stderr)


def one_line(text: str) -> str:
    """A text for one line: nothing in it ends the line, or acts on a terminal."""
    from ..view.labels import printable

    joined = " ".join(text.splitlines())
    return printable(joined) if sys.stdout.isatty() else joined


def _tell(result: Any, line: Callable[[Any], str], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(None if result is None else result.as_json(), allow_nan=False, ensure_ascii=False))
    else:
        print("" if result is None else line(result))


def _batches(texts: Iterator[str]) -> Iterator[list[str]]:
    while some := list(islice(texts, BATCH)):
        yield some


def _a(kind: str) -> str:
    name = kind.removeprefix("regard.")
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _texts(count: int) -> str:
    return "1 text was" if count == 1 else f"{count:,} texts were"
