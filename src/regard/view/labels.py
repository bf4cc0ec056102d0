"""A token → a label: safe to print, short, and as wide as it is measured.

Widths are rich's. Terminals do not agree with it, nor with each other, on these, so no label has them:
- an emoji followed by U+FE0F (rich: 2 cells, tmux: 1) or by a skin tone (rich: 2, tmux: 4): both are left out;
- a sign after a zero-width joiner, which rich does not count, not even the b of "a, joiner, b": joiners are left out,
  and a family of three is three heads side by side;
- half a flag, Hangul fillers, private signs and signs newer than Python's own tables: they are escaped.
What remains: vowel signs that stand beside their letter (Devanagari का) are 0 cells to rich and 1 to tmux, and a
terminal that is set to draw "ambiguous" signs (· √ ░) two cells wide draws every table with them crooked.
"""

import re
import unicodedata
from collections.abc import Iterator

from rich.cells import cell_len

__all__ = ["label", "printable"]

MARKS = 4  # on one sign; further ones are escaped, or they would climb over the lines above
_SIGNS = re.compile("[\U0001f1e6-\U0001f1ff]{2}|.", re.DOTALL)  # two regional letters are one flag
_SELECTORS = "\ufe0e\ufe0f"  # say whether the sign before is to be drawn as text or as a picture
_LOST = re.compile("[\ufe0e\ufe0f\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]")  # mean nothing without a sign before
_CATEGORIES = {
    "Cc",
    "Cf",
    "Cs",
    "Co",
    "Cn",
    "Zl",
    "Zp",
    "Zs",
}  # controls, directions, half pairs, unknown signs, blanks


def label(token: str, cells: int = 12) -> str:
    """`token` in at most `cells` cells, an ellipsis where it was longer, and nothing in it that acts on a terminal."""
    signs: list[str] = []
    width = 0
    for sign in _signs(_framed(token) or '""'):
        signs.append(sign)
        width += cell_len(sign)
        if width > cells:
            break
    else:
        return "".join(signs)
    while signs and width > cells - 1:
        width -= cell_len(signs.pop())
    return "".join(signs) + "…"


def printable(text: str) -> str:
    """All of `text`, with everything escaped that would act on a terminal, line breaks included."""
    return "".join(_signs(text))


def _framed(token: str) -> str:
    """Blanks at either end made visible: " the" and "the" are two tokens."""
    inner = token.strip(" ")
    before, _, after = token.partition(inner) if inner else (token, "", "")
    return "␣" * len(before) + inner + "␣" * len(after)


def _signs(text: str) -> Iterator[str]:
    """What is printed for `text`, sign by sign, each with the marks on it."""
    sign, marks = "", 0
    for piece in (found.group() for found in _SIGNS.finditer(text)):
        if sign and _adds_nothing(piece, sign):
            continue
        if _is_mark(piece, sign) and marks < MARKS:
            sign, marks = (sign or "◌") + piece, marks + 1
            continue
        if sign:
            yield sign
        sign, marks = _escaped(piece) if _is_unsafe(piece) else piece, 0
    if sign:
        yield sign


def _adds_nothing(piece: str, sign: str) -> bool:
    """Whether `piece` says only how `sign` is to look, or joins it to the next one."""
    if piece in ("\u200c", "\u200d") or "\U0001f3fb" <= piece <= "\U0001f3ff":
        return not sign.isascii()
    return piece in _SELECTORS


def _is_mark(piece: str, sign: str) -> bool:
    if unicodedata.category(piece[0]).startswith("M"):
        return _LOST.match(piece) is None
    # The vowel and last consonant of a Hangul syllable written in parts take no room after its first consonant.
    return cell_len(piece) == 0 and _name(piece).startswith("HANGUL J") and _name(sign).startswith("HANGUL C")


def _is_unsafe(piece: str) -> bool:
    if len(piece) > 1 or piece == " ":
        return False
    unsafe = unicodedata.category(piece) in _CATEGORIES or _LOST.match(piece) is not None
    return unsafe or cell_len(piece) == 0 or "FILLER" in _name(piece)


def _name(sign: str) -> str:
    return unicodedata.name(sign[0], "") if sign else ""


def _escaped(piece: str) -> str:
    return piece.encode("unicode_escape").decode("ascii")
