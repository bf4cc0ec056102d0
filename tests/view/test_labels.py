import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from regard.view.labels import label, printable

from .tokens import ALL, cells

ACTING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("学习", "学习"),
        ("👨‍👩‍👧", "👨👩👧"),
        ("🇨🇳", "🇨🇳"),
        ("👍🏽", "👍"),
        ("❤️", "❤"),
        ("1️⃣", "1⃣"),
        ("e\u0301", "e\u0301"),
        ("\u0301", "◌\u0301"),
        ("\u1112\u1161\u11ab", "\u1112\u1161\u11ab"),
        ("ශ්\u200dරී", "ශ්රී"),
        ("a\u200db", r"a\u200db"),
        ("🇨", r"\U0001f1e8"),
        ("a\nb\t", r"a\nb\t"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\0", r"\x00"),
        ("\u202eabc", r"\u202eabc"),
        ("[red]x", "[red]x"),
        (" the ", "␣the␣"),
        ("  ", "␣␣"),
        ("", '""'),
        ("a b", "a b"),
        ("a\xa0b", r"a\xa0b"),
        ("x" * 12, "x" * 12),
        ("x" * 500, "x" * 11 + "…"),
        ("学习" * 3, "学习" * 3),
        ("学习" * 4, "学习学习学…"),
        ("a学习学习学习", "a学习学习学…"),
        ("🇨🇳" * 9, "🇨🇳" * 5 + "…"),
    ],
)
def test_labels(token, shown):
    assert label(token) == shown


def test_marks_do_not_climb():
    shown = label("Z" + "\u0335" * 60, 100)
    assert "\u0335" * 5 not in shown
    assert shown.startswith("Z" + "\u0335" * 4 + r"\u0335")


@pytest.mark.parametrize("token", ALL)
@pytest.mark.parametrize("room", [1, 2, 5, 12, 40])
def test_room_is_kept(token, room):
    assert 0 < cells(label(token, room)) <= room


@given(st.text(st.characters(), max_size=30), st.integers(2, 30))
def test_any_token_is_harmless(token, room):
    shown = label(token, room)
    assert 0 < cell_len(shown) <= room
    assert not {unicodedata.category(sign) for sign in shown} & ACTING
    shown.encode()
    # The width of the whole is the width of its parts, whatever rich may join: nothing rich and a terminal differ on.
    assert cell_len(shown) == sum(cell_len(sign) for sign in shown)
    assert cell_len(shown) == cell_len(Text(shown).plain)


@given(st.text(st.characters(), max_size=50))
def test_any_text_is_printable(text):
    shown = printable(text)
    assert not {unicodedata.category(sign) for sign in shown} & ACTING
    assert "\n" not in shown


def test_readable_text_stays():
    assert printable("cat 猫: no vector (nearest: 狗).") == "cat 猫: no vector (nearest: 狗)."
