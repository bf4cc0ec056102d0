"""The page's script keeps the types that its comments state, and has no module that nobody uses."""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.browser.conftest import go_without

ROOT = Path(__file__).parents[2]
APP = ROOT / "src" / "regard" / "view" / "page" / "app"
COMPILER = Path(sys.prefix) / "typescript" / "node_modules" / "typescript" / "bin" / "tsc"  # make puts it there
RULES = (
    "--noEmit", "--allowJs", "--checkJs", "--strict", "--noUnusedLocals", "--noUnusedParameters", "--noImplicitReturns",
    "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler", "--moduleDetection", "force",
    "--pretty", "false",
)  # fmt: skip
WORLDS = {"main.js": "es2022,dom,dom.iterable", "worker.js": "es2022,webworker"}  # a worker has no document


@pytest.fixture(scope="session")
def check():
    """Runs TypeScript over a module and gives back the files it read and its complaints. It may be missing."""
    reason = ""
    if shutil.which("node") is None:
        reason = "Node.js is missing (apt-get install nodejs npm)"
    elif not COMPILER.exists():
        reason = "TypeScript is not in .venv (make test installs it where there is npm and a network)"
    if reason:
        go_without("the types of the page's script were not checked", reason)

    @cache
    def check(module, libraries):
        command = ["node", str(COMPILER), *RULES, "--listFiles", "--lib", libraries, str(module)]
        lines = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", check=False
        ).stdout.splitlines()
        files = {Path(line) for line in lines if Path(line).is_absolute()}
        return files, [line for line in lines if Path(line) not in files]

    return check


@pytest.mark.parametrize(("module", "libraries"), WORLDS.items())
def test_types_hold(check, module, libraries):
    files, errors = check(APP / module, libraries)
    assert APP / module in files
    assert errors == []


def test_every_module_is_used(check):
    used = set().union(*(check(APP / module, libraries)[0] for module, libraries in WORLDS.items()))
    assert set(APP.glob("*.js")) <= used


def test_a_wrong_type_is_noticed(check, tmp_path):
    module = tmp_path / "wrong.js"
    module.write_text("/** @type {number} */\nexport const length = 'five';\n", encoding="utf-8")
    _, errors = check(module, WORLDS["main.js"])
    assert "not assignable to type 'number'" in " ".join(errors)
