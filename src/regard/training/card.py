"""The card of a trained model: what it is, what it learned from, how well it does, and the command that makes it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..replacing import write_whole
from .preparing import Prepared
from .progress import Progress
from .settings import FILE as RUN
from .settings import beginning

FILE = "README.md"
USES = {
    "translation": 'regard translate "A sentence." --model FOLDER',
    "summarisation": "regard summarise --file text.txt --model FOLDER",
    "classification": 'regard classify "A text." --model FOLDER',
    "language-model": 'regard generate "A beginning" --model FOLDER',
    "masked-language-model": 'regard fill "A [MASK] sentence." --model FOLDER',
    "question-answering": 'regard answer "A question?" --file text.txt --model FOLDER',
}


@dataclass(frozen=True)
class Made:
    """How the weights of a model came about."""

    found: Mapping[str, float]  # what held-out text said of them
    progress: Progress
    device: torch.device
    pretrained: Path | None


def write(folder: Path, prepared: Prepared, model: torch.nn.Module, made: Made) -> None:
    """As README.md, beside the weights."""
    job, progress, device = prepared.job, made.progress, made.device
    weights = sum(weight.numel() for weight in model.parameters())
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    shape = json.dumps(job.settings.model, ensure_ascii=False)
    rows = "\n".join(f"| {name} | {value:.4g} |" for name, value in made.found.items()) or "| not measured | – |"
    data = job.settings.data
    text = f"""# {folder.resolve().name}: {job.name}

A {type(model).__name__} of {weights:,} weights, trained with Regard.

    {USES[job.name].replace("FOLDER", folder.resolve().name)}

| held-out text | |
|---|---|
{rows}

- learned from {", ".join(data.paths)}: {prepared.learned.told.sentence()}
- held out {_held(data.held_out)}: {prepared.held.told.sentence()}
- pieces: {job.tokenizer.size:,}{f" and {job.target.size:,}" if job.target else ""}; shape: {shape}
- these weights: step {progress.best_step or progress.step:,}, after {progress.seconds / 60:.1f} minutes on {where},
  seed {job.settings.training.seed}
- made anew by: `regard train {job.name} --config {RUN}{beginning(made.pretrained)} --out FOLDER`
"""
    write_whole(folder / FILE, (text.encode(),))


def _held(held: Any) -> str:
    return ", ".join(held) if isinstance(held, tuple) else f"a share of {held:g}"
