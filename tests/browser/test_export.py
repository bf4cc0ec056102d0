"""What leaves the page: pictures, drawings, CSV, links."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.view.page.coding import host
from tests.browser.asking import ask, exported, look, settled, status, until
from tests.browser.records import built_in, named, pieces

VIEWS = ("map", "links", "heads", "text")
SVG = "{http://www.w3.org/2000/svg}"


def csv_of(page):
    """The table that is downloaded: its header, and its rows."""
    with page.expect_download() as saving:
        page.get_by_role("button", name="Download CSV").click()
    content = Path(saving.value.path()).read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")  # spreadsheets take it for UTF-8
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    return header, rows


@pytest.mark.parametrize("view", VIEWS)
def test_a_picture_shows_the_view(page_of, view):
    page = page_of(built_in(), fragment=f"view={view}&rows=4")
    settled(page)
    picture = Image.open(io.BytesIO(exported(page, "png")))
    seen = page.locator(f"#view-{view}").bounding_box()
    assert picture.format == "PNG"
    assert 1.6 * seen["width"] < picture.width <= 2 * seen["width"] + 2
    assert picture.height > seen["height"]
    assert len(np.unique(np.asarray(picture.convert("RGB"))[::5, ::5].reshape(-1, 3), axis=0)) > 20


def test_a_picture_is_dark_in_the_dark(page_of):
    page = page_of(built_in(), window={"color_scheme": "dark"})
    picture = Image.open(io.BytesIO(exported(page, "png"))).convert("L")
    assert np.asarray(picture).mean() < 80


def test_a_picture_is_named_for_what_it_shows(page_of):
    page = page_of(built_in(), fragment="layer=2&head=3")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as saving:
        page.get_by_role("button", name="Picture (PNG)").click()
    name = saving.value.suggested_filename
    assert set(re.findall(r"\w+", name)) == {"TextEncoder", "map", "encoder", "2", "3", "png"}
    until(lambda: name in status(page), what="it is said")


@pytest.mark.parametrize("view", VIEWS)
def test_a_drawing_is_an_svg_of_the_views_size(page_of, view):
    page = page_of(built_in(), fragment=f"view={view}&rows=4")
    settled(page)
    drawing = exported(page, "svg")
    seen = page.locator(f"#view-{view}").bounding_box()
    assert drawing.tag == f"{SVG}svg"
    assert abs(float(drawing.get("width")) - seen["width"]) < 40
    assert not [element for element in drawing.iter() if element.tag.endswith("script")]


@pytest.mark.parametrize("view", ["map", "links", "text"])
def test_a_drawing_has_the_tokens(page_of, view):
    page = page_of(named(["one", "<two>", "a&b", '"three"', "four"]), fragment=f"view={view}&rows=0")
    settled(page)
    until(lambda: page.evaluate("() => document.readyState") == "complete", what="all is read")
    texts = " ".join(element.text or "" for element in exported(page, "svg").iter(f"{SVG}text"))
    for token in ("one", "<two>", "a&b", '"three"', "four"):
        assert token in texts


def test_a_drawing_holds_the_numbers_of_large_cells(page_of):
    record = named(["one", "two", "three"])
    page = page_of(record)
    settled(page)
    texts = {element.text for element in exported(page, "svg").iter(f"{SVG}text")}
    for weight in host(record.layers[0].heads[0].weights()).reshape(-1):
        assert {
            f"{weight + step:.3f}" if weight >= 0.0995 else f"{weight + step:.4f}" for step in (-1e-4, 0, 1e-4)
        } & texts


def test_csv_has_every_weight_of_a_row(page_of):
    page = page_of(built_in(), fragment="rows=4")
    header, rows = csv_of(page)
    assert header == ["place", "token", "weight"]
    assert [int(place) for place, _, _ in rows] == list(range(31))
    assert [text for _, text, _ in rows] == list(built_in().layers[0].keys[0].texts)
    found = np.asarray([float(weight) for _, _, weight in rows])
    there = ask(page, "row", layer=0, head=0, rows=[4])
    np.testing.assert_allclose(found, there, rtol=1e-6)
    np.testing.assert_allclose(found, host(built_in().layers[0].heads[0].weights())[4], rtol=2**-11, atol=2**-25)


def test_csv_has_every_weight_of_a_column(page_of):
    page = page_of(built_in(), fragment="cols=4&direction=to&head=2")
    found = np.asarray([float(weight) for _, _, weight in csv_of(page)[1]])
    np.testing.assert_allclose(found, host(built_in().layers[0].heads[2].weights())[:, 4], rtol=2**-11, atol=2**-25)


def test_csv_of_words(page_of):
    record = pieces()
    edges = record.layers[0].queries[0].word_edges
    page = page_of(record, fragment=f"unit=word&rows={edges[5]}-{edges[6] - 1}")
    header, rows = csv_of(page)
    assert header == ["place", "word", "weight"]
    own = host(record.layers[0].heads[0].grouped(edges, edges))[5]
    np.testing.assert_allclose([float(weight) for _, _, weight in rows], own, rtol=1e-3, atol=1e-7)


def test_csv_of_tokens_that_are_signs(page_of):
    texts = ['a"b', "c,d", "e\nf", "=1+1", "@x", "-3", "\r"]
    page = page_of(named(texts), fragment="rows=0")
    found = [text for _, text, _ in csv_of(page)[1]]
    assert found[:3] == texts[:3]
    assert found[3:] == ["'=1+1", "'@x", "'-3", "'\r"]  # no spreadsheet takes them for formulas


def test_csv_is_copied(page_of):
    page = page_of(built_in(), fragment="rows=4", window={"permissions": ["clipboard-read", "clipboard-write"]})
    page.get_by_role("button", name="Copy CSV").click()
    until(lambda: "Copied" in status(page), what="it is said")
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.splitlines()[0] == "place,token,weight"
    assert len(copied.splitlines()) == 32


def test_a_copied_link_opens_the_same_view(page_of, opened):
    page = page_of(built_in(), window={"permissions": ["clipboard-read", "clipboard-write"]})
    page.keyboard.press("]")
    page.keyboard.press(".")
    page.locator("canvas.map").focus()
    for key in ("+", "+", "Enter", "ArrowRight"):
        page.keyboard.press(key)
    before = look(page)
    page.get_by_role("button", name="Export").click()
    page.get_by_role("button", name="Copy a link to this view").click()
    until(lambda: status(page) == "Link copied", what="it is said")
    other = opened(page.evaluate("() => navigator.clipboard.readText()"))
    until(lambda: other.evaluate("() => Boolean(globalThis.regard)"), what="it is open")
    after = look(other)
    assert after.pop("frame") == pytest.approx(before.pop("frame"), abs=1e-3)
    assert after == before
