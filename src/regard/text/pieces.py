"""The pieces of a tokenizer → tokens that can be read, and which of them begin a word.

Tokenizers write pieces in four ways: "##ing" goes on with a word (WordPiece), "▁the" begins one (SentencePiece), "Ġthe"
begins one and every byte has a letter of its own (byte-level BPE), "the</w>" ends one. All become what stands in the
text, a blank before a word kept: " the", "ing".
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

__all__ = ["Piece", "joined", "readable", "spelt"]

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")  # how SentencePiece writes a byte
_BARE = re.compile("[\udc80-\udcff]+")  # bytes that are no characters by themselves
_NUMBERS = re.compile("(?:⟨[0-9a-f]{2}(?: [0-9a-f]{2})*⟩)+")  # how they are shown
_NO_BLANKS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "HANGUL", "TIBETAN")


@dataclass(frozen=True)
class Piece:
    """A token as it is read."""

    text: str
    begins: bool  # whether a word begins with it


def readable(pieces: Sequence[str], specials: Sequence[bool] | None = None) -> list[Piece]:
    """Each piece as it is read. specials: which of them are the tokenizer's own marks, such as [CLS]"""
    marks = [False] * len(pieces) if specials is None else [bool(mark) for mark in specials]
    kind = _kind([piece for piece, mark in zip(pieces, marks, strict=True) if not mark])
    read: list[Piece] = []
    for mark, run in groupby(zip(pieces, marks, strict=True), key=lambda pair: pair[1]):
        texts = [piece for piece, _ in run]
        read += [Piece(text, True) for text in texts] if mark else _run(texts, kind)
    return read


def joined(texts: Sequence[str]) -> str:
    """Tokens of one word as its text: bytes that are shown as numbers become the characters they make together."""
    found = _NUMBERS.sub(
        lambda hit: bytes.fromhex(hit[0].replace("⟩⟨", " ")[1:-1]).decode(errors="replace"), "".join(texts)
    )
    return found.strip(" ") or found


def spelt(piece: str) -> bytes:
    """The bytes that a piece of byte-level BPE stands for; they may be a part of a sign only."""
    return _read(piece, "bytes")[0]


def _run(pieces: Sequence[str], kind: str) -> list[Piece]:
    """Pieces that follow each other in the text, no mark between them."""
    if kind == "ends":
        before = ["</w>", *pieces]
        return [Piece(piece.removesuffix("</w>"), before[place].endswith("</w>")) for place, piece in enumerate(pieces)]
    parts = [_read(piece, kind) for piece in pieces]
    signs: list[str] = []  # for each byte of the text, the character it belongs to
    starts: list[int] = []  # for each byte, where that character begins
    for sign in b"".join(raw for raw, _ in parts).decode("utf-8", errors="surrogateescape"):
        size = len(sign.encode("utf-8", errors="surrogateescape"))
        starts += [len(signs)] * size
        signs += [sign] * size
    read: list[Piece] = []
    place = 0
    for raw, marked in parts:
        begins = marked is not False
        if marked is None and 0 < place < len(signs):
            begins = starts[place] == place and not _goes_on(signs[place - 1], signs[place])
        read.append(Piece(_shown(raw), begins or not read))
        place += len(raw)
    return read


def _kind(pieces: Sequence[str]) -> str:
    if any(piece.startswith("##") and len(piece) > 2 for piece in pieces):
        return "wordpiece"
    if any("▁" in piece for piece in pieces) or any(_BYTE.fullmatch(piece) for piece in pieces):
        return "sentencepiece"
    if any(piece.endswith("</w>") for piece in pieces):
        return "ends"
    letters = set("".join(pieces))
    if letters & {"Ġ", "Ċ"} or (letters and letters <= _bytes().keys() and not letters <= set(map(chr, range(128)))):
        return "bytes"
    return "plain"


def _read(piece: str, kind: str) -> tuple[bytes, bool | None]:
    """The bytes of a piece, and whether it is marked as the beginning of a word or as none; None: the text decides."""
    if kind == "wordpiece":
        goes_on = piece.startswith("##") and len(piece) > 2
        return _encoded(piece[2:] if goes_on else piece), not goes_on
    if kind == "sentencepiece":
        byte = _BYTE.fullmatch(piece)
        return (bytes.fromhex(byte[1]), None) if byte else (_encoded(piece.replace("▁", " ")), None)
    if kind == "bytes" and all(sign in _bytes() for sign in piece):
        return bytes(_bytes()[sign] for sign in piece), None
    return _encoded(piece), None


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")


def _goes_on(before: str, after: str) -> bool:
    """Whether a word that ends in `before` so far goes on with `after`.

    A blank belongs to the word behind it; the end of a line, or a tab, does not.
    """
    if before.isspace():
        return before == " " and not after.isspace()
    return _is_letter(before) and _is_letter(after)


def _is_letter(sign: str) -> bool:
    """Whether a sign is part of a word that may go on; scripts that write no blanks have a word in each token."""
    if not sign or unicodedata.category(sign)[0] not in "LMN":
        return False
    return not unicodedata.name(sign, "").startswith(_NO_BLANKS)


def _shown(whole: bytes) -> str:
    """Bytes that are no characters by themselves, as numbers between angle brackets."""
    text = whole.decode("utf-8", errors="surrogateescape")
    return _BARE.sub(lambda hit: f"⟨{' '.join(f'{ord(sign) - 0xDC00:02x}' for sign in hit[0])}⟩", text)


@cache
def _bytes() -> dict[str, int]:
    """The letter that byte-level BPE writes for each byte: itself where it can be seen, else one from U+0100 on."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {chr(256 + place): byte for place, byte in enumerate(hidden)}
