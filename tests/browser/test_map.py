"""The map: wheel, drag, pinch, keys, search; and what it says of the cell that is looked at."""

import numpy as np
import pytest

from tests.browser.asking import figure, look, middle, pointed_at, settled, status, until
from tests.browser.records import built_in, family, long_text, pieces

SEARCH = "input[type=search]"


@pytest.fixture
def page(page_of):
    page = page_of(built_in())
    settled(page)
    return page


def at(page, across=0.3, down=0.5):
    """A point of the map."""
    return middle(page.locator("canvas.map"), across, down)


def cursor(page):
    now = look(page)
    return now["rows"], now["cols"]


def require_weight(text, record, row, col, layer=0, head=0):
    told, half = figure(text)
    own = float(record.layers[layer].heads[head].weights()[row, col])
    assert told == pytest.approx(own, abs=half + 2e-3 * own), f"row {row}, column {col}"


def test_the_file_opens_and_shows_a_picture(page):
    colours = set(page.locator("canvas.map").screenshot())
    assert len(colours) > 50
    assert page.title() == "TextEncoder"
    assert page.locator("#waiting").count() == 0


def test_the_tip_tells_the_cell_and_its_weight(page):
    for across, down in ((0.1, 0.2), (0.3, 0.5), (0.55, 0.9)):
        row, col, text = pointed_at(page, *at(page, across, down))
        require_weight(text, built_in(), row, col)


def test_the_wheel_zooms_around_the_pointer(page_of):
    page = page_of(long_text())
    page.mouse.move(*at(page))
    page.mouse.wheel(0, -400)  # the map is square; from here on it is wider than the window
    before = pointed_at(page, *at(page))[:2]
    near = look(page)["frame"]["zoom"]
    for _ in range(10):
        page.mouse.wheel(0, -120)
    assert pointed_at(page, *at(page))[:2] == before
    assert look(page)["frame"]["zoom"] > 15 * near
    page.mouse.wheel(0, 1200)
    assert pointed_at(page, *at(page))[:2] == before
    page.mouse.wheel(0, 900)
    until(lambda: look(page)["frame"] is None, what="everything is seen again")


def test_a_drag_takes_the_cells_along(page):
    page.mouse.move(*at(page))
    page.mouse.wheel(0, -500)
    settled(page)
    before = pointed_at(page, *at(page))
    x, y = at(page)
    page.mouse.down()
    page.mouse.move(x - 60, y - 40, steps=4)
    page.mouse.up()
    assert pointed_at(page, x - 60, y - 40) == before
    assert cursor(page) == ([], [])


def test_a_double_click_zooms_in(page):
    before = pointed_at(page, *at(page))
    page.mouse.dblclick(*at(page))
    until(lambda: look(page)["frame"], what="it has zoomed")
    assert pointed_at(page, *at(page)) == before


def test_a_click_selects_the_cell(page):
    row, col, text = pointed_at(page, *at(page))
    page.mouse.click(*at(page))
    assert cursor(page) == ([row], [col])
    assert f"query {row}, key {col}" in status(page)
    assert text in status(page)


def test_a_click_with_control_selects_more(page):
    places = [pointed_at(page, *at(page, 0.3, down))[:2] for down in (0.3, 0.5)]
    page.mouse.click(*at(page, 0.3, 0.3))
    page.keyboard.down("Control")
    page.mouse.click(*at(page, 0.3, 0.5))
    page.keyboard.up("Control")
    assert cursor(page) == ([places[0][0], places[1][0]], [places[0][1]])


def test_two_fingers_zoom(page_of):
    page = page_of(built_in(), window={"has_touch": True})
    settled(page)
    x, y = at(page)
    hand = page.context.new_cdp_session(page)

    def touch(kind, *apart):
        fingers = [{"x": x + side * pixels, "y": y, "id": id} for pixels in apart for id, side in enumerate((-1, 1))]
        hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})

    touch("touchStart", 40)
    for apart in (60, 80, 100, 120):
        touch("touchMove", apart)
    touch("touchEnd")
    until(lambda: look(page)["frame"], what="it has zoomed")
    whole = page.locator("canvas.map").bounding_box()["height"] / 31
    assert look(page)["frame"]["zoom"] > 2 * whole
    assert cursor(page) == ([], [])


def test_keys_move_a_cursor_that_is_read_out(page):
    page.locator("canvas.map").focus()
    page.keyboard.press("Enter")
    (row,), (col,) = cursor(page)
    for key, expected in (
        ("ArrowDown", (row + 1, col)), ("ArrowRight", (row + 1, col + 1)), ("ArrowUp", (row, col + 1)),
        ("ArrowLeft", (row, col)), ("Home", (row, 0)), ("End", (row, 30)), ("PageUp", (0, 30)), ("PageDown", (30, 30)),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert cursor(page) == ([expected[0]], [expected[1]]), key
        assert f"query {expected[0]}, key {expected[1]}" in status(page)
    page.keyboard.press("Escape")
    assert cursor(page) == ([], [])


def test_the_weight_that_is_read_out_is_the_records(page):
    page.locator("canvas.map").focus()
    for key in ("Enter", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
        (row,), (col,) = cursor(page)
        require_weight(status(page).split("  ")[1].split()[0], built_in(), row, col)


def test_keys_zoom(page):
    page.locator("canvas.map").focus()
    page.keyboard.press("+")
    near = look(page)["frame"]["zoom"]
    page.keyboard.press("+")
    assert look(page)["frame"]["zoom"] == pytest.approx(1.5 * near, rel=1e-3)
    page.keyboard.press("-")
    assert look(page)["frame"]["zoom"] == pytest.approx(near, rel=1e-3)
    page.keyboard.press("0")
    assert look(page)["frame"] is None


def test_a_minimap_appears_when_a_part_is_seen(page_of):
    page = page_of(long_text())
    assert page.locator("canvas.minimap").is_hidden()
    page.mouse.move(*at(page))
    page.mouse.wheel(0, -900)
    page.locator("canvas.minimap").wait_for(state="visible")
    before = look(page)["frame"]
    page.mouse.click(*middle(page.locator("canvas.minimap"), 0.2, 0.9))
    after = look(page)["frame"]
    assert after["zoom"] == before["zoom"]
    assert after["y"] > before["y"]


def test_a_long_map_is_means_from_afar_and_exact_from_near(page_of):
    record = long_text()
    page = page_of(record)
    page.mouse.move(*at(page, 0.2, 0.7))
    settled(page)
    assert "mean" in page.locator(".tip").inner_text()
    for _ in range(8):
        page.mouse.wheel(0, -400)
    row, col, text = pointed_at(page, *at(page, 0.2, 0.7))
    told, half = figure(text)
    own = float(record.layers[0].heads[0].weights(slice(row, row + 1), slice(col, col + 1))[0, 0])
    assert told == pytest.approx(own, abs=half + 1e-3 * own)


def test_a_long_map_opens_in_a_logarithmic_scale(page_of):
    assert look(page_of(long_text()))["scale"] == "log"


def test_a_place_is_searched_for(page):
    page.locator(SEARCH).fill("#12")
    until(lambda: look(page)["rows"] == [12], what="token 12 is selected")
    assert "#12" in status(page)
    page.locator(SEARCH).fill("#31")
    until(lambda: "Nothing found" in page.locator(".find output").inner_text(), what="there is no token 31")


def test_a_text_is_found_across_tokens(page):
    page.locator(SEARCH).fill("jumped unbelievably")
    until(lambda: look(page)["rows"] == list(range(6, 15)), what="all pieces are selected")


def test_what_is_found_comes_into_sight(page_of):
    page = page_of(long_text())
    page.locator(SEARCH).fill("#2900")
    until(lambda: look(page)["frame"], what="it has zoomed")
    frame, height = look(page)["frame"], page.locator("canvas.map").bounding_box()["height"]
    assert frame["y"] < 2900 < frame["y"] + height / frame["zoom"]


def test_one_goes_from_match_to_match(page):
    page.locator(SEARCH).fill("the")
    until(lambda: look(page)["rows"] == [1], what="the first is selected")
    page.get_by_role("button", name="Next match").click()
    assert look(page)["rows"] == [16]
    assert page.locator(".find output").inner_text() == "2 of 2"
    page.get_by_role("button", name="Next match").click()
    assert look(page)["rows"] == [1]
    page.get_by_role("button", name="Previous match").click()
    assert look(page)["rows"] == [16]
    page.locator(SEARCH).press("Shift+Enter")
    assert look(page)["rows"] == [1]


def test_layers_and_heads_are_stepped_through(page):
    page.keyboard.press("]")
    page.keyboard.press(".")
    page.keyboard.press(".")
    assert (look(page)["layer"], look(page)["head"]) == (1, 2)
    row, col, text = pointed_at(page, *at(page))
    require_weight(text, built_in(), row, col, 1, 2)
    page.keyboard.press("[")
    page.keyboard.press("[")
    page.keyboard.press(",")
    assert (look(page)["layer"], look(page)["head"]) == (0, 1)


def test_texts_of_a_batch_are_chosen(page_of):
    record = family("bert")
    page = page_of(record)
    page.get_by_role("combobox", name="Text").select_option(index=1)
    row, col, text = pointed_at(page, *at(page))
    told, half = figure(text)
    own = float(record.item(1).layers[0].heads[0].weights()[row, col])
    assert told == pytest.approx(own, abs=half + 2e-3 * own)


def test_cells_of_words_hold_what_words_give_to_words(page_of):
    record = pieces()
    page = page_of(record, fragment="unit=word")
    layer = record.layers[0]
    edges = layer.queries[0].word_edges
    row, col, text = pointed_at(page, *at(page, 0.2, 0.6))
    told, half = figure(text)
    own = float(np.asarray(layer.heads[0].grouped(edges, edges))[row, col])
    assert told == pytest.approx(own, abs=half + 2e-3 * own)
    page.mouse.click(*at(page, 0.2, 0.6))
    assert cursor(page) == (list(range(edges[row], edges[row + 1])), list(range(edges[col], edges[col + 1])))
