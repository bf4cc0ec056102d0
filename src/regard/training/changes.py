"""Settings changed by a file or a command line; what does not fit is told with where it was said."""

import difflib
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..errors import FileError, OptionError
from .settings import DataSettings, Settings, TokenizerSettings, TrainingSettings
from .values import Unfit, fitting

SECTIONS: dict[str, type | None] = {
    "data": DataSettings, "tokenizer": TokenizerSettings, "model": None, "training": TrainingSettings,
}  # fmt: skip
RIVALS = {"steps": "epochs", "epochs": "steps"}  # to give one is to take the other away


@dataclass(frozen=True)
class Change:
    """Values for one section, and where they were said: "run.toml" or "--set width=512"."""

    section: str
    values: Mapping[str, Any]
    where: str


def changed(settings: Settings, changes: Iterable[Change], model: Collection[str] = ()) -> Settings:
    """The settings with each change made, one after the other. model: names that its section may have besides."""
    for change in changes:
        _require_known(change, names(settings, model))
        if change.section == "model":
            settings = replace(settings, model={**settings.model, **change.values})
            continue
        try:
            section = replace(getattr(settings, change.section), **_without_rivals(change.values))
        except OptionError as error:
            raise OptionError(f"{change.where}: {change.section}.{error}") from None
        settings = replace(settings, **{change.section: section})
    return settings


def of_file(path: Path, task: str) -> list[Change]:
    """What a TOML file says, section by section."""
    try:
        tables = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}.") from None
    except ValueError as error:
        raise FileError(f"{path} is no TOML: {error}.") from None
    meant = tables.pop("task", task)
    if meant != task:
        raise OptionError(f"{path} is for the task {meant!r}, and this is {task}; say: regard train {meant}")
    for section, table in tables.items():
        if section not in SECTIONS:
            raise OptionError(f"{path}: there is no section [{section}]{_near(section, SECTIONS)}")
        if not isinstance(table, dict):
            raise OptionError(f"{path}: {section} is {table!r}; it must be a section, [{section}].")
    return [Change(section, table, str(path)) for section, table in tables.items()]


def of_option(text: str, settings: Settings, model: Collection[str] = ()) -> Change:
    """What one `--set key=value` says. The section may be left out where only one has the key."""
    where = f"--set {text}"
    key, sign, value = text.partition("=")
    section, dot, name = key.strip().rpartition(".")
    if not sign or not name:
        raise OptionError(f"{where}: write key=value, as in --set model.width=512.")
    if not dot:
        section = of_name(name, settings, model, where)
    elif section not in SECTIONS:
        raise OptionError(f"{where}: there is no section {section}{_near(section, SECTIONS)}")
    _require_known(Change(section, {name: value}, where), names(settings, model))
    return Change(section, {name: _value(value.strip(), section, name)}, where)


def names(settings: Settings, model: Collection[str] = ()) -> dict[str, list[str]]:
    """What each section may hold."""
    return {
        section: [field.name for field in fields(kind)] if kind else sorted({*settings.model, *model})
        for section, kind in SECTIONS.items()
    }


def of_name(name: str, settings: Settings, model: Collection[str] = (), where: str = "recipe") -> str:
    """The one section that has a setting of this name."""
    known = names(settings, model)
    having = [section for section, held in known.items() if name in held]
    if len(having) == 1:
        return having[0]
    if having:
        choices = " or ".join(f"{section}.{name}" for section in having)
        raise OptionError(f"{where}: {name} is in several sections; write {choices}.")
    everything = [one for held in known.values() for one in held]
    raise OptionError(f"{where}: there is no setting {name}{_near(name, everything)}")


def _require_known(change: Change, known: Mapping[str, Collection[str]]) -> None:
    held = known[change.section]
    for name in change.values:
        if name not in held:
            near = _near(name, held)
            all_of_it = "" if near != "." else f" It has {', '.join(held)}."
            raise OptionError(f"{change.where}: [{change.section}] has no {name}{near}{all_of_it}")


def _near(name: str, known: Iterable[str]) -> str:
    """The end of the sentence that there is no such name."""
    found = difflib.get_close_matches(name, list(dict.fromkeys(known)), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(found)}?" if found else "."


def _value(text: str, section: str, name: str) -> Any:
    """As TOML has it where that is what is wanted, and else the text itself, so that nobody need quote a name."""
    try:
        found = tomllib.loads(f"value = {text}")
    except ValueError:
        return text
    if list(found) != ["value"]:  # a text of several lines
        return text
    value = found["value"]
    kind = SECTIONS[section]
    if kind is None:
        return value
    wanted = next(field.type for field in fields(kind) if field.name == name)
    try:
        return fitting(value, wanted)
    except Unfit:
        return text if wanted is str else value


def _without_rivals(values: Mapping[str, Any]) -> dict[str, Any]:
    """To say how many steps is to say nothing of epochs, whatever was said before."""
    gone = {rival: None for name, rival in RIVALS.items() if name in values and rival not in values}
    return {**gone, **values}
