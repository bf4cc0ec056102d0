"""Models of Hugging Face: from the hub, from a folder, or out of a package of weights; never their code."""

import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import huggingface_hub
import torch
import transformers
from huggingface_hub.errors import HFValidationError
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.utils import logging

from ..errors import FileError, MissingExtra, OptionError, RegardError
from ..record import Record
from ..record.tokens import Tokens
from ..record.watching import watch
from . import PACKAGED, Seen

__all__ = ["TransformersSubject", "load_from_transformers"]

WRITTEN = 64  # tokens of a translation, where nobody says how many
PATIENCE = 5  # seconds for the hub to answer; the library itself would go on asking for half a minute
TOLERANT = {"dtype": "auto", "ignore_mismatched_sizes": True}  # what does not fit is told, and refused by us
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
OF_A_LAYER = re.compile(r"(^|\.)\d+\.|embed")  # a name of weights without which a model is not what it was


def load_from_transformers(name: str) -> "TransformersSubject":
    """The model and the tokenizer of a name. Pickled weights are not loaded, and no code that comes with a model."""
    place, options = _place(name)
    with _quiet(bars=place == name and not os.path.isdir(name) and sys.stderr.isatty()):
        with _explained(name, "config.json"):
            config = AutoConfig.from_pretrained(place, **options)
        with _explained(name, "tokenizer"):
            _require_reader(name, config)
            tokenizer = AutoTokenizer.from_pretrained(place, config=config, **options)
        with _explained(name, "weights"):
            options |= {"config": config, "output_loading_info": True}
            model, told = _class(config).from_pretrained(place, **TOLERANT, **_weights(options))
    _require_whole(name, told)
    _require_texts(name, model, tokenizer)
    return TransformersSubject(name, model.eval(), tokenizer)


class TransformersSubject:
    """A model of transformers that can be looked at while it reads and writes."""

    def __init__(self, name: str, model: Any, tokenizer: Any) -> None:
        self.name, self.model, self.tokenizer = name, model, tokenizer

    def look(self, text: str, *, pair: str | None = None, generate: int = 0, values: bool = False) -> Seen:
        """Let it read a text, or a pair of texts, and write so many tokens; a translator always writes."""
        translates = bool(self.model.config.is_encoder_decoder)
        self._require_able(translates, pair, generate)
        inputs = self.tokenizer(text, pair, return_tensors="pt")
        count = inputs["input_ids"].shape[1]
        self._require_room(inputs["input_ids"], max(count, generate) if translates else count + generate)
        taken = inspect.signature(self.model.forward).parameters
        given = {key: value for key, value in inputs.items() if key in taken}
        out = None
        with (
            torch.no_grad(),
            _quiet(),
            _running(self.name, count),
            watch(self.model, tokenizer=self.tokenizer, values=values) as record,
        ):
            if translates or generate:
                out = self.model.generate(**given, max_new_tokens=generate or WRITTEN, do_sample=False)
            else:
                self.model(**given)
        wrote = None if out is None else self._text(out[0], 0 if translates else count)
        return Seen(record=record if pair is None else _paired(record, inputs), wrote=wrote)

    def _text(self, ids: Any, start: int) -> str:
        return str(self.tokenizer.decode(ids[start:], skip_special_tokens=True))

    def _require_able(self, translates: bool, pair: str | None, generate: int) -> None:
        if generate and not (translates or self.model.can_generate()):
            raise OptionError(f"{self.name} only reads; leave --generate out, or take a model that writes, as smollm2.")
        if pair is not None and (translates or generate):
            raise OptionError(
                f"{self.name} writes a text of its own; --pair is for two texts that a model reads in one."
            )

    def _require_room(self, ids: torch.Tensor, tokens: int) -> None:
        if not ids.numel():
            raise OptionError("the text has no tokens; give some words.")
        longest = _longest(self.model)
        if longest is not None and tokens > longest:
            raise OptionError(f"{tokens:,} tokens, and {self.name} takes at most {longest:,}; give a shorter text.")
        known = getattr(self.model.get_input_embeddings(), "num_embeddings", None)
        if known is not None and int(ids.max()) >= known:
            raise FileError(
                f"{self.name} knows {known} tokens and its tokenizer gives number {int(ids.max())}: they do not belong "
                "together."
            )


def _place(name: str) -> tuple[str, dict[str, Any]]:
    """Where a model's files are, and what else loading them takes."""
    options: dict[str, Any] = {"trust_remote_code": False}
    if name in PACKAGED:
        folder, file = _packaged(name)
        return folder, options if file is None else options | {"gguf_file": file}
    if os.path.exists(name):
        _require_folder(name)
    elif not _is_reachable(name):
        options["local_files_only"] = True
    return name, options


def _packaged(name: str) -> tuple[str, str | None]:
    package, inner, file, needs = PACKAGED[name]
    spec = importlib.util.find_spec(package)
    missing = [need for need in (package, *needs) if importlib.util.find_spec(need) is None]
    if missing or spec is None or spec.origin is None:
        raise MissingExtra(f"the model {name} needs {', '.join(missing)}: pip install regard[models]")
    return str(Path(spec.origin).parent / inner), file


def _require_folder(name: str) -> None:
    """A folder of a model, as `save_pretrained` makes it; what is wrong with others is said before anything is read."""
    folder = Path(name)
    if not folder.is_dir():
        raise FileError(f"{name} is a file; a model is a folder, with config.json, a tokenizer and model.safetensors.")
    if not (folder / "config.json").is_file():
        raise FileError(f"{name} has no config.json; a model's folder is what model.save_pretrained(folder) makes.")
    if any(folder.glob("*.safetensors")):
        return
    pickled = next((path.name for kind in PICKLES for path in sorted(folder.glob(kind))), None)
    if pickled is None:
        raise FileError(f"{name} has no weights; they are looked for in model.safetensors.")
    raise FileError(
        f"{name} has its weights in {pickled}, a pickle, which may run any code when it is opened. Load it where you "
        "trust it, and save it as safetensors: model.save_pretrained(folder)."
    )


def _is_reachable(name: str) -> bool:
    """Whether the hub answers; where it does not, a model that was had before will do."""
    try:
        huggingface_hub.utils.validate_repo_id(name)  # type: ignore[attr-defined]
    except HFValidationError:
        raise FileError(
            f"there is no model {name!r}: no such folder, and no name that the Hugging Face hub allows."
        ) from None
    try:
        huggingface_hub.get_session().head(huggingface_hub.constants.ENDPOINT, timeout=PATIENCE)
    except Exception as error:  # the library's own, or those of what it asks with
        if isinstance(huggingface_hub.try_to_load_from_cache(name, "config.json"), str):
            return False
        raise FileError(
            f"there is no model {name!r} here: no such folder, none of encoder, {', '.join(PACKAGED)}, none had "
            f"before; and the Hugging Face hub cannot be reached ({_first_line(error)})."
        ) from error
    return True


def _class(config: Any) -> Any:
    """The class for a configuration: what can write is loaded so that it can."""
    if config.is_encoder_decoder:
        return AutoModelForSeq2SeqLM
    writers = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    made = [str(name) for name in config.architectures or ()]
    writes = any("CausalLM" in name or "LMHead" in name for name in made)
    if config.model_type in writers and (writes or not made):
        return AutoModelForCausalLM
    return AutoModel


def _weights(options: dict[str, Any]) -> dict[str, Any]:
    return options if "gguf_file" in options else {**options, "use_safetensors": True}


def _require_whole(name: str, told: Any) -> None:
    """Weights that a file lacks are drawn at random; of a last layer that may be, of attention it would be a lie."""
    missing = {*told["missing_keys"], *(key for key, *_ in told["mismatched_keys"])}
    lacking = sorted(key for key in missing if OF_A_LAYER.search(key))
    if lacking:
        others = f" and {len(lacking) - 1} others" if len(lacking) > 1 else ""
        raise FileError(f"{name} has no weights that fit {lacking[0]}{others}: its config.json is of another model.")


def _require_reader(name: str, config: Any) -> None:
    """A model of pictures or sounds alone has no vocabulary."""
    if getattr(config.get_text_config(), "vocab_size", None) is None:
        raise OptionError(
            f"{name} is a model of the kind {config.model_type!r}, which reads no texts; regard.watch(model) sees it "
            "from Python."
        )


def _require_texts(name: str, model: Any, tokenizer: Any) -> None:
    if model.main_input_name != "input_ids":
        raise OptionError(f"{name} reads {model.main_input_name}, not texts; regard.watch(model) sees it from Python.")
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise FileError(f"{name} has no tokenizer; put one beside it with tokenizer.save_pretrained(folder).")


def _longest(model: Any) -> int | None:
    """How many tokens fit; None where nothing says so."""
    for part, table in model.named_modules():
        if part.endswith("position_embeddings") and isinstance(table, nn.Embedding):
            return table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return longest if isinstance(longest, int) and longest > 0 else None


def _paired(record: Record, inputs: Any) -> Record:
    """The record, with the tokenizer's word on which token is of which text; a mark belongs to the text before it."""
    tokens = record.layers[0].queries[0]
    if not inputs.is_fast:
        return record
    marks, last = [], 0
    for own in inputs.sequence_ids(0):
        last = last if own is None else own
        marks.append(last)
    return record.labelled(Tokens(tokens.texts, tokens.begins, tuple(marks), tokens.generated))


@contextmanager
def _quiet(*, bars: bool = False) -> Iterator[None]:
    """No advice of the library's own, and no bars unless something is fetched: what matters is said by us."""
    before, shown = logging.get_verbosity(), logging.is_progress_bar_enabled()
    hub = huggingface_hub.logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    huggingface_hub.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    if not bars:
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(before)
        huggingface_hub.logging.set_verbosity(hub)
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


@contextmanager
def _explained(name: str, part: str) -> Iterator[None]:
    """What can go wrong while a part of a model is loaded, in one line. Foreign files can raise anything."""
    try:
        yield
    except RegardError:
        raise
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise RegardError(f"out of memory while {name} was loaded; take a smaller model.") from error
    except Exception as error:
        raise FileError(f"{name}: its {part} cannot be read: {_first_line(error)}.") from error


@contextmanager
def _running(name: str, tokens: int) -> Iterator[None]:
    """What can go wrong while a model runs, in one line."""
    try:
        yield
    except RegardError:
        raise
    except Exception as error:
        if isinstance(error, (torch.OutOfMemoryError, MemoryError)) or re.search("(alloc|enough).* memory", str(error)):
            raise RegardError(
                f"out of memory with {tokens:,} tokens; give a shorter text, or a smaller model."
            ) from None
        raise RegardError(f"{name} failed with this text: {type(error).__name__}: {_first_line(error)}.") from error


def _first_line(error: BaseException) -> str:
    lines = (line.strip().rstrip(".:!") for line in str(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)
