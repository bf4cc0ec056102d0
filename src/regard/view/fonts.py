"""Fonts of a plot: those that can draw a label, and what is written where none can.

Matplotlib's own font has no Chinese, and boxes come out. So each character is looked for in a chain of fonts:
matplotlib's own, those of the system that are known to have Chinese, Japanese or Korean, the one that comes with
regard[plot], and at last any font there is. None of the user's settings is changed for it.
"""

import importlib.util
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from matplotlib.font_manager import FontProperties, fontManager, get_font
from matplotlib.ft2font import FT2Font

__all__ = ["drawable", "families_for"]

OWN = "DejaVu Sans"  # in every matplotlib
KNOWN = (
    "Noto Sans CJK SC", "Noto Sans CJK TC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Source Han Sans SC",
    "Source Han Sans CN", "PingFang SC", "PingFang TC", "Hiragino Sans GB", "Microsoft YaHei", "Microsoft JhengHei",
    "Heiti TC", "SimHei", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Hiragino Sans", "Yu Gothic", "IPAexGothic",
    "Apple SD Gothic Neo", "Malgun Gothic", "NanumGothic",
)  # fmt: skip
PACKAGE = "zhplot"  # only its font file is used: importing it would change matplotlib's settings for everybody
BOXES = "Last Resort"  # a font that has a box for every character

_families: dict[str, str | None] = {}  # character -> a family that has it; None: no font has


def families_for(texts: Iterable[str]) -> list[str]:
    """The families that together draw all of `texts`, as matplotlib takes them for `fontfamily`."""
    signs = set().union(*texts)
    _look_for(signs)
    found = {family for sign in signs if (family := _families[sign])}
    return [*_chain(), *sorted(found - set(_chain()))]


def drawable(text: str) -> str:
    """`text`, with U+ and its number for each character that no font has: a number says more than a box."""
    _look_for(set(text))
    return "".join(sign if _families[sign] else f"U+{ord(sign):04X}" for sign in text)


def _look_for(signs: set[str]) -> None:
    """Note for each of the signs which family has it."""
    missing = signs - _families.keys()
    for family in _every_family():
        if not missing:
            return
        font = _font(family)
        found = {sign for sign in missing if font is not None and font.get_char_index(ord(sign))}
        _families.update(dict.fromkeys(found, family))
        missing -= found
    _families.update(dict.fromkeys(missing))


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
    """The families that the font package brings, made known to matplotlib."""
    package = importlib.util.find_spec(PACKAGE)
    folders = (package.submodule_search_locations if package else None) or []
    files = [file for folder in folders for file in sorted(Path(folder, "fonts").glob("*.[to]tf"))]
    for file in files:
        fontManager.addfont(file)
    return list(dict.fromkeys(get_font(str(file)).family_name for file in files))


def _font(family: str) -> FT2Font | None:
    """The font that matplotlib would draw with, or None where it cannot be read."""
    try:
        return get_font(fontManager.findfont(FontProperties(family=family), fallback_to_default=False))
    except (OSError, RuntimeError, ValueError):
        return None
