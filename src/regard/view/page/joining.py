"""ES modules → one script, in the order in which they need each other. Only a few plain forms are understood."""

import re
from pathlib import Path

from ...errors import FileError

__all__ = ["joined"]

_IMPORT = re.compile(r'^import\s*\{(\s*[\w$]+(?:\s*,\s*[\w$]+)*\s*,?\s*)\}\s*from\s*"\./([\w-]+\.js)";[ \t]*\n?', re.M)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const)\b)", re.M)
_DECLARED = re.compile(r"^(export )?(?:async )?(?:function|class|const|let|var)\b\s*\*?\s*([\w$]+)", re.M)
_TAKEN_APART = re.compile(r"^(?:const|let|var)\s*([\[{][^=;]*[\]}])\s*=", re.M)
_OTHER = re.compile(r"^(?:import|export)\b.*$", re.M)
_LOADED = re.compile(r"\bimport\s*[(.]")
_COMMENT = re.compile(r"/\*.*?\*/|^\s*//.*?$", re.M | re.S)  # where types are imported
_BLOCK_LINES = re.compile(r"^[ \t]*/\*(?:(?!\*/).)*\*/[ \t]*\n", re.M | re.S)
_COMMENT_LINES = re.compile(r"^[ \t]*//.*\n", re.M)
_INDENTS = re.compile(r"^\s+", re.M)


class _Module:
    """One file: what it imports, what it exports, and the rest of it."""

    def __init__(self, file: Path) -> None:
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise FileError(f"{file} is a part of every page and cannot be read: {error.strerror}.") from None
        self.name = file.name
        self.imports = [
            (source, [name.strip() for name in names.split(",") if name.strip()])
            for names, source in _IMPORT.findall(text)
        ]
        bare = _IMPORT.sub("", text)
        declared = _DECLARED.findall(bare)
        self.names = [name for _, name in declared]
        for pattern in _TAKEN_APART.findall(bare):
            self.names += re.findall(r"([\w$]+)\s*(?=[,\]}])", pattern)
        self.exports = {name for exported, name in declared if exported}
        self.text = _EXPORT.sub("", bare)
        other = _OTHER.search(self.text) or _LOADED.search(_COMMENT.sub("", self.text))
        if other:
            raise FileError(
                f'{file.name} has "{other[0].strip()[:80]}"; a page takes import {{ a, b }} from "./file.js"; and '
                "export before a function, class or const, nothing else."
            )


def joined(folder: Path, entry: str) -> str:
    """A module and all that it imports as one script."""
    modules: dict[str, _Module] = {}
    _visit(folder, entry, modules, ())
    owners: dict[str, str] = {}
    for module in modules.values():
        for name in module.names:
            if name in owners:
                raise FileError(
                    f"{name} is declared in {owners[name]} and in {module.name}; in one script, name it once."
                )
            owners[name] = module.name
    return "\n".join(_lean(module.text.strip("\n")) + "\n" for module in modules.values())


def _lean(text: str) -> str:
    """A module without lines that are comments, but its first, and without indents: a third less in every page."""
    first, _, rest = f"{text}\n".partition("\n")
    rest = _COMMENT_LINES.sub("", _BLOCK_LINES.sub("", rest))
    if any(line.count("`") % 2 for line in rest.splitlines()):
        return text  # a text over several lines, in which indents may count
    return f"{first}\n{_INDENTS.sub('', rest)}".rstrip("\n")


def _visit(folder: Path, name: str, modules: dict[str, _Module], above: tuple[str, ...]) -> None:
    """A module behind those that it imports."""
    if name in modules:
        return
    if name in above:
        raise FileError(f"modules import each other in a circle: {' → '.join((*above, name))}.")
    module = _Module(folder / name)
    for source, names in module.imports:
        _visit(folder, source, modules, (*above, name))
        missing = [wanted for wanted in names if wanted not in modules[source].exports]
        if missing:
            raise FileError(f"{name} imports {', '.join(missing)} from {source}, which does not export it.")
    modules[name] = module
