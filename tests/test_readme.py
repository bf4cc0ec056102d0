"""The README does what it says: its Python runs, its commands exist, its tree is the modules' own words."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for program in blocks(page, "python"):
        exec(compile(program, page.name, "exec"), {"__name__": "__main__"})


def test_the_tree_is_the_modules_own_first_lines():
    (tree,) = blocks(ROOT / "README.md", "tree")
    told = dict(re.findall(r"^(\S+)\s{2,}(\S.*)$", tree, flags=re.M))
    source = ROOT / "src" / "regard"
    found = {}
    for path in sorted(source.rglob("*.py")):
        words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).splitlines()[0]
        place = path.relative_to(ROOT)
        found[f"{place.parent}/" if path.name == "__init__.py" else str(place)] = words
    assert told == found


def test_links_and_pictures_are_there():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} points to {target}"


def test_commands_are_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        for command in re.findall(r"^make (\w+)", page.read_text(encoding="utf-8"), flags=re.M):
            assert re.search(rf"^{command}:", makefile, flags=re.M), command
