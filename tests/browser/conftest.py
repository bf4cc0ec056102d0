"""A browser for the tests of the page, and pages that may not err."""

from contextlib import ExitStack, contextmanager

import pytest
import torch

from tests.browser import chromium
from tests.view.serve.served import serving


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Give all skips one place, so that pytest says once, not for every test, what is missing."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.longrepr = (__file__, 1, report.longrepr[2])
    return report


@pytest.fixture(scope="session")
def browser():
    """One Chromium for each worker. Where there is none the tests are skipped, but not in continuous integration."""
    reason = chromium.missing()
    if reason:
        go_without("the page was not tested in a browser", reason)
    with chromium.started() as browser:
        yield browser


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """The models here are tiny, and threads that wait for each other are slower than one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@contextmanager
def windows(browser):
    """Opens addresses, each in a window of its own; fails in the end when anything has erred there.

    Options are Playwright's for a context: viewport, color_scheme, has_touch, locale, …
    """
    contexts = []

    def opened(address, **options):
        context = browser.new_context(**{"viewport": chromium.WINDOW, "locale": "en-US", **options})
        contexts.append((context, chromium.watched(context)))
        page = context.new_page()
        page.set_default_timeout(chromium.PATIENCE)
        page.goto(address, wait_until="commit")
        return page

    try:
        yield opened
    finally:
        for context, _ in contexts:
            context.close()
    problems = [problem for _, found in contexts for problem in found]
    if problems:
        pytest.fail("the page erred: " + "; ".join(problems), pytrace=False)


@pytest.fixture
def servers():
    """The servers of a test."""
    with ExitStack() as running:
        yield running


@pytest.fixture
def opened(browser, servers):  # a server ends after the windows that ask it
    """Opens an address in a window of its own; the test fails when anything errs there."""
    with windows(browser) as opened:
        yield opened


@pytest.fixture(scope="session")
def file_of(tmp_path_factory):
    """Writes a record's page, once, and gives back its path."""
    folder = tmp_path_factory.mktemp("pages")
    pages = {}

    def file_of(record, **options):
        key = id(record), *sorted(options.items())
        if key not in pages:
            path = folder / f"page{len(pages)}.html"
            record.page(path, **options)
            pages[key] = path, record  # which stays, so that no other record takes its id
        return pages[key][0]

    return file_of


@pytest.fixture
def page_of(opened, file_of):
    """Writes a record's page, opens the file and waits for its first picture.

    The fragment is what follows the # in the address; window has options for Playwright; the others are the page's.
    """

    def page_of(record, *, fragment="", window=None, **options):
        return shown(opened, file_of(record, **options).as_uri(), fragment, window)

    return page_of


@pytest.fixture
def served(opened, servers):
    """Serves a record, opens the page and waits for its first picture.

    The fragment and the window are as for page_of; the others are the server's options.
    """

    def served(record, *, fragment="", window=None, **options):
        port = servers.enter_context(serving(record, **options)).port
        return shown(opened, f"http://127.0.0.1:{port}/", fragment, window)

    return served


def shown(opened, address, fragment, window):
    """A page that can be looked at; the mark of the first picture is the map's, other views are only ready."""
    page = opened(address + (f"#{fragment}" if fragment else ""), **(window or {}))
    chromium.until(page, "ready" if "view=" in fragment else "picture")
    return page


def go_without(what: str, reason: str) -> None:
    """Skip a test for want of something, or fail it where that may not be wanting."""
    (pytest.fail if chromium.needed() else pytest.skip)(f"{what}: {reason}")
