"""Tokens that spoil a table when they are printed as they are, and a measure of width that is not rich's."""

import unicodedata

from rich.cells import cell_len

WIDE = ["我", "喜欢", "学习", "ＡＩ", "한국어", "か\u3099", "ｱ", "𠮷"]
EMOJI = ["👍", "👨‍👩‍👧", "🇨🇳", "🇨", "👍🏽", "❤️", "1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"]
MARKS = ["e\u0301", "\u0301", "Z" + "\u0335" * 60, "\u1112\u1161\u11ab", "\u1161", "\u3164", "ไม่", "葛\U000e0100"]
HOSTILE = [
    "a\nb", "\t", "\r\n", "\x1b[31mred\x1b[0m", "\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\0", "\x7f", "\u202eabc",
    "\u2066x", "\u200b", "\u2028",
    "\ufeff", "a\u200db", "می\u200cخواهم", "[red]x[/red]", "[/]", ":smile:", "\\", "", " ", " the ",
    "a\xa0b", "x" * 500, "很" * 500, "🇨🇳" * 100, "\ud800", "\ue000", "\U0010ffff",
]  # fmt: skip
ALL = WIDE + EMOJI + MARKS + HOSTILE


def cells(text):
    """The cells that a terminal without any knowledge of emoji sequences gives to `text`: sign by sign, from Python's
    own tables. It must agree with rich, or some terminal somewhere draws the line crooked."""
    width = 0
    for sign in text:
        mark = unicodedata.category(sign).startswith("M") or "\u1160" <= sign <= "\u11ff"  # vowels of Hangul in parts
        width += 0 if mark else 2 if unicodedata.east_asian_width(sign) in "WF" else 1
    assert width == cell_len(text), ascii(text)
    return width
