"""Languages and themes: the system's, or those that somebody chooses."""

import re

import pytest

from tests.browser.asking import look, settled, until
from tests.browser.records import built_in

HAN = re.compile(r"[\u4e00-\u9fff]")
# A variable of the style as it is used, and not as it is written: "#12151f".
INK = """(name) => {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const parts = getComputedStyle(probe).color.match(/\\d+/g).slice(0, 3);
  probe.remove();
  return "#" + parts.map((part) => Number(part).toString(16).padStart(2, "0")).join("");
}"""


def labels(page):
    """Every name and text of the interface, without those of the record."""
    return page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, [role=tab], .caption, #numbers p, #numbers h2")]
            .filter((one) => one.offsetParent !== null)
            .flatMap((one) => [one.ariaLabel, one.title, one.placeholder, one.matches("select") ? "" : one.textContent])
            .filter((text) => text && /[A-Za-z\\u4e00-\\u9fff]{2}/.test(text))"""
    )


@pytest.mark.parametrize(
    ("locale", "tab"), [("en-US", "All heads"), ("de-DE", "All heads"), ("zh-CN", "所有头"), ("zh-TW", "所有头")]
)
def test_the_browsers_language_is_spoken(page_of, locale, tab):
    page = page_of(built_in(), window={"locale": locale})
    assert page.get_by_role("tab", name=tab, exact=True).count() == 1


@pytest.mark.parametrize("view", ["map", "links", "heads", "text"])
def test_nothing_is_left_in_english(page_of, view):
    page = page_of(built_in(), fragment=f"view={view}&rows=4", window={"locale": "zh-CN"})
    settled(page)
    allowed = re.compile(r"CSV|PNG|SVG|A→|encoder|TextEncoder|^[i\W\d]+$")
    left = [text for text in labels(page) if not HAN.search(text) and not allowed.search(text)]
    shown = set(built_in().layers[0].queries[0].texts) | {
        text.strip() for text in built_in().layers[0].queries[0].texts
    }
    assert [text for text in left if text.strip() not in shown] == []


@pytest.mark.parametrize("view", ["map", "links", "heads", "text"])
def test_nothing_is_left_in_chinese(page_of, view):
    page = page_of(built_in(), fragment=f"view={view}&rows=4&language=zh")
    page.get_by_role("button", name="设置").click()
    page.get_by_role("combobox", name="语言").select_option("en")
    settled(page)
    page.keyboard.press("Escape")
    assert page.evaluate("() => document.documentElement.lang") == "en"
    assert [text for text in labels(page) if HAN.search(text)] == []


def test_the_language_is_switched_while_looking(page_of):
    page = page_of(built_in(), fragment="rows=4&layer=2")
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("combobox", name="Language").select_option("zh")
    assert page.get_by_role("tab", name="注意力图").count() == 1
    assert page.evaluate("() => document.documentElement.lang") == "zh-Hans"
    assert "最关注的键" in page.locator(".numbers-caption").inner_text()
    assert (look(page)["layer"], look(page)["rows"]) == (2, [4])
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.get_by_role("dialog", name="帮助").is_visible()


@pytest.mark.parametrize(("scheme", "paper"), [("light", "#ffffff"), ("dark", "#12151f")])
def test_the_systems_theme_is_taken(page_of, scheme, paper):
    page = page_of(built_in(), window={"color_scheme": scheme})
    assert page.evaluate(INK, "--paper") == paper
    assert corner(page) == paper


@pytest.mark.parametrize(("scheme", "theme", "paper"), [("light", "dark", "#12151f"), ("dark", "light", "#ffffff")])
def test_a_theme_is_chosen(page_of, scheme, theme, paper):
    page = page_of(built_in(), window={"color_scheme": scheme})
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("combobox", name="Theme").select_option(theme)
    settled(page)
    assert page.evaluate(INK, "--paper") == paper
    assert corner(page) == paper


def test_the_theme_follows_the_system(page_of):
    page = page_of(built_in(), window={"color_scheme": "light"})
    page.emulate_media(color_scheme="dark")
    until(lambda: corner(page) == "#12151f", what="the map is dark")


def corner(page):
    """The colour of the map's paper."""
    pixel = page.evaluate(
        "() => [...document.querySelector('canvas.map').getContext('2d').getImageData(2, 2, 1, 1).data].slice(0, 3)"
    )
    return "#" + "".join(f"{part:02x}" for part in pixel)


def test_nothing_moves_for_who_wants_no_motion(page_of):
    page = page_of(built_in(), window={"reduced_motion": "reduce"})
    long = """() => [...document.querySelectorAll("*")].filter((one) => {
        const { transitionDuration, animationDuration } = getComputedStyle(one);
        return `${transitionDuration}, ${animationDuration}`.split(",").some((time) => parseFloat(time) > 0.02);
    }).map((one) => one.outerHTML.slice(0, 80))"""
    assert page.evaluate(long) == []
