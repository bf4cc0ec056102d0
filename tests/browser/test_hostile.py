"""Whatever tokens, titles, files and addresses say, the page shows it as text, runs none of it and asks nobody."""

import base64
import re

import pytest

from tests.browser import chromium
from tests.browser.asking import exported, look, numbers_shown, status, until
from tests.browser.records import built_in, named

TOKENS = [
    "</script><script>window.pwned=1</script>",
    "<!--",
    "<img src=x onerror=window.pwned=1>",
    "<svg onload=window.pwned=1>",
    "]]>",
    "\"'`",
    "&lt;b&gt;&amp;",
    "a\u2028b\u2029c",
    "\u202egnp.exe\u202c",
    "\0",
    "\ud800",
    "long" * 2500,
    "👩‍👩‍👧‍👦",
    "e" + "\u0301" * 30,
    "مرحبا",
    "",
    "   ",
    "\n\t\r",
    "{{data}}",
    "${window.pwned=1}",
    "javascript:window.pwned=1",
    "=HYPERLINK(\"http://example.org\")",
    "\uffff\ufffe\ufeff",
]  # fmt: skip
NAME = "</title></script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\0\ud800"
VIEWS = ("map", "links", "heads", "text")


@pytest.fixture(scope="module")
def record():
    return named(TOKENS, model=NAME)


@pytest.fixture
def hostile(browser, file_of, record):
    """Opens the page; nothing of it may run, and nothing may be asked of the network."""
    asked, dialogs = [], []
    context = browser.new_context(viewport=chromium.WINDOW, locale="en-US")
    context.route("**/*", lambda route: (asked.append(route.request.url), route.continue_()))
    problems = chromium.watched(context)

    def hostile(fragment="", window="title"):
        page = context.new_page()
        page.set_default_timeout(chromium.PATIENCE)
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        page.goto(file_of(record, title=NAME).as_uri() + fragment, wait_until="commit")
        chromium.until(page, "ready")
        return page

    yield hostile
    for page in context.pages:
        assert page.evaluate("() => window.pwned") is None
        assert (
            page.evaluate(
                "() => document.querySelectorAll('img, iframe, object, embed, body script:not([type])').length"
            )
            == 0
        )
    context.close()
    assert not problems
    assert not dialogs
    assert {url.partition(":")[0] for url in asked if not url.startswith("data:,")} <= {"file", "blob"}
    assert {re.sub("[#?].*", "", url) for url in asked if url.startswith("file:")} <= {
        file_of(record, title=NAME).as_uri()
    }


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_opens(hostile, view):
    page = hostile(f"#view={view}&rows=0-{len(TOKENS) - 1}")
    assert page.locator(f"#view-{view}").is_visible()
    assert page.locator(".trouble").count() == 0


def test_title_and_model_are_text(hostile):
    page = hostile()
    assert page.locator("#title").text_content().startswith("</title></script><script>window.pwned=1</script><img")
    assert page.title().startswith("</title></script>")


def test_tokens_are_text_in_the_text(hostile):
    page = hostile("#view=text")
    shown = page.evaluate("() => [...document.querySelectorAll('.token')].map((one) => one.textContent)")
    assert len(shown) == len(TOKENS)
    for token, text in zip(TOKENS[:7], shown, strict=False):
        assert token in text
    assert page.evaluate("() => [...document.querySelectorAll('.token *')].length") == 0


def test_tokens_are_text_in_the_numbers(hostile):
    page = hostile("#rows=0")
    until(lambda: page.locator(".numbers-table tbody tr").count() > 3, what="the numbers are there")
    page.get_by_role("button", name="Show more").click()
    until(lambda: page.locator(".numbers-table tbody tr").count() > 12, what="more numbers are there")
    names = page.locator(".numbers-table bdi").all_text_contents()
    assert any(name.startswith("</script>") for name in names)
    assert max(map(len, names)) < 300
    assert page.evaluate("() => document.querySelector('.numbers-panel').scrollWidth <= innerWidth")


def test_tokens_are_text_in_the_line_that_is_read_out(hostile):
    page = hostile()
    page.locator("canvas.map").focus()
    page.keyboard.press("Enter")
    for _ in TOKENS:
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Home")
    assert "</script>" in status(page)
    assert page.evaluate("() => document.querySelector('#status').children.length") == 0


@pytest.mark.parametrize("view", VIEWS)
def test_a_drawing_stays_well_formed(hostile, view):
    drawing = exported(hostile(f"#view={view}&rows=0"), "svg")
    names = {element.tag.rpartition("}")[2] for element in drawing.iter()}
    assert names <= {"svg", "g", "rect", "line", "path", "text", "tspan", "image", "clipPath", "title"}
    attributes = {name for element in drawing.iter() for name, _ in element.items()}
    assert not {name for name in attributes if name.startswith("on")}
    sources = {value for element in drawing.iter() for name, value in element.items() if name.endswith("href")}
    assert all(source.startswith("data:image/png;base64,") for source in sources)


def test_a_drawing_has_the_tokens_as_text(hostile):
    texts = [element.text or "" for element in exported(hostile(), "svg").iter() if element.tag.endswith("text")]
    assert any(text.startswith("</script>") for text in texts)
    assert any(text.startswith("<!--") for text in texts)
    assert not any("\u202e" in text for text in texts)


def test_a_hostile_text_is_searched_for(hostile):
    page = hostile()
    page.locator("input[type=search]").fill("<img src=x")
    until(lambda: look(page)["rows"] == [2], what="it is found")


@pytest.mark.parametrize(
    "fragment",
    [
        "layer=99&head=-1&at=NaN,1,2&rows=1-999999999",
        "layer=1e3&head=0x1&rows=-5,3-1,,abc,2-&cols=99999999999999&at=1,2",
        "view=nothing&unit=__proto__&sort=constructor&theme=%00&language=xx&pair=zz&scale=cubic",
        "at=1e308,-1e308,1e308&rows=0",
        "at=0,0,-5&more=0-99,99-0,-,a-b,0-0",
        "=&&&%E0%A4%A&#&text=5",
        "a" * 100_000,
    ],
)
def test_an_address_of_nonsense_is_passed_over(page_of, fragment):
    page = page_of(built_in(), fragment=fragment)
    now = look(page)
    assert (now["layer"], now["head"], now["view"], now["unit"]) == (0, 0, "map", "token")
    assert all(0 <= row < 31 for row in now["rows"] + now["cols"])
    assert page.locator("canvas.map").is_visible()


def test_an_address_that_changes_to_nonsense_is_passed_over(page_of):
    page = page_of(built_in(), fragment="layer=2&head=3")
    page.evaluate("() => { location.hash = '#layer=99&rows=1-999999999&at=NaN,1,2' }")
    until(lambda: look(page)["layer"] == 0, what="it is the first layer")
    assert look(page)["rows"] == list(range(1, 31))


# Files that are not what they were


@pytest.fixture
def broken(browser, file_of, tmp_path):
    """Opens a changed copy of a page, in which errors are expected."""
    contexts = []

    def broken(change, record=None):
        path = tmp_path / "broken.html"
        path.write_bytes(change(file_of(record or built_in()).read_bytes()))
        contexts.append(browser.new_context(viewport=chromium.WINDOW, locale="en-US"))
        page = contexts[-1].new_page()
        page.set_default_timeout(chromium.PATIENCE)
        page.goto(path.as_uri())
        return page

    yield broken
    for context in contexts:
        context.close()


def told(page):
    """What a reader sees of a problem: a line at the top, or the line at the bottom."""
    lines = [*page.locator(".trouble").all_inner_texts(), *page.locator("#status").all_inner_texts()]
    return " ".join(lines)


def test_a_file_cut_within_its_first_numbers_says_so(broken):
    page = broken(lambda whole: whole[: whole.index(b'id="block:weights:0:0"') + 600])
    require_waiting(page)  # they stand before the script


def test_a_file_cut_within_later_numbers_says_so_and_waits_for_nothing(broken):
    page = broken(lambda whole: whole[: whole.index(b'id="block:weights:0:1"') + 600])
    chromium.until(page, "picture")
    page.evaluate("() => regard.state.set({ head: 1 })")
    until(lambda: "lacks weights:0:1" in told(page), what="a message is seen")
    assert "This file is not complete" in page.get_by_role("alert").inner_text()
    until(lambda: page.locator("#progress").is_hidden(), what="nothing is waited for")
    assert page.locator("canvas.map").bounding_box()["height"] > 400


def require_waiting(page):
    """The line that is there before any script runs, and is seen when none does."""
    assert "the file is not complete" in page.locator("#waiting").inner_text()
    page.evaluate("() => document.querySelector('#waiting').getAnimations().forEach((one) => one.finish())")
    assert page.evaluate("() => getComputedStyle(document.querySelector('#waiting')).opacity") == "1"


def test_a_file_cut_before_its_last_numbers_says_so_and_shows_the_others(broken):
    page = broken(lambda whole: whole[: whole.index(b'id="block:weights:5:7"')])
    chromium.until(page, "picture")
    assert "This file is not complete" in page.get_by_role("alert").inner_text()
    page.evaluate("() => regard.state.set({ layer: 5, head: 7 })")
    until(lambda: "lacks weights:5:7" in told(page), what="a message is seen")


def test_a_file_cut_within_its_description_says_so(broken):
    require_waiting(broken(lambda whole: whole[: whole.index(b'id="description"') + 900]))


def test_a_whole_file_is_not_accused(page_of):
    page = page_of(built_in())
    until(lambda: page.evaluate("() => document.readyState") == "complete", what="all is read")
    assert page.get_by_role("alert").count() == 0


def test_a_block_that_is_no_base64_says_so(broken):
    page = broken(lambda whole: re.sub(rb'(id="block:weights:0:0">)[^<]{40}', rb"\1" + b"!" * 40, whole))
    until(lambda: "not work" in told(page), what="a message is seen")


def test_a_block_that_does_not_inflate_says_so(broken):
    noise = base64.b64encode(b"\xff" * 300)
    page = broken(lambda whole: re.sub(rb'(id="block:weights:0:0">)[^<]*', rb"\1" + noise, whole))
    until(lambda: "not work" in told(page), what="a message is seen")


def test_a_script_that_was_changed_does_not_run(broken):
    page = broken(
        lambda whole: whole.replace(b'<script type="module" async>', b'<script type="module" async>window.pwned=1;')
    )
    page.evaluate("() => new Promise((resolve) => setTimeout(resolve, 200))")
    assert page.evaluate("() => [window.pwned, window.regard]") == [None, None]


def test_numbers_that_do_not_come_leave_none_of_another_head_behind(broken):
    page = broken(lambda whole: re.sub(rb'(id="block:weights:1:1">)[^<]{40}', rb"\1" + b"!" * 40, whole))
    chromium.until(page, "picture")
    page.evaluate("() => regard.state.set({ rows: [2], view: 'text' })")
    until(lambda: len(numbers_shown(page)) > 2, what="numbers are shown")
    shaded = "() => [...document.querySelectorAll('.passage span')].filter((one) => one.style.backgroundColor).length"
    until(lambda: page.evaluate(shaded) > 2, what="the text is shaded")
    page.evaluate("() => regard.state.set({ layer: 1, head: 1 })")
    until(lambda: numbers_shown(page) == [], what="the table is empty")
    assert "not work" in page.locator(".numbers-caption").inner_text()
    until(lambda: page.evaluate(shaded) == 0, what="nothing is shaded")
