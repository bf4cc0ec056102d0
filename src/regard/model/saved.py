"""Models in folders: config.json and model.safetensors, written whole, checked when read; a pickle is never loaded."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

import torch
from torch import Tensor, nn

from ..errors import FileError, MissingExtra, OptionError, RegardError
from ..replacing import write_whole

WEIGHTS, CONFIG = "model.safetensors", "config.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


class Saved(nn.Module):
    """A model that is made of a config and can be kept in a folder.

    kind: what config.json calls it, "regard.Classifier" for one. Config: the frozen dataclass that describes it.
    """

    kind: ClassVar[str]
    Config: ClassVar[type]
    config: Any

    def save(self, folder: Path | str, *, half: bool = False, weights: Mapping[str, Tensor] | None = None) -> None:
        """Into a folder, whose other files are left alone.

        half: weights in half precision, of half the size. weights: these in the place of its own, such as their mean
        over time.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        content = _packed(self.kind, self.state_dict() if weights is None else weights, half=half)
        write_whole(path / WEIGHTS, (content,), len(content))
        write_config(path, self.kind, self.config)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """The model of a folder that `save` wrote, in float32, ready to be asked (`eval`)."""
        path = Path(folder)
        config = _config_of(cls, path / CONFIG, _told(path / CONFIG))
        weights = read_weights(path)
        held = sum(weight.numel() for weight in weights.values())
        with torch.device("meta"):  # so that a damaged number in the config is told, not paid for with all the memory
            model = cls(config)
        _require_weights(path / WEIGHTS, weights, model.state_dict(), held)
        model = cls(config)
        model.load_state_dict(weights)
        return model.eval()


def kind_of(folder: Path | str) -> str:
    """What kind of model a folder holds: "regard.Translator" for one."""
    path = Path(folder) / CONFIG
    return str(_told(path)["kind"])


def write_config(folder: Path, kind: str, config: Any) -> None:
    """The description of a model, beside its weights."""
    text = json.dumps({"kind": kind, **asdict(config)}, indent=2, ensure_ascii=False) + "\n"
    write_whole(folder / CONFIG, (text.encode(),))


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of a folder, in float32."""
    path = folder / WEIGHTS
    if not path.exists():
        pickles = sorted(file.name for file in folder.glob("*") if file.suffix in PICKLES)
        if pickles:
            raise FileError(
                f"{folder} has {pickles[0]}, a pickle, and no {WEIGHTS}. A pickle can run any code when it is loaded, "
                "so Regard never does; save the weights as safetensors."
            )
    content = _read(path)
    # The first bytes of a safetensors file are the length of its header, which may look like anything; then comes "{".
    if content[8:9] != b"{" and content[:2] in (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"):
        raise FileError(f"{path} is a pickle under another name, which Regard never loads; save it as safetensors.")
    try:
        found: dict[str, Tensor] = safetensors().load(content)
    except MissingExtra:
        raise
    except Exception as error:  # the library has an error of its own for each way of being damaged
        raise FileError(f"{path} is damaged, or no safetensors file: {error}.") from None
    return {name: weight.float() for name, weight in found.items()}


def safetensors() -> Any:
    """The library that reads and writes the files, where it is installed."""
    try:
        import safetensors.torch
    except ImportError as missing:
        raise MissingExtra("files of weights need safetensors: pip install regard[train]") from missing
    return safetensors.torch


def _packed(kind: str, state: Mapping[str, Tensor], *, half: bool) -> bytes:
    weights = {name: weight.detach().cpu() for name, weight in state.items()}
    weights = {name: (weight.half() if half else weight.float()).contiguous() for name, weight in weights.items()}
    for name, weight in weights.items():
        if not bool(torch.isfinite(weight).all()):
            limit = "half precision cannot hold, NaN or beyond ±65,504" if half else "are not finite"
            raise OptionError(f"{name} has numbers that {limit}.")
    packed: bytes = safetensors().save(weights, metadata={"kind": kind})
    return packed


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from None


def _told(path: Path) -> dict[str, Any]:
    """What config.json says, once it is one of ours."""
    try:
        told = json.loads(_read(path))
    except (ValueError, RecursionError):
        raise FileError(f"{path} is not JSON; the folder is damaged, or of another kind.") from None
    kind = told.get("kind") if isinstance(told, dict) else None
    if not isinstance(kind, str) or not kind.startswith("regard."):
        raise FileError(f"{path} has kind {kind or 'none'!r}; it is no model of Regard, whose kinds begin with regard.")
    return dict(told)


def _config_of(model: type[Saved], path: Path, told: dict[str, Any]) -> Any:
    found = told.pop("kind")
    if found != model.kind:
        raise FileError(f"{path} has kind {found!r}, and that of a {model.__name__} is {model.kind!r}.")
    return _made(model.Config, told, path)


def _made(config: type, told: Any, path: Path) -> Any:
    """A config out of what JSON kept of it, configs within it and tuples restored."""
    if not isinstance(told, dict):
        raise FileError(f"{path} has {told!r} where the fields of a {config.__name__} should be.")
    known = {field.name for field in fields(config)}
    for wrong, says in ((sorted(known - told.keys()), "lacks"), (sorted(told.keys() - known), "has the unknown")):
        if wrong:
            raise FileError(f"{path} {says} {', '.join(wrong)}; a newer Regard may have written it.")
    types = get_type_hints(config)
    values = {name: _restored(types[name], value, path) for name, value in told.items()}
    try:
        made = config(**values)
    except (RegardError, TypeError) as error:
        raise FileError(f"{path} describes no model: {error}") from None
    for name, value in values.items():
        if not _fits(types[name], value):
            raise FileError(f"{path} has {name} = {told[name]!r}, which is of the wrong kind; the file is damaged.")
    return made


def _restored(wanted: Any, value: Any, path: Path) -> Any:
    if isinstance(wanted, type) and is_dataclass(wanted):
        return _made(wanted, value, path)
    return tuple(value) if isinstance(value, list) else value


def _fits(wanted: Any, value: Any) -> bool:
    """Whether a value is of the type of its field; what is in a tuple is for the config to check."""
    kinds = [get_origin(kind) or kind for kind in (get_args(wanted) if isinstance(wanted, UnionType) else (wanted,))]
    if isinstance(value, bool):
        return bool in kinds
    return any(isinstance(value, (int, float) if kind is float else kind) for kind in kinds if isinstance(kind, type))


def _require_weights(path: Path, found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], held: int) -> None:
    asked = sum(weight.numel() for weight in wanted.values())
    for says, names in (("lacks", wanted.keys() - found.keys()), ("has the unknown", found.keys() - wanted.keys())):
        if names:
            raise FileError(f"{path} {says} {_few(sorted(names))}; it is of another model than {CONFIG} beside it.")
    for name, weight in sorted(found.items()):
        if weight.shape != wanted[name].shape:
            raise FileError(
                f"{path}: {name} is {tuple(weight.shape)}, and by {CONFIG} beside it {tuple(wanted[name].shape)}; "
                f"the file holds {held:,} numbers, {CONFIG} describes a model of {asked:,}."
            )
        if not math.isfinite(float(weight.sum())):
            raise FileError(f"{path}: {name} has numbers that are not finite; the file is damaged.")


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
