"""Who may import whom, and what `import regard` may load."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "regard"
ARRAY_LIBRARIES = {"numpy", "torch", "jax", "cupy"}

SHARED = {"errors", "locking", "replacing"}  # everybody's
NOT_ROOMS = {*SHARED, "torch.py", "transformers.py", "watching", "record.plot"}

# room: what its files may import of ours, and what of others they must not
ROOMS = {
    "formula": ({"formula"}, {*ARRAY_LIBRARIES, "transformers", "matplotlib", "rich", "typer"}),
    "text": ({"text"}, {"torch", "transformers", "matplotlib"}),
    "model": ({"formula", "model"}, {"transformers", "matplotlib", "rich", "typer", "jax"}),
    "explain.py": ({"formula", "text"}, {"torch", "transformers", "matplotlib", "rich", "typer"}),
    "models": ({"models"}, {*ARRAY_LIBRARIES, "transformers", "rich", "typer"}),
    "record": (
        {"formula", "model", "record", "text", "view"},
        {"matplotlib", "rich", "typer", "jax", "cupy"},
    ),
    "see": ({"model", "models", "predictions", "record", "see", "text"}, {"matplotlib", "rich", "typer", "jax"}),
    "lessons": ({"formula", "lessons", "view"}, {"transformers", "typer", "jax"}),
    "predictions": ({"model", "models", "predictions", "record", "text"}, {"matplotlib", "rich", "typer", "jax"}),
    "training": ({"model", "predictions", "text", "training"}, {"matplotlib", "rich", "typer", "jax"}),
    "view": ({"explain", "formula", "record", "view"}, {"torch", "transformers", "jax"}),
}


def imports(path):
    """Every module a file imports, absolute, with the relative ones resolved."""
    package = ["regard", *path.relative_to(SOURCE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def test_lessons_need_torch_in_one_file_only():
    files = {path.name for path in (SOURCE / "lessons").glob("*.py") if "torch" in set(imports(path))}
    assert files == {"torch.py"}


def test_a_record_needs_torch_only_to_be_made():
    files = {
        path.relative_to(SOURCE / "record").as_posix(): set(imports(path)) for path in (SOURCE / "record").rglob("*.py")
    }
    outside = {name: found for name, found in files.items() if not name.startswith("watching/")}
    assert not [
        name for name, found in outside.items() if {"torch", "transformers"} & {one.split(".")[0] for one in found}
    ]
    assert [name for name, found in files.items() if any(one.split(".")[0] == "transformers" for one in found)] == [
        "watching/transformers.py"
    ]


def test_the_table_of_contributing_is_what_is_held_here():
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    told = {
        name.strip("/"): set(re.findall(r"`([\w.]+)`", allowed)) - NOT_ROOMS
        for name, allowed in re.findall(r"^\| `([\w./]+)` \|[^|]*\|([^|]*)\|", text, flags=re.M)
    }
    held = {name: {room.strip("/") for room in ours} - {name} for name, (ours, _) in ROOMS.items()}
    assert {name: allowed for name, allowed in told.items() if name != "commands"} == held


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_it_may(room):
    ours, never = ROOMS[room]
    files = sorted((SOURCE / room).rglob("*.py")) or [SOURCE / room]
    assert files
    for path in files:
        for module in imports(path):
            root, *rest = module.split(".")
            assert root not in never, f"{path.relative_to(SOURCE)} imports {module}"
            if root == "regard" and rest and (SOURCE / rest[0]).exists() | (SOURCE / f"{rest[0]}.py").exists():
                assert rest[0] in ours | SHARED, f"{path.relative_to(SOURCE)} imports {module}"


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        ("regard, regard.formula", ["torch", "transformers", "matplotlib", "jax", "typer", "rich"]),
        ("regard.lessons, regard.commands, regard.view.terminal", ["torch", "transformers", "matplotlib", "jax"]),
        ("regard.record.measures, regard.record.file, regard.view.seen", ["torch", "transformers", "matplotlib"]),
    ],
)
def test_imports_are_light(modules, heavy):
    program = f"import sys, {modules}; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_every_module_says_in_one_line_what_it_is():
    for path in SOURCE.rglob("*.py"):
        line = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()
        assert line, path
        assert len(line[0]) < 120, path
