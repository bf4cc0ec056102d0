"""The text encoder: token ids → a guess for each masked word, by an encoder between one embedding used twice."""

# B batch, N tokens, E width, V pieces of the vocabulary

import json
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import DtypeError, FileError, MissingExtra, OptionError, RegardError, ShapeError
from ..formula.masks import Mask
from .attention import Rotary
from .blocks import BlockConfig
from .encoder import Encoder
from .options import require_count, require_rate

KIND = "regard.TextEncoder"
WEIGHTS, CONFIG = "model.safetensors", "config.json"


@dataclass(frozen=True, kw_only=True)
class TextEncoderConfig:
    """The shape of a text encoder, checked."""

    vocabulary: int  # pieces, special ones and all
    width: int = 256
    heads: int = 8
    depth: int = 6
    hidden: int = 512  # of the feed-forward part
    activation: str = "swiglu"
    norm: str = "layer"
    rotary_base: float = 10000.0
    longest: int = 512  # tokens of a text; what lies beyond was never trained
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name in ("vocabulary", "depth", "longest"):
            require_count(name, getattr(self, name))
        require_rate("dropout", self.dropout)
        self.block()

    def block(self) -> BlockConfig:
        """What its blocks are made of."""
        return BlockConfig(
            width=self.width, heads=self.heads, hidden=self.hidden, activation=self.activation, norm=self.norm,
            dropout=self.dropout, rotary=Rotary(base=self.rotary_base),
        )  # fmt: skip


class TextEncoder(nn.Module):
    """Token ids → embedding → encoder → the embedding once more: how well each piece fits each place.

    `TextEncoder.load(regard.models.folder("encoder"))` is one that was trained. Texts of differing length are padded,
    and the padding kept out by a mask: `model(ids, mask=masks.padding_of_ids(ids, tokenizer.pad))`.
    """

    def __init__(self, config: TextEncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.encoder = Encoder(config.block(), config.depth)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary))
        # One matrix serves both ends (Press and Wolf 2017): at the output rows of length 1 keep first guesses mild, at
        # the input √E makes of them numbers around 1, as large as what the blocks add.
        nn.init.normal_(self.embedding.weight, std=config.width**-0.5)

    def forward(self, ids: Tensor, *, mask: Mask | Tensor | None = None) -> Tensor:
        """How well each piece would fit at each place, as logits.   (B, N) -> (B, N, V)"""
        return self.guess(self.vectors(ids, mask=mask))

    def vectors(self, ids: Tensor, *, mask: Mask | Tensor | None = None) -> Tensor:
        """Each token in its context.   (B, N) -> (B, N, E)"""
        self._require_ids(ids)
        x = functional.dropout(self.embedding(ids) * math.sqrt(self.config.width), self.config.dropout, self.training)
        return self.encoder(x, mask=mask)  # type: ignore[no-any-return]

    def guess(self, vectors: Tensor) -> Tensor:
        """Which piece a vector of `vectors` speaks of, as logits.   (.., E) -> (.., V)"""
        return functional.linear(vectors, self.embedding.weight, self.bias)

    def _require_ids(self, ids: Tensor) -> None:
        if not isinstance(ids, Tensor):
            raise DtypeError(f"ids is a {type(ids).__name__}; make it a tensor: torch.tensor([ids]).")
        if ids.dtype not in (torch.int64, torch.int32):
            raise DtypeError(f"ids has dtype {ids.dtype}; token ids are whole numbers, int64 or int32.")
        if ids.ndim != 2 or 0 in ids.shape:
            one = " For a single text give ids[None]." if ids.ndim == 1 and len(ids) else ""
            raise ShapeError(f"ids has shape {tuple(ids.shape)}; it must be (batch, tokens), 1 or more of each.{one}")
        if ids.shape[1] > self.config.longest:
            raise ShapeError(
                f"the text has {ids.shape[1]} tokens and this encoder reads at most {self.config.longest}; "
                "cut it into shorter texts."
            )
        # A wrong id would stop a GPU for good, so it is looked for; not in training, which must not wait for an answer.
        if not self.training and not torch.compiler.is_compiling():
            self._require_known(ids)

    def _require_known(self, ids: Tensor) -> None:
        if not 0 <= int(ids.min()) <= int(ids.max()) < self.config.vocabulary:
            wrong = int(ids.min()) if int(ids.min()) < 0 else int(ids.max())
            raise OptionError(f"{wrong} is no token id; this encoder has pieces 0 to {self.config.vocabulary - 1}.")

    def save(self, folder: Path | str) -> None:
        """Into a folder, as config.json and model.safetensors in half precision; its other files are left alone."""
        from_torch = _safetensors().save
        weights = {name: weight.detach().half().cpu().contiguous() for name, weight in self.state_dict().items()}
        for name, weight in weights.items():
            if not bool(torch.isfinite(weight).all()):
                raise OptionError(f"{name} has numbers that half precision cannot hold, NaN or beyond ±65,504.")
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        _write(path / WEIGHTS, from_torch(weights, metadata={"kind": KIND}))
        _write(path / CONFIG, (json.dumps({"kind": KIND, **asdict(self.config)}, indent=2) + "\n").encode())

    @classmethod
    def load(cls, folder: Path | str) -> "TextEncoder":
        """The encoder of a folder that `save` wrote, in float32, ready to be asked (`eval`)."""
        path = Path(folder)
        config, weights = _read_config(path / CONFIG), _read_weights(path / WEIGHTS)
        # Looked at before a model is made, which a damaged number in the config could make larger than the memory.
        told, held = config.vocabulary * config.width, sum(weight.numel() for weight in weights.values())
        if max(told, config.depth * config.width * config.hidden) > held:
            raise FileError(
                f"{path / CONFIG} describes a larger model than the {held:,} numbers of {WEIGHTS} beside it."
            )
        model = cls(config)
        _require_weights(path / WEIGHTS, weights, model.state_dict())
        model.load_state_dict(weights)
        return model.eval()


def _safetensors() -> Any:
    try:
        import safetensors.torch
    except ImportError as missing:
        raise MissingExtra("files of weights need safetensors: pip install regard[train]") from missing
    return safetensors.torch


def _write(path: Path, content: bytes) -> None:
    """The file appears whole or not at all: it is written under another name first."""
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
        file.write(content)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from None


def _read_config(path: Path) -> TextEncoderConfig:
    try:
        told = json.loads(_read(path))
    except (ValueError, RecursionError):
        raise FileError(f"{path} is not JSON; the folder is damaged, or of another kind.") from None
    if not isinstance(told, dict) or told.get("kind") != KIND:
        found = told.get("kind", "none") if isinstance(told, dict) else "none"
        raise FileError(f"{path} has kind {found!r}, and that of a text encoder of Regard is {KIND!r}.")
    del told["kind"]
    known = {field.name for field in fields(TextEncoderConfig)}
    for wrong, says in ((sorted(known - told.keys()), "lacks"), (sorted(told.keys() - known), "has the unknown")):
        if wrong:
            raise FileError(f"{path} {says} {', '.join(wrong)}; a newer Regard may have written it.")
    try:
        return TextEncoderConfig(**told)
    except (RegardError, TypeError) as error:
        raise FileError(f"{path} describes no encoder: {error}") from None


def _read_weights(path: Path) -> dict[str, Tensor]:
    content = _read(path)
    try:
        found: dict[str, Tensor] = _safetensors().load(content)
    except MissingExtra:
        raise
    except Exception as error:  # the library has an error of its own for each way of being damaged
        raise FileError(f"{path} is damaged, or no safetensors file: {error}.") from None
    return {name: weight.float() for name, weight in found.items()}


def _require_weights(path: Path, found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    for says, names in (("lacks", wanted.keys() - found.keys()), ("has the unknown", found.keys() - wanted.keys())):
        if names:
            raise FileError(f"{path} {says} {_few(sorted(names))}; it is of another model than {CONFIG} beside it.")
    for name, weight in sorted(found.items()):
        if weight.shape != wanted[name].shape:
            told, found_shape = tuple(wanted[name].shape), tuple(weight.shape)
            raise FileError(f"{path}: {name} is {found_shape}, and by {CONFIG} beside it {told}.")
        if not math.isfinite(float(weight.sum())):
            raise FileError(f"{path}: {name} has numbers that are not finite; the file is damaged.")


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
