"""The address says what is looked at, and brings it back."""

import pytest

from tests.browser.asking import look, settled, until
from tests.browser.records import built_in, family, long_text, pair

CHANGES = {
    "view": {"view": "text"},
    "layer and head": {"layer": 3, "head": 5},
    "rows": {"rows": [3, 4, 5, 9]},
    "columns": {"cols": [0, 30], "direction": "to"},
    "words": {"unit": "word"},
    "colours": {"scale": "log", "byRow": True},
    "window": {"frame": {"x": 3.25, "y": 7.5, "zoom": 60}},
    "heads of the links": {"view": "links", "more": [[0, 1], [2, 7]]},
    "order of heads": {"view": "heads", "sort": "entropy"},
    "theme and language": {"theme": "dark", "language": "zh"},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_view_comes_back(page_of, name):
    page = page_of(built_in())
    page.evaluate("(change) => regard.state.set(change)", CHANGES[name])
    before = look(page)
    until(lambda: "#" in page.evaluate("() => location.href"), what="the address has changed")
    page.reload()
    until(lambda: page.evaluate("() => Boolean(globalThis.regard)"), what="it is open")
    assert look(page) == before
    for part, value in CHANGES[name].items():
        assert look(page)[part] == value


def test_the_window_of_a_long_map_comes_back(page_of):
    page = page_of(long_text(), fragment="at=1234.5678,1000.25,0.34567891")
    assert look(page)["frame"] == {"x": 1234.5678, "y": 1000.25, "zoom": 0.34567891}
    page.locator("canvas.map").focus()
    page.keyboard.press("+")
    before = look(page)["frame"]
    until(lambda: "0.518" in page.evaluate("() => location.href"), what="the address has changed")
    page.reload()
    until(lambda: page.evaluate("() => Boolean(globalThis.regard)"), what="it is open")
    assert look(page)["frame"] == pytest.approx(before, rel=1e-6)


def test_the_second_text_comes_back(page_of):
    record = family("bert")
    page = page_of(record, fragment=f"layer={len(record.layers)}")
    assert look(page)["text"] == 1
    assert page.get_by_role("combobox", name="Text").input_value() == "1"


def test_a_pair_filter_comes_back(page_of):
    page = page_of(pair(), fragment="pair=ab")
    settled(page)
    assert page.get_by_role("button", name="A→B").get_attribute("aria-pressed") == "true"


def test_an_address_that_changes_is_followed(page_of):
    page = page_of(built_in())
    page.evaluate("() => { location.hash = '#view=text&rows=7&layer=1' }")
    until(lambda: look(page)["view"] == "text", what="it is followed")
    assert (look(page)["layer"], look(page)["rows"]) == (1, [7])
    until(lambda: page.locator('.token.chosen[data-unit="7"]').count() == 1, what="it is shown")
