"""Make the pictures of the page from the page itself, in a browser:   python docs/pages.py [name …]"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from regard.record import Record
from regard.see import load

ROOT = Path(__file__).parents[1]
IMAGES = Path(__file__).parent / "images"
TEXT = "The cat sat on the mat because it was tired, and the dog lay down beside it."
LONG = 12_000  # signs
INDUCTION = (17, 3)  # layer and head: of all in smollm2 it looks most at what followed the same token before
SETTLED = 3000  # milliseconds after which every view is complete


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One picture: of whose page, in what window, and what a hand does there first."""

    record: Callable[[], Record]
    layers: list[int] | None = None  # all, unless some are chosen
    fragment: str = ""  # what follows the # in the page's address: the view and all that is chosen in it
    window: dict[str, Any] = field(default_factory=dict)  # Playwright's options: color_scheme, viewport, locale, …
    hand: Callable[[Any], None] | None = None  # is given Playwright's page


@cache
def sentence() -> Record:
    """A sentence in the model that comes with the package."""
    return load().look(TEXT).record


@cache
def long() -> Record:
    """The documentation of this project, in a model that writes."""
    words = "\n\n".join(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.md")))
    return load("smollm2").look(words[:LONG]).record


PICTURES = {
    "page-map.png": Picture(record=sentence, fragment="layer=2&head=4&rows=9&cols=3"),
    "page-links.png": Picture(
        record=sentence, fragment="view=links&layer=2&head=4&more=2-2,4-0&rows=9", window={"color_scheme": "dark"}
    ),
    "page-heads.png": Picture(record=sentence, fragment="view=heads&sort=previous_token&layer=2&head=3"),
    "page-text.png": Picture(record=long, layers=[INDUCTION[0]], fragment=f"view=text&head={INDUCTION[1]}&rows=643"),
    "page-long.png": Picture(record=long, layers=[INDUCTION[0]], fragment=f"head={INDUCTION[1]}"),
    "page-zh.png": Picture(
        record=sentence, fragment="layer=2&head=4&rows=9&cols=3", window={"color_scheme": "dark", "locale": "zh-CN"}
    ),
}


def main(names: list[str]) -> None:
    """The pictures of these names, or all."""
    sys.path.append(str(ROOT))
    from tests.browser import chromium

    if unknown := set(names) - set(PICTURES):
        sys.exit(f"there is no picture {', '.join(sorted(unknown))}; there are {', '.join(PICTURES)}.")
    if reason := chromium.missing():
        sys.exit(f"pictures of the page need a browser: {reason}")
    IMAGES.mkdir(exist_ok=True)
    with chromium.started() as browser, tempfile.TemporaryDirectory() as folder:
        for name in names or PICTURES:
            take(browser, PICTURES[name], Path(folder) / "page.html", IMAGES / name)


def take(browser: Any, picture: Picture, file: Path, target: Path) -> None:
    """Write the page, open it, let the hand act, and keep what is seen once it is exact."""
    from tests.browser import chromium

    picture.record().page(file, layers=picture.layers)
    context = browser.new_context(**{"viewport": chromium.WINDOW, "locale": "en-US", **picture.window})
    problems = chromium.watched(context)
    page = context.new_page()
    page.goto(file.as_uri() + (f"#{picture.fragment}" if picture.fragment else ""))
    chromium.until(page, "picture")
    page.wait_for_timeout(SETTLED)
    if picture.hand:
        picture.hand(page)
    page.screenshot(path=target)
    context.close()
    if problems:
        sys.exit(f"{target.name}: the page erred: {'; '.join(problems)}")


if __name__ == "__main__":
    main(sys.argv[1:])
