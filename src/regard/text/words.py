"""A sentence → its words: at white space, or character by character where a script writes none."""

import re

# Scripts written without spaces: Han with its radicals and marks, kana, and the full-width punctuation between them.
# Full-width letters and digits are left out: they form words, as Latin ones do.
_UNSPACED = (
    "\u2e80-\u2fdf\u3000-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff9f\U00020000-\U0003ffff"
)
_MARKS = (
    "\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef"  # voicing marks and variation selectors, part of the sign before
)
_PIECES = re.compile(f"[{_UNSPACED}][{_MARKS}]*|[^{_UNSPACED}]+")


def split(text: str) -> list[str]:
    """The words of `text`.

    White space separates words. A text that has none is taken apart where Chinese and Japanese are written: each of
    their characters is a word, and what stands between them (Latin words, numbers, emoji) stays whole.
    """
    words = text.split()
    return words if len(words) != 1 else _PIECES.findall(words[0])
