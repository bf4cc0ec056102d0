"""The README's pictures are what the commands print now, and need nothing from the network."""

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def pictures():
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_are_what_is_printed_now(pictures):
    runs = r'<text class="\S+" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)<'
    for name, made in pictures.pictures().items():
        stored = (DOCS / "images" / name).read_text(encoding="utf-8")
        # The last digit of a weight depends on the processor that a model runs on; where it stands does not.
        told, found = (re.sub(r"\d", "0", page) if name == "see.svg" else page for page in (stored, made))
        assert re.findall(runs, told) == re.findall(runs, found)
        assert "@font-face" not in stored
        assert set(re.findall(r"url\((.)", stored)) == {"#"}
        assert f">regard&#160;{'see' if name == 'see.svg' else 'explain'}&#160;" in stored


def test_columns_of_the_picture_are_straight(pictures):
    picture = pictures.pictures()["explain.svg"]
    found = re.findall(r'x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)"[^>]*>([^<]*)<', picture)
    ends = {}
    for x, y, length, text in found:
        if re.fullmatch(r"-?\d\.\d\d", text):
            ends.setdefault(y, []).append(round(float(x) + float(length)))
    tables = [columns for columns in ends.values() if len(columns) == 12]  # Q, K and V side by side
    assert len(tables) == 5
    assert all(columns == tables[0] for columns in tables)
