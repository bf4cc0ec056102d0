"""A headless Chromium of the system, and what goes wrong in its pages."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (  # a container has no sandbox of its own and no GPU; and nothing is to be asked of the network
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
WINDOW = {"width": 1280, "height": 800}
PATIENCE = 15_000  # milliseconds that a page may take for anything

# A violation of the page's policy becomes an error on the console, with what was refused.
TELL_VIOLATIONS = """addEventListener("securitypolicyviolation", (event) =>
  console.error(`refused by ${event.effectiveDirective}: ${event.blockedURI || "inline"}`));"""


def needed() -> bool:
    """Whether a missing browser is a failure, as it is in continuous integration."""
    return bool(os.environ.get("CI")) or os.environ.get("REGARD_NEEDS_BROWSER") == "1"


def missing() -> str:
    """What keeps a browser from being started here, and what to do; empty when nothing does."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "Playwright is not installed (pip install playwright)"
    if executable() is None:
        return f"no Chromium: none of {', '.join(NAMES)} is on the path (apt-get install chromium)"
    return ""


def executable() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def started(flags: tuple[str, ...] = FLAGS) -> Iterator:
    """A Chromium that runs until the block ends."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=list(flags))
        try:
            yield browser
        finally:
            browser.close()


def watched(context) -> list[str]:
    """A list to which every error in the pages of a context is added: thrown, on the console, or refused by policy."""
    problems: list[str] = []
    context.add_init_script(TELL_VIOLATIONS)
    context.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    context.on("weberror", lambda thrown: problems.append(str(thrown.error)))
    context.on("requestfailed", lambda asked: problems.append(_failed(asked)) if _failed(asked) else None)
    return problems


def _failed(asked) -> str:
    """What became of a request, unless the page itself gave it up."""
    return "" if asked.failure == "net::ERR_ABORTED" else f"{asked.url} failed: {asked.failure}"


def until(page, mark: str, *, times: int = 1) -> None:
    """Wait until the app has set the mark regard:<mark> this often."""
    page.wait_for_function(
        "([name, times]) => performance.getEntriesByName(name).length >= times", arg=[f"regard:{mark}", times]
    )
