"""The tests of the page would notice an error in it."""

import pytest

from tests.browser import chromium

POLICY = "default-src 'none'; script-src 'nonce-allowed'"


@pytest.fixture
def problems(browser, tmp_path):
    """What is reported of a page whose body is given."""

    def problems(body):
        path = tmp_path / "page.html"
        path.write_text(
            f'<!doctype html><meta http-equiv="Content-Security-Policy" content="{POLICY}">{body}', encoding="utf-8"
        )
        context = browser.new_context()
        found = chromium.watched(context)
        page = context.new_page()
        page.goto(path.as_uri())
        page.evaluate("new Promise(setTimeout)")  # what the browser had to tell has been told
        context.close()
        return found

    return problems


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("<script nonce=allowed>console.error('wrong')</script>", "wrong"),
        ("<script nonce=allowed>throw new Error('thrown')</script>", "thrown"),
        ("<script nonce=allowed>Promise.reject(new Error('rejected'))</script>", "rejected"),
        ("<script>document.title = 'run'</script>", "refused by script-src-elem: inline"),
        ("<b onclick='1'>press</b>", "refused by script-src-attr: inline"),
        ("<img src='https://example.org/a.png'>", "refused by img-src: https://example.org/a.png"),
    ],
)
def test_an_error_is_noticed(problems, body, told):
    assert told in " ".join(problems(body))


def test_a_page_that_is_right_is_not_accused(problems):
    assert problems("<script nonce=allowed>console.log('fine'); performance.mark('regard:ready')</script>") == []


def test_a_mark_is_awaited_under_a_strict_policy(opened, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(
        f'<!doctype html><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        "<script nonce=allowed>setTimeout(() => performance.mark('regard:picture'), 50)</script>",
        encoding="utf-8",
    )
    chromium.until(opened(path.as_uri()), "picture")


@pytest.mark.parametrize(("variable", "value"), [("CI", "true"), ("REGARD_NEEDS_BROWSER", "1")])
def test_a_browser_is_needed_in_continuous_integration(monkeypatch, variable, value):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("REGARD_NEEDS_BROWSER", raising=False)
    assert not chromium.needed()
    monkeypatch.setenv(variable, value)
    assert chromium.needed()


def test_a_missing_browser_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert "apt-get install chromium" in chromium.missing()
