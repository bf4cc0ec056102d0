"""What a test asks of an open page: its state, its numbers, and to wait until something is so."""

import re
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from tests.browser.chromium import PATIENCE

ANSWER = """async ([what, question]) => {
  const answer = await regard.source[what](question);
  return Array.from(answer instanceof Float32Array ? answer : answer.values);
}"""


def look(page) -> dict:
    """What is looked at: view, layer, head, rows, cols, frame, …"""
    return page.evaluate("() => regard.state.get()")


def ask(page, what: str, **question) -> np.ndarray:
    """Numbers of the page's source: a row, a column, a rectangle, a tile, thumbnails."""
    return np.asarray(page.evaluate(ANSWER, [what, question]))


def status(page) -> str:
    """The line that is read out."""
    return page.locator("#status").text_content()


def until(true, *, what: str = "") -> None:
    """Wait until a function returns something true; a policy as strict as the page's lets no browser poll strings."""
    end = time.monotonic() + PATIENCE / 1000
    while not (last := true()):
        assert time.monotonic() < end, f"still not so after {PATIENCE / 1000:.0f} s: {what or true}; last {last!r}"
        time.sleep(0.02)


def settled(page) -> None:
    """Wait until the map's cells are exact and drawn, and the address has been written."""
    until(lambda: page.locator("#progress").is_hidden(), what="the map is complete")
    page.evaluate("() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")


def pointed_at(page, x: float, y: float) -> tuple[int, int, str]:
    """The cell of the map under a point of the window: its row, its column, and the figure that its tip shows."""
    page.mouse.move(x, y)
    settled(page)
    told = re.fullmatch(r".* → .*?  (.*)\nquery (\d+), key (\d+)", page.locator(".tip").inner_text(), re.S)
    assert told, f"the tip at {x}, {y} says {page.locator('.tip').inner_text()!r}"
    return int(told[2]), int(told[3]), told[1].strip()


def figure(text: str) -> tuple[float, float]:
    """A figure as the page writes it, and half of its last digit."""
    plain = text.replace("−", "-")
    digits, _, tens = plain.partition("e")
    return float(plain), 0.5 * 10.0 ** (int(tens or 0) - len(digits.partition(".")[2]))


def middle(locator, across: float = 0.5, down: float = 0.5) -> tuple[int, int]:
    """A point of an element, by its share of the width and the height; whole pixels, as a wheel tells its place."""
    box = locator.bounding_box()
    return round(box["x"] + across * box["width"]), round(box["y"] + down * box["height"])


def numbers_shown(page) -> list[tuple[int, float]]:
    """The table of numbers: places and weights."""
    return page.evaluate("""() => [...document.querySelectorAll(".numbers-table tbody tr")].map((row) =>
        [Number(row.querySelector(".place").textContent), Number(row.querySelector(".weight").title)])""")


def exported(page, kind: str):
    """What is seen, saved as a file: an SVG as its tree, anything else as bytes."""
    page.get_by_role("button", name="Export").click()
    names = {"svg": "Drawing (SVG)", "png": "Picture (PNG)"}
    with page.expect_download() as saving:
        page.get_by_role("button", name=names[kind]).click()
    content = Path(saving.value.path()).read_bytes()
    return ElementTree.fromstring(content) if kind == "svg" else content
