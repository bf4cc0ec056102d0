"""Text → what a run reads: the tokenizers, the labels, and the stores of ids; made once, and found again."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from ..errors import FileError, OptionError
from ..model.kinds import load
from ..replacing import write_whole
from ..text.bpe import TARGET, Tokenizer
from ..text.corpora import Corpus
from ..text.store import TokenStore
from .jobs import JOBS, Job
from .reading import read, stamp
from .settings import Settings
from .tasks import labels_of

FOLDER, FILE = "tokens", "prepared.json"
LEARNED, HELD = "learned", "held-out"
ENOUGH = 100_000_000  # characters that pieces are learned from; more would change few of them

Say = Callable[[str], None]


@dataclass(frozen=True)
class Prepared:
    """A job and the text it reads, as ids."""

    job: Job
    learned: TokenStore
    held: TokenStore
    origin: str  # a number for all that they were made of


def prepare(task: str, settings: Settings, out: Path, *, pretrained: Path | None, begun: bool, say: Say) -> Prepared:
    """All that is made of the text, in a folder of the run's. What is there already and of the same origin is taken.

    begun: the run has checkpoints, so that with other text it could not go on.
    """
    folder = out / FOLDER
    origin = _origin(task, settings, pretrained)
    there = _told(folder).get("origin")
    if there == origin:
        return found(task, settings, out)
    if begun and there is not None:  # where nothing is left of the text it is read anew, and the checkpoint compares
        raise FileError(
            f"{out} has a run that was begun with other text, another tokenizer or another seed, or whose files have "
            "changed since. Go on with those it was begun with, give another folder with --out, or begin anew with "
            "--fresh."
        )
    if pretrained is not None:
        _require_room(pretrained, settings)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kind = JOBS[task]
    learned, held = read(settings.data, kind.fields, settings.training.seed)
    _require_parts(learned, held, settings)
    tokenizer, target = _tokenizers(kind, learned, settings, pretrained, say)
    tokenizer.save(folder)
    if target is not None:
        target.save(folder, TARGET)
    labels = labels_of(learned) if "label" in kind.fields else ()
    job = kind(task, settings, tokenizer, target, labels)
    _require_model(job, pretrained)
    for name, corpus in ((LEARNED, learned), (HELD, held)):
        _build(job, corpus, folder / name, say)
    write_whole(folder / FILE, (json.dumps({"origin": origin, "labels": labels}).encode(),))
    return found(task, settings, out)


def found(task: str, settings: Settings, out: Path) -> Prepared:
    """What was prepared before, or by another process."""
    folder = out / FOLDER
    told = _told(folder)
    target = Tokenizer.load(folder, TARGET) if (folder / TARGET).exists() else None
    job = JOBS[task](task, settings, Tokenizer.load(folder), target, told["labels"])
    learned, held = (TokenStore.open(folder / name) for name in (LEARNED, HELD))
    return Prepared(job, learned, held, told["origin"])


def _tokenizers(
    kind: type[Job], corpus: Corpus, settings: Settings, pretrained: Path | None, say: Say
) -> tuple[Tokenizer, Tokenizer | None]:
    """Those that are given, or new ones made of the text."""
    given = _given(kind, settings, pretrained)
    if given is not None:
        return given
    say(f"learning {settings.tokenizer.size:,} pieces from the text")
    two = "target" in kind.spoken and not settings.tokenizer.shared
    sides = [[name] for name in kind.spoken] if two else [list(kind.spoken)]
    made = [Tokenizer.train(_texts(corpus, side), settings.tokenizer.size) for side in sides]
    return made[0], made[1] if two else None


def _given(
    kind: type[Job], settings: Settings, pretrained: Path | None
) -> tuple[Tokenizer, Tokenizer | None] | None:  # fmt: skip
    """Those of the model to go on with, or those that [tokenizer] names."""
    given = pretrained or (Path(settings.tokenizer.path) if settings.tokenizer.path else None)
    if given is None:
        return None
    folder = given if given.is_dir() else given.parent
    own = pretrained is not None and (folder / TARGET).exists()
    two = "target" in kind.spoken and (own or not settings.tokenizer.shared)
    return Tokenizer.load(given), Tokenizer.load(folder, TARGET) if two else None


def _texts(corpus: Corpus, fields: list[str]) -> Iterator[str]:
    """The texts that pieces are learned from, as many as are enough."""
    seen = 0
    for example in corpus:
        for field in fields:
            seen += len(example[field])
            yield example[field]
        if seen > ENOUGH:
            return


def _require_room(pretrained: Path, settings: Settings) -> None:
    """A model to go on with reads no longer texts than it was made for, whatever the recipe says."""
    config = load(pretrained).config
    most = getattr(config, "reader", config).longest
    if settings.data.longest > most:
        raise OptionError(
            f"longest is {settings.data.longest:,}, and the model of {pretrained} was made for {most:,} tokens at "
            f"most; say --set longest={most}."
        )


def _require_parts(learned: Corpus, held: Corpus, settings: Settings) -> None:
    """Text to learn from and text to measure by, before hours are spent on one of them."""
    for corpus, says in (
        (held, "none of the examples is held out to measure by; raise the share"),
        (learned, "all of the examples are held out, and none is left to learn from; lower the share"),
    ):
        if next(iter(corpus), None) is None:
            bad = corpus.skipped
            malformed = f" {bad.count:,} malformed ones were left out; the first: {bad.first[0]}." if bad.count else ""
            raise OptionError(
                f"held_out is {settings.data.held_out}, and so {says}, or give files of their own. Which examples are "
                f"held out goes by their text, so equal ones are on the same side.{malformed}"
            )


def _require_model(job: Job, pretrained: Path | None) -> None:
    """A model that can be made, before hours are spent on its text."""
    if pretrained is not None:
        job.model(pretrained)
        return
    with torch.device("meta"):  # its shape alone, without its memory
        job.model(None)


def _build(job: Job, corpus: Corpus, folder: Path, say: Say) -> None:
    say(f"making ids of the text that is {folder.name}" if folder.name == HELD else "making ids of the text")
    # Beside ids the store keeps labels and places, which are small numbers too.
    vocabulary = max(job.tokenizer.size, job.target.size if job.target else 0, job.settings.data.longest + 1, 1 << 12)
    told: Counter[str] = Counter()
    store = TokenStore.build(
        folder, job.encoded(corpus, told), job.task.fields, vocabulary=vocabulary, longest=job.limits(),
        too_long=job.settings.data.too_long, description={"tokenizer": job.tokenizer.hash},
    )  # fmt: skip
    say(f"{folder.name}: {store.told.sentence()}")
    for what, count in told.items():
        if count:
            say(f"{folder.name}: {what}: {count:,}")
    if corpus.skipped.count:
        say(f"{corpus.skipped.count:,} malformed examples were skipped; the first: {corpus.skipped.first[0]}")


def _origin(task: str, settings: Settings, pretrained: Path | None) -> str:
    """All that the ids depend on, in one number: files, how they are read, and what makes ids of them."""
    data = settings.data
    held = data.held_out if isinstance(data.held_out, tuple) else ()
    files = [] if data.form == "hub" else stamp([*data.paths, *held])
    given = _given(JOBS[task], settings, pretrained)
    pieces: Any = [one.hash for one in given if one] if given else asdict(settings.tokenizer)
    # Where the files are plays no part, so that a project can be moved; a name on the hub is all there is of its text.
    where = {} if data.form == "hub" else {"paths": len(data.paths), "held_out": len(held) or data.held_out}
    told = [task, {**asdict(data), **where}, files, pieces, settings.training.seed]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _told(folder: Path) -> dict[str, Any]:
    try:
        told = json.loads((folder / FILE).read_bytes())
        return {"origin": str(told["origin"]), "labels": tuple(map(str, told["labels"]))}
    except (OSError, ValueError, TypeError, KeyError):
        return {}
