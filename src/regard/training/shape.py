"""The config of a task's model, made of the section [model] and of what the data and the tokenizer say."""

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

from ..errors import OptionError

# Nobody sets these: the first is for the tokenizer to say, the next for the labels, the last for [data].
GIVEN = frozenset({"vocabulary", "target_vocabulary", "tokenizer", "target_tokenizer", "labels", "segments", "longest"})


def settable(config: type) -> set[str]:
    """The names that [model] may have: fields of the config, and of the configs within it."""
    return _names(config) - GIVEN


def shaped(config: type, model: Mapping[str, Any], **given: Any) -> Any:
    """A config of these fields. One that several of the configs within it have goes into each, as dropout does."""
    for name in model:
        if name not in settable(config):
            near = difflib.get_close_matches(name, settable(config), n=3)
            says = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(sorted(settable(config)))}."
            raise OptionError(f"[model] has no {name}, as {config.__name__} describes it; {says}")
    known = _names(config)
    return _made(config, {**model, **{name: value for name, value in given.items() if name in known}})


def _names(config: type) -> set[str]:
    inner = _inner(config)
    own = {field.name for field in fields(config)} - inner.keys()
    return own.union(*(_names(kind) for kind in inner.values()))


def _inner(config: type) -> dict[str, type]:
    """The configs within a config that it cannot do without."""
    types = get_type_hints(config)
    needed = [field.name for field in fields(config) if field.default is MISSING and field.default_factory is MISSING]
    return {name: types[name] for name in needed if isinstance(types[name], type) and is_dataclass(types[name])}


def _made(config: type, values: Mapping[str, Any]) -> Any:
    own = {field.name: values[field.name] for field in fields(config) if field.name in values}
    return config(**own, **{name: _made(kind, values) for name, kind in _inner(config).items()})
