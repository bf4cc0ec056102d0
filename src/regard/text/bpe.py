"""Text → pieces of words and back: byte-level BPE, to which no text is unknown (Sennrich et al. 2016)."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import FileError, MissingExtra, OptionError
from ..replacing import write_whole

try:
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, processors, trainers
except ImportError as missing:
    raise MissingExtra("regard.text.bpe needs tokenizers: pip install regard[train]") from missing

PAD, FIRST, LAST, MASK = SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")
SMALLEST = 256 + len(SPECIAL)  # a piece for every byte, so that every text has pieces
FILE = "tokenizer.json"
TARGET = "target-tokenizer.json"  # of the target, where a translator has two
SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Encoded:
    """A text in pieces. text[slice(*offsets[i])] is what piece i stands for; the ends, [CLS] and [SEP], are empty."""

    ids: list[int]
    pieces: list[str]  # as the vocabulary writes them: "Ġ" is the space before a word
    offsets: list[tuple[int, int]]


class Tokenizer:
    """A vocabulary of pieces and how texts are taken apart into them.   `Tokenizer.load(folder).encode("Hello!")`

    Of the special pieces a text can only hold [MASK], with or without a space before it; "[PAD]" in a text is five
    signs like any others. pad, first, last, mask: their ids.
    """

    def __init__(self, engine: tokenizers.Tokenizer) -> None:
        self._engine = engine
        ids = [engine.token_to_id(name) for name in SPECIAL]
        absent = [name for name, number in zip(SPECIAL, ids, strict=True) if number is None]
        if absent:
            raise OptionError(f"the vocabulary has no {', '.join(absent)}; it must have all of {', '.join(SPECIAL)}.")
        self.pad, self.first, self.last, self.mask = (number for number in ids if number is not None)
        self._space = engine.token_to_id("Ġ")

    @property
    def size(self) -> int:
        """How many pieces there are, special ones and all; ids are below it."""
        return self._engine.get_vocab_size()

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of what `save` writes: two tokenizers with the same one take every text apart alike."""
        return hashlib.sha256(self._text().encode()).hexdigest()

    @classmethod
    def train(cls, texts: Iterable[str], size: int) -> "Tokenizer":
        """A vocabulary of at most `size` pieces: all bytes, and what stands together most often in `texts`.

        The texts are gone through once and not held; what is held is how often each word comes.
        """
        if isinstance(size, bool) or not isinstance(size, int) or size < SMALLEST:
            raise OptionError(
                f"size is {size!r}; it must be a whole number, {SMALLEST} or more: 256 bytes and {len(SPECIAL)} "
                "special pieces are always there."
            )
        engine = tokenizers.Tokenizer(models.BPE())
        # The space before the first word is ours to add (see encode): the library would add one after each [MASK] too.
        engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        engine.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=list(SPECIAL),
            show_progress=False,
        )  # fmt: skip
        engine.train_from_iterator((_spaced(_clean(text)) for text in texts), trainer)
        return cls(_finished(engine))

    @classmethod
    def load(cls, folder: Path | str, name: str = FILE) -> "Tokenizer":
        """The tokenizer of a model's folder, where its file has that name, or of such a file itself."""
        path = Path(folder)
        path = path / name if path.is_dir() else path
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise FileError(f"cannot read {path}: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise FileError(f"{path} is not UTF-8 text; it should be the JSON file of a tokenizer.") from None
        try:
            return cls(tokenizers.Tokenizer.from_str(text))
        except OptionError as error:
            raise FileError(f"{path} is no tokenizer of this kind: {error}") from None
        except Exception as error:  # the library raises plain Exception for whatever it cannot read
            raise FileError(f"{path} is damaged, or no tokenizer: {error}.") from None

    def save(self, folder: Path | str, name: str = FILE) -> None:
        """Into the folder, under that name; the file is whole and on disk before it takes the place of an older one."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        write_whole(path / name, [self._text().encode()])

    def encode(self, text: str, *, ends: bool = True) -> Encoded:
        """The pieces of a text. ends: between [CLS] and [SEP], as a model wants it.

        A space is thought before the first word, which is then the same piece as anywhere else in a text; not so where
        that space would be a piece by itself, as before an emoji.
        """
        clean = _clean(text)
        found = self._engine.encode(_spaced(clean), add_special_tokens=ends)
        shift = len(_spaced(clean)) - len(clean)
        if shift and found.ids[ends : ends + 1] == [self._space]:
            found, shift = self._engine.encode(clean, add_special_tokens=ends), 0
        offsets = [_without_space(clean, max(start - shift, 0), max(end - shift, 0)) for start, end in found.offsets]
        return Encoded(found.ids, [self.piece(number) for number in found.ids], offsets)

    def ids(self, texts: Sequence[str], *, ends: bool = False) -> list[list[int]]:
        """The ids of many texts, on all cores: those that `encode` finds for each by itself."""
        clean = [_clean(text) for text in texts]
        found = self._many([_spaced(text) for text in clean], ends)
        alone = [n for n, ids in enumerate(found) if ids[ends : ends + 1] == [self._space]]
        for n, ids in zip(alone, self._many([clean[n] for n in alone], ends), strict=True):
            found[n] = ids
        return found

    def _many(self, texts: list[str], ends: bool) -> list[list[int]]:
        return [found.ids for found in self._engine.encode_batch_fast(texts, add_special_tokens=ends)]

    def _text(self) -> str:
        """The vocabulary as a file has it."""
        return self._engine.to_str(pretty=False)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some pieces, without [PAD], [CLS], [SEP] and the space thought before the first word."""
        silent = {self.pad, self.first, self.last}
        pieces = [f"Ġ{MASK}" if number == self.mask else self.piece(number) for number in ids if number not in silent]
        return str(decoders.ByteLevel().decode(pieces)).removeprefix(" ")

    def piece(self, number: int) -> str:
        """How the vocabulary writes a piece."""
        piece = self._engine.id_to_token(number) if 0 <= number < self.size else None
        if piece is None:
            raise OptionError(f"{number} is no piece; the ids of this vocabulary are 0 to {self.size - 1}.")
        return piece

    def id(self, piece: str) -> int | None:
        """The id of a piece, "Ġthe" for one; None where there is no such piece."""
        return self._engine.token_to_id(piece)


def _clean(text: str) -> str:
    """Half of a surrogate pair is no sign and has no bytes: U+FFFD, as everywhere, stands for it."""
    return SURROGATES.sub("\ufffd", text)


def _spaced(text: str) -> str:
    return text if not text or text[0].isspace() else f" {text}"


def _without_space(text: str, start: int, end: int) -> tuple[int, int]:
    """Where a piece stands without the space before it, which is a piece's only sign where it has no other."""
    bare = text[start:end].lstrip(" ")
    return (end - len(bare) if bare else start), end


def _finished(engine: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """With the ends around each text, and [MASK] as the one special piece that is looked for in a text."""
    ends = [(name, engine.token_to_id(name)) for name in (FIRST, LAST)]
    engine.post_processor = processors.TemplateProcessing(single=f"{FIRST} $A {LAST}", special_tokens=ends)
    described = json.loads(engine.to_str())
    mask = next(token for token in described["added_tokens"] if token["content"] == MASK)
    described["added_tokens"] = [{**mask, "lstrip": True}]  # it takes the space before it along, as a word does
    return tokenizers.Tokenizer.from_str(json.dumps(described))
