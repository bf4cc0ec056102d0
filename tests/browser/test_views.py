"""The views are one: what is chosen in one is chosen in all, and each shows the record's numbers."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from regard.record.measures import head_table
from regard.view.page.coding import host
from tests.browser.asking import exported, figure, look, middle, numbers_shown, pointed_at, settled, until
from tests.browser.records import built_in, family, pair, pieces, written

LINK_TOP, LINK_ROW = 24, 20  # pixels, as in linkpaint.js


def weights(record, layer=0, head=0):
    return host(record.layers[layer].heads[head].weights())


def tab(page, name):
    page.get_by_role("tab", name=name, exact=True).click()
    until(lambda: page.get_by_role("tab", name=name, exact=True).get_attribute("aria-selected") == "true", what=name)


def tokens(page, kind=""):
    """Places of tokens in the text, all or those of a class."""
    return page.evaluate(
        "(kind) => [...document.querySelectorAll(`.token${kind}`)].map((one) => Number(one.dataset.unit))", kind
    )


def require_table(page, own):
    """The table has the largest of some weights, the largest first."""
    largest = np.sort(own)[::-1]

    def is_there():
        found = [weight for _, weight in numbers_shown(page)]
        return found and np.allclose(found, largest[: len(found)], rtol=2**-10, atol=1e-7)

    until(is_there, what="the numbers are those of the selection")
    places, found = zip(*numbers_shown(page), strict=True)
    np.testing.assert_allclose(found, own[list(places)], rtol=2**-10, atol=1e-7)


def links_texts(page):
    return [element.text for element in exported(page, "svg").iter("{http://www.w3.org/2000/svg}text")]


# A selection


def test_a_cell_of_the_map_is_shown_in_the_text(page_of):
    page = page_of(built_in())
    settled(page)
    spot = middle(page.locator("canvas.map"), 0.3, 0.5)
    row, col, _ = pointed_at(page, *spot)
    page.mouse.click(*spot)
    tab(page, "Text")
    assert tokens(page, ".chosen") == [row]
    assert tokens(page, ".other") == [col]


def test_a_cell_of_the_map_is_shown_in_the_numbers(page_of):
    page = page_of(built_in())
    settled(page)
    spot = middle(page.locator("canvas.map"), 0.3, 0.5)
    row, col, _ = pointed_at(page, *spot)
    page.mouse.click(*spot)
    require_table(page, weights(built_in())[row])
    cell = page.locator(".numbers-facts dd").last.inner_text()
    assert float(cell) == pytest.approx(weights(built_in())[row, col], rel=2**-10)


def test_a_token_of_the_text_is_shown_in_the_map_and_the_numbers(page_of):
    page = page_of(built_in(), fragment="view=text")
    page.locator('.token[data-unit="4"]').click()
    assert look(page)["rows"] == [4]
    until(lambda: "fox" in page.locator(".numbers-caption").inner_text(), what="the numbers are the token's")
    require_table(page, weights(built_in())[4])
    tab(page, "Map")
    settled(page)
    chosen = [one for one in exported(page, "svg").iter("{http://www.w3.org/2000/svg}text") if one.get("font-weight")]
    assert "fox" in [one.text for one in chosen]


def test_several_tokens_are_averaged(page_of):
    page = page_of(built_in(), fragment="view=text")
    page.locator('.token[data-unit="4"]').click()
    page.locator('.token[data-unit="7"]').click(modifiers=["Shift"])
    page.locator('.token[data-unit="20"]').click(modifiers=["ControlOrMeta"])
    assert look(page)["rows"] == [4, 5, 6, 7, 20]
    require_table(page, weights(built_in())[[4, 5, 6, 7, 20]].mean(0))


def test_a_key_of_the_numbers_is_shown_everywhere(page_of):
    page = page_of(built_in(), fragment="view=text&rows=4")
    until(lambda: numbers_shown(page), what="the numbers are there")
    second = numbers_shown(page)[1][0]
    page.locator(".numbers-table tbody tr").nth(1).get_by_role("button").click()
    assert look(page)["cols"] == [second]
    until(lambda: tokens(page, ".other") == [second], what="it is marked in the text")


def test_a_token_of_the_links_is_shown_in_the_numbers(page_of):
    page = page_of(built_in(), fragment="view=links")
    box = page.locator(".links-canvas").bounding_box()
    page.mouse.click(box["x"] + 120, box["y"] + LINK_TOP + 4.5 * LINK_ROW)
    assert look(page)["rows"] == [4]
    require_table(page, weights(built_in())[4])


def test_a_token_of_the_text_is_weighed_in_the_links(page_of):
    page = page_of(built_in(), fragment="view=text")
    page.locator('.token[data-unit="4"]').click()
    tab(page, "Links")
    own = weights(built_in())[4]
    until(lambda: any(re.fullmatch(r"0\.\d+", text or "") for text in links_texts(page)), what="weights are written")
    found = [figure(text) for text in links_texts(page) if re.fullmatch(r"0\.\d+", text or "")]
    assert len(found) > 10
    for value, half in found:
        assert np.min(np.abs(own - value) - half - own * 2**-10) <= 0


def test_who_looks_at_a_token(page_of):
    page = page_of(built_in(), fragment="view=text")
    page.get_by_role("button", name="Looked at by").click()
    page.locator('.token[data-unit="4"]').click()
    assert (look(page)["cols"], look(page)["direction"]) == ([4], "to")
    require_table(page, weights(built_in())[:, 4])


def test_the_text_is_darkest_where_the_weight_is_largest(page_of):
    page = page_of(built_in(), fragment="view=text&rows=27", window={"color_scheme": "light"})
    shades = """() => [...document.querySelectorAll(".token")].map((one) =>
        (one.style.background.match(/\\d+/g) ?? [255, 255, 255]).reduce((sum, part) => sum + Number(part), 0))"""
    until(lambda: min(page.evaluate(shades)) < 200, what="the text is shaded")
    found, own = np.asarray(page.evaluate(shades)), weights(built_in())[27]
    assert np.argmin(found) == np.argmax(own)
    assert np.corrcoef(found, own)[0, 1] < -0.8


# Kinds, pairs, written tokens, words


@pytest.mark.parametrize("kind", ["Encoder", "Decoder", "Cross"])
def test_the_kinds_of_an_encoder_decoder(page_of, kind):
    record = family("t5")
    page = page_of(record)
    page.get_by_role("button", name=kind, exact=True).click()
    (first, *_) = record.item(0).of_kind(kind.lower())
    row, col, text = pointed_at(page, *middle(page.locator("canvas.map"), 0.2, 0.7))
    value, half = figure(text)
    own = float(first.heads[0].weights()[row, col])
    assert value == pytest.approx(own, abs=half + 2**-10 * own)
    described = page.evaluate("() => regard.source.description.layers[regard.state.get().layer]")
    assert (described["kind"], described["name"]) == (kind.lower(), first.name)


def test_cross_attention_has_two_texts(page_of):
    page = page_of(family("t5"))
    page.get_by_role("button", name="Cross", exact=True).click()
    tab(page, "Text")
    sizes = page.evaluate(
        "() => [...document.querySelectorAll('.passage')].map((one) => one.querySelectorAll('.token').length)"
    )
    assert sizes == [5, 9]


@pytest.mark.parametrize(
    ("name", "rows", "cols"), [("A→B", (0, 4), (4, 9)), ("B→A", (4, 9), (0, 4)), ("A→A", (0, 4), (0, 4))]
)
def test_a_pair_is_filtered(page_of, name, rows, cols):
    page = page_of(pair())
    page.get_by_role("button", name=name, exact=True).click()
    page.locator("canvas.map").focus()
    for key in ("Enter", "Home", "PageUp"):
        page.keyboard.press(key)
    assert (look(page)["rows"], look(page)["cols"]) == ([rows[0]], [cols[0]])
    for key in ("End", "PageDown", "PageDown"):
        page.keyboard.press(key)
    assert (look(page)["rows"], look(page)["cols"]) == ([rows[1] - 1], [cols[1] - 1])
    until(lambda: numbers_shown(page), what="the numbers are there")
    assert {place for place, _ in numbers_shown(page)} <= set(range(*cols))
    row, col, text = pointed_at(page, *middle(page.locator("canvas.map"), 0.2, 0.4))
    value, half = figure(text)
    own = float(pair().layers[0].heads[0].weights()[row, col])
    assert value == pytest.approx(own, abs=half + 2**-10 * own)


def test_a_text_that_is_no_pair_has_no_filter(page_of):
    assert page_of(built_in()).get_by_role("button", name="A→B").count() == 0


def test_written_tokens_are_marked(page_of):
    record = written()
    page = page_of(record, fragment="view=text")
    side = record.layers[0].queries[0]
    assert tokens(page, ".written") == list(range(side.generated, len(side)))
    assert "written by the model" in page.locator(".written-legend").inner_text()


def test_pieces_are_merged_to_words(page_of):
    record = pieces()
    page = page_of(record, fragment="view=text&rows=20")
    page.keyboard.press("w")
    edges = record.layers[0].queries[0].word_edges
    assert tokens(page) == list(range(len(edges) - 1))
    word = next(place for place, edge in enumerate(edges[1:]) if edge > 20)
    page.locator(f'.token[data-unit="{word - 2}"]').click()
    assert look(page)["rows"] == list(range(edges[word - 2], edges[word - 1]))
    require_table(page, host(record.layers[0].heads[0].grouped(edges, edges))[word - 2])


# All heads


def test_all_heads_are_there(page_of):
    page = page_of(built_in(), fragment="view=heads")
    assert page.locator(".thumb").count() == sum(len(layer.heads) for layer in built_in().layers)
    drawn = (
        """() => [...document.querySelectorAll(".thumb .picture")].filter((one) => one.style.backgroundImage).length"""
    )
    until(lambda: page.evaluate(drawn) == page.locator(".thumb").count(), what="they are drawn")


@pytest.mark.parametrize(("measure", "falling"), [("entropy", False), ("distance", True), ("sink", True)])
def test_heads_are_sorted_as_the_measures_say(page_of, measure, falling):
    page = page_of(built_in(), fragment="view=heads")
    page.get_by_role("combobox", name="Sort by").select_option(measure)
    scores = {
        (layer.index, head): float(score)
        for layer in built_in().layers
        for head, score in zip(layer.head_numbers, head_table(layer, (measure,))[measure], strict=True)
    }
    wanted = sorted(scores, key=scores.__getitem__, reverse=falling)
    until(lambda: page.locator(".heads-grid.scored").count(), what="they are sorted")
    names = page.locator(".thumb").evaluate_all("(all) => all.map((one) => one.getAttribute('aria-label'))")
    found = [tuple(map(int, re.match(r"layer (\d+) head (\d+)", name).groups())) for name in names]
    assert found == wanted
    page.get_by_role("button", name="Highest first" if falling else "Lowest first").click()
    first = page.locator(".thumb").first.get_attribute("aria-label")
    assert first.startswith("layer {} head {},".format(*wanted[-1]))


def test_a_click_opens_a_head_in_the_map(page_of):
    page = page_of(built_in(), fragment="view=heads&rows=4")
    page.get_by_role("button", name="layer 2 head 5").click()
    now = look(page)
    assert (now["view"], now["layer"], now["head"], now["rows"]) == ("map", 2, 5, [4])
    require_table(page, weights(built_in(), 2, 5)[4])


def test_links_are_drawn_for_every_head_that_is_chosen(page_of):
    page = page_of(built_in(), fragment="view=heads")
    for head in (1, 2):
        page.get_by_role("button", name=f"layer 1 head {head}").click(modifiers=["ControlOrMeta"])
    assert look(page)["more"] == [[1, 1], [1, 2]]
    tab(page, "Links")
    assert page.locator(".chip").all_inner_texts() == [
        f"layer {name}\n×" for name in ("0 head 0", "1 head 1", "1 head 2")
    ]
    until(lambda: len(colours(page)) == 3, what="three colours of lines")
    page.get_by_role("button", name="Remove this head from the links: layer 1 head 1").click()
    until(lambda: len(colours(page)) == 2, what="two colours of lines")


def colours(page):
    drawing = exported(page, "svg")
    assert isinstance(drawing, ET.Element)
    return {path.get("stroke") for path in drawing.iter("{http://www.w3.org/2000/svg}path")}
