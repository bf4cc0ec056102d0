"""The page can be used without a mouse, and without eyes."""

import pytest

from tests.browser.asking import look, settled, status, until
from tests.browser.conftest import windows
from tests.browser.records import built_in, family, pair

VIEWS = ("map", "links", "heads", "text")
CONTROLS = {
    "button", "combobox", "searchbox", "textbox", "tab", "tablist", "tabpanel", "application", "listbox", "option",
    "dialog", "menu", "group", "complementary",
}  # fmt: skip


def nameless(page):
    """What a screen reader is told of without a name."""
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    told = [
        (node["role"]["value"], node.get("name", {}).get("value", "").strip()) for node in tree if not node["ignored"]
    ]
    assert len(told) > 50
    return [role for role, name in told if role in CONTROLS and not name]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("make", [lambda: family("t5"), pair], ids=["t5", "pair"])
def test_everything_has_a_name(page_of, make, view):
    page = page_of(make(), fragment=f"view={view}&rows=3")
    settled(page)
    assert nameless(page) == []


def test_menus_and_dialogs_have_names(page_of):
    page = page_of(built_in())
    for name in ("Settings", "Export", "How exact the numbers are", "Help"):
        page.get_by_role("button", name=name).click()
        assert nameless(page) == [], name
        page.keyboard.press("Escape")


def test_a_missing_name_would_be_noticed(page_of):
    page = page_of(built_in())
    page.evaluate(
        "() => ['title', 'aria-label'].forEach((name) => document.querySelector('canvas.map').removeAttribute(name))"
    )
    assert nameless(page) == ["application"]


STEP = """() => {
  const one = document.activeElement;
  if (!one || one === document.body || "walked" in one.dataset) return null;
  one.dataset.walked = "";
  const active = document.getElementById(one.getAttribute("aria-activedescendant"));
  const outlined = [one, one.parentElement, active].some((part) => {
    const { outlineStyle, outlineWidth } = part ? getComputedStyle(part) : { outlineStyle: "none", outlineWidth: "0" };
    return outlineStyle !== "none" && parseFloat(outlineWidth) > 0;
  });
  return { outlined, html: one.outerHTML.slice(0, 120) };
}"""


@pytest.fixture(scope="module", params=VIEWS)
def walk(request, browser, file_of):
    """Once round by the tabulator key: the page, in which every element on the way is marked, and what was met."""
    with windows(browser) as opened:
        page = opened(f"{file_of(built_in()).as_uri()}#view={request.param}&rows=3")
        until(lambda: page.locator(".numbers-table button").count() > 3, what="the numbers are there")
        met = []
        for _ in range(120):
            page.keyboard.press("Tab")
            step = page.evaluate(STEP)
            if step is None:
                break
            met.append(step)
        yield request.param, page, met


@pytest.mark.parametrize(
    "part",
    ["#tabs button", "#toolbar select", "#toolbar input", "#toolbar .tools button", "#numbers td button", "#panel"],
)
def test_the_tabulator_key_reaches(walk, part):
    _, page, _ = walk
    assert page.locator(f"{part}[data-walked]").count()


def test_the_tabulator_key_reaches_the_view(walk):
    view, page, _ = walk
    surfaces = {"map": "canvas.map", "links": ".links-canvas", "heads": ".thumb", "text": ".passage"}
    assert page.locator(f"{surfaces[view]}[data-walked]").count() == 1


def test_the_focus_is_seen(walk):
    _, _, met = walk
    assert len(met) > 15
    assert [step["html"] for step in met if not step["outlined"]] == []


def test_arrows_go_from_tab_to_tab(page_of):
    page = page_of(built_in())
    page.locator("#tab-map").focus()
    for key, view in (
        ("ArrowRight", "links"), ("ArrowRight", "heads"), ("End", "text"), ("ArrowRight", "map"), ("ArrowLeft", "text"),
        ("Home", "map"),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert look(page)["view"] == view
        assert page.evaluate("() => document.activeElement.id") == f"tab-{view}"


def test_figures_go_from_view_to_view(page_of):
    page = page_of(built_in())
    for place, view in enumerate(VIEWS):
        page.keyboard.press(str(place + 1))
        assert look(page)["view"] == view
        assert page.locator(f"#view-{view}").is_visible()


def test_keys_do_nothing_while_one_types(page_of):
    page = page_of(built_in())
    page.keyboard.press("/")
    page.keyboard.type("1234wln[],.e?")
    now = look(page)
    assert (now["view"], now["unit"], now["scale"], now["byRow"], now["layer"]) == ("map", "token", "linear", False, 0)
    assert page.locator("input[type=search]").input_value() == "1234wln[],.e?"


def test_the_text_is_walked_and_chosen_by_keys(page_of):
    page = page_of(built_in(), fragment="view=text&rows=0")
    page.locator(".passage").first.focus()
    for key in ("Home", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert look(page)["rows"] == [2]
    active = page.evaluate(
        "(at) => document.getElementById(document.querySelector(at).getAttribute('aria-activedescendant')).ariaLabel",
        ".passage",
    )
    assert active.startswith("quick, place 2")
    page.keyboard.press("Escape")
    assert look(page)["rows"] == []


def test_the_links_are_walked_and_chosen_by_keys(page_of):
    page = page_of(built_in(), fragment="view=links")
    page.locator(".links-canvas").focus()
    for key in ("Home", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert look(page)["rows"] == [2]
    until(lambda: "quick" in status(page), what="it is read out")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert look(page)["cols"] == [2]


def test_heads_are_walked_and_opened_by_keys(page_of):
    page = page_of(built_in(), fragment="view=heads")
    page.locator(".thumb[tabindex='0']").focus()
    for key in ("Home", "ArrowRight", "ArrowDown", "+"):
        page.keyboard.press(key)
    assert look(page)["more"] == [[1, 1]]
    page.keyboard.press("Enter")
    now = look(page)
    assert (now["view"], now["layer"], now["head"]) == ("map", 1, 1)


def test_the_help_tells_the_keys_and_closes(page_of):
    page = page_of(built_in())
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Help")
    assert "PgUp" in dialog.inner_text()
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
