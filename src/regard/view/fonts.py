"""Fonts of a plot: those that can draw a label, and what is written where none can.

Matplotlib (3.11 on) shapes text itself: Arabic letters join and run to the left, Indic vowels stand where they belong,
a family of emoji is one picture. What it does not have are the glyphs: its own font has no Chinese, and boxes come
out. So each sign is looked for in a chain of fonts: matplotlib's own, those of the system that are known to have
Chinese, Japanese or Korean, those that come with regard[plot], and at last any font there is. None of the user's
settings is changed for it.
"""

import importlib.util
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path

from matplotlib.font_manager import FontProperties, fontManager, get_font
from matplotlib.ft2font import FT2Font, LoadFlags

__all__ = ["drawable", "families_for", "width"]

OWN = "DejaVu Sans"  # in every matplotlib
KNOWN = (
    "Noto Sans CJK SC", "Noto Sans CJK TC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Source Han Sans SC",
    "Source Han Sans CN", "PingFang SC", "PingFang TC", "Hiragino Sans GB", "Microsoft YaHei", "Microsoft JhengHei",
    "Heiti TC", "SimHei", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Hiragino Sans", "Yu Gothic", "IPAexGothic",
    "Apple SD Gothic Neo", "Malgun Gothic", "NanumGothic",
)  # fmt: skip
# Only their font files are used: importing the first would change matplotlib's settings for everybody.
PACKAGES = {
    "zhplot": "fonts/*.ttf",  # Chinese and Japanese
    "pylopdf_fonts_ko": "NotoSans*.otf",  # Korean
    "manimgx_fonts": "Noto*.ttf",  # emoji, Arabic, Hebrew, Devanagari, Thai and fifteen scripts more
}
BOXES = "Last Resort"  # a font that has a box for every character
JOINER = "\u200d"
UNSEEN = f"{JOINER}\u200c\u034f\ufe0e\ufe0f"  # they say how their neighbours look; no font needs a glyph for them

_families: dict[str, str | None] = {}  # sign -> a family that has it; None: no font has


def families_for(texts: Iterable[str]) -> tuple[str, ...]:
    """The families that together draw all of `texts`, in the order in which matplotlib is to try them."""
    signs = {sign for text in texts for sign in _signs(text)}
    _look_for(signs)
    found = {family for sign in signs if (family := _families[sign])} - {OWN}
    in_chain = [family for family in _chain() if family in found]
    return OWN, *in_chain, *sorted(found - set(in_chain))


def drawable(text: str) -> str:
    """`text`, with U+ and its number for each character that no font has: a number says more than a box."""
    signs = list(_signs(text))
    _look_for(set(signs))
    return "".join(sign if _families[sign] else _spelled(sign) for sign in signs)


@lru_cache(maxsize=4096)
def width(text: str, families: tuple[str, ...], points: float) -> float:
    """How wide `text` is in letters of that size, in points."""
    font = get_font([fontManager.findfont(_regular(family)) for family in families])
    font.set_size(points, 72)
    font.set_text(text, flags=LoadFlags.NO_HINTING)
    return float(font.get_width_height()[0]) / 64


def _signs(text: str) -> Iterator[str]:
    """`text` in parts that must come from one font: a letter with the marks on it, emoji that are joined to one."""
    sign = ""
    for piece in text:
        kind = unicodedata.category(piece)
        if sign and (piece in UNSEEN or kind[0] == "M" or (sign[-1] == JOINER and kind == "So")):
            sign += piece
            continue
        if sign:
            yield sign
        sign = piece
    if sign:
        yield sign


def _spelled(sign: str) -> str:
    """A sign that no font has as a whole: its letter, where there is one for it, and the numbers of its marks."""
    first, *others = (piece for piece in sign if piece not in UNSEEN or sign == piece)
    numbers = "".join(f"U+{ord(piece):04X}" for piece in others)
    return (drawable(first) if others else f"U+{ord(first):04X}") + numbers


def _look_for(signs: set[str]) -> None:
    """Note for each of the signs which family has it."""
    missing = signs - _families.keys()
    for family in _every_family():
        if not missing:
            return
        font = _font(family)
        found = {sign for sign in missing if font is not None and _has(font, sign)}
        _families.update(dict.fromkeys(found, family))
        missing -= found
    _families.update(dict.fromkeys(missing))


def _has(font: FT2Font, sign: str) -> bool:
    """Whether a font has all of a sign, as it is written or with its marks in one character with the letter."""
    spellings = {sign, unicodedata.normalize("NFC", sign)}
    return any(all(_draws(font, piece) for piece in spelling) for spelling in spellings)


def _draws(font: FT2Font, piece: str) -> bool:
    """Whether there is ink: fonts of coloured emoji have pictures, and empty outlines, which matplotlib would draw."""
    if piece in UNSEEN:
        return True
    glyph = font.get_char_index(ord(piece))
    if not glyph or piece == " ":
        return bool(glyph)
    try:
        font.load_glyph(glyph, LoadFlags.NO_SCALE)
    except RuntimeError:
        return False
    return len(font.get_path()[0]) > 0


def _every_family() -> Iterator[str]:
    yield from _chain()
    yield from sorted(_regular_families() - set(_chain()))


@cache
def _chain() -> tuple[str, ...]:
    """The families that are tried first, of those that are here."""
    here = _regular_families()
    return OWN, *(family for family in KNOWN if family in here), *_packaged()


def _regular_families() -> set[str]:
    """The families that come in a regular weight. About others matplotlib complains each time they are used."""
    regular = (400, "normal", "regular", "book")
    fonts = (font for font in fontManager.ttflist if font.style == "normal" and font.weight in regular)
    return {font.name for font in fonts if BOXES not in font.name}


def _packaged() -> list[str]:
    """The families that the font packages bring, made known to matplotlib."""
    files = [file for package, pattern in PACKAGES.items() for file in _files(package, pattern)]
    for file in files:
        fontManager.addfont(file)
    return list(dict.fromkeys(get_font(str(file)).family_name for file in files))


def _files(package: str, pattern: str) -> list[Path]:
    """The upright fonts of a package that is installed."""
    found = importlib.util.find_spec(package)
    folders = (found.submodule_search_locations if found else None) or []
    files = [file for folder in folders for file in sorted(Path(folder).glob(pattern))]
    return [file for file in files if "Italic" not in file.name]


@cache
def _font(family: str) -> FT2Font | None:
    """The font that matplotlib would draw with, or None where it cannot be read."""
    try:
        return get_font(fontManager.findfont(_regular(family), fallback_to_default=False))
    except (OSError, RuntimeError, ValueError):
        return None


def _regular(family: str) -> FontProperties:
    """A family as plots use it, whatever weight and style the user has set for other texts."""
    return FontProperties(family=family, style="normal", variant="normal", weight="normal", stretch="normal")
