"""`regard train`: a model of one's own, made from text."""

import json
import os
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import OptionError
from .app import app

if TYPE_CHECKING:
    from ..training.changes import Change
    from ..training.run import Outcome
    from ..training.settings import Settings


class Task(StrEnum):
    """What can be trained; a test holds these to be the recipes."""

    translation = "translation"
    classification = "classification"
    language_model = "language-model"
    masked_language_model = "masked-language-model"
    question_answering = "question-answering"
    summarisation = "summarisation"


@app.command()
def train(
    task: Annotated[Task, typer.Argument(metavar="TASK", help="What it is to learn.", show_default=False)], *,
    data: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="What to learn from: a file or a folder; may be repeated.")
    ] = None,
    fields: Annotated[
        str | None, typer.Option(metavar="FIELD=COLUMN,…", help="Which columns are which: source=en,target=zh.")
    ] = None,
    held_out: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="What to measure by: files, or a share of the data, such as 0.01."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the model goes.", show_default="runs/TASK")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings in TOML; --show writes all of them.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting: width=512; may be repeated.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="FOLDER", help="Begin with trained weights; encoder is built in.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew where the folder has a run, instead of going on with it.")
    ] = False,
    minutes: Annotated[
        float | None, typer.Option(metavar="N", help="Stop after so many; the same command goes on.", min=0)
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print all the settings as TOML, and train nothing.")] = False,
) -> None:  # fmt: skip
    """Train a model of your own: a translator, a classifier, a language model and more.

    regard train translation --data pairs.tsv --fields source=en,target=zh

    The same command once more goes on with a run that was stopped. Under torchrun it uses several processes:
    torchrun --nproc-per-node 4 -m regard train …
    """
    pretrained = _pretrained(from_)
    settings = _settings(task.value, config, _options(data, fields, held_out), set_ or [], pretrained)
    if show:
        print(settings.as_toml(task.value), end="")
        return
    if not settings.data.paths:
        raise OptionError("there is nothing to learn from; give --data FILE, or paths under [data] in a --config file.")
    folder = out or Path("runs") / task.value
    outcome = _train(
        task.value, _found_from_anywhere(settings), folder, pretrained=pretrained, fresh=fresh, minutes=minutes
    )
    if os.environ.get("RANK", "0") == "0":  # of the processes that torchrun started, one speaks
        _tell(outcome, task.value)
    if outcome.signalled:
        raise typer.Exit(130)  # or what stands behind && would begin


def _train(task: str, settings: "Settings", out: Path, **options: Any) -> "Outcome":
    from ..training.run import train as run
    from ..view.training import TrainingView

    view = TrainingView()
    try:
        return run(task, settings, out, **options, reporters=[view])
    finally:
        view.stop()


def _tell(outcome: "Outcome", task: str) -> None:
    """Where the model is, and what it is for; and why there is not all that was asked for."""
    from ..training.card import USES
    from ..view.labels import printable

    folder = printable(str(outcome.folder))
    if outcome.stopped:
        print(f"stopped after step {outcome.step:,} of {outcome.steps:,}: {outcome.stopped}; it can go on in {folder}")
    print(f"trained: {folder}, for {USES[task].replace('FOLDER', folder)}")


def _options(data: list[str] | None, fields: str | None, held_out: list[str] | None) -> "list[Change]":
    """What the options for the data say, as changes of the settings."""
    from ..training.changes import Change

    said = (("paths", "--data", data), ("fields", "--fields", fields), ("held_out", "--held-out", held_out))
    return [Change("data", {name: value}, option) for name, option, value in said if value]


def _settings(
    task: str, config: Path | None, options: "list[Change]", sets: list[str], pretrained: Path | None
) -> "Settings":
    """The recipe, no longer than a pretrained model reads, changed by the file, the options and each --set in turn."""
    from ..training.changes import changed, of_file, of_option
    from ..training.jobs import JOBS
    from ..training.recipes import TASKS
    from ..training.shape import settable

    recipe = _within(TASKS[task](), pretrained)
    from_file = of_file(config, task) if config is not None else []
    model = settable(JOBS[task].Model.Config)
    return changed(recipe, [*from_file, *options, *(of_option(text, recipe, model) for text in sets)], model)


def _pretrained(name: str | None) -> Path | None:
    """The folder of a trained model; or of one that ships with Regard, by its name."""
    from ..models import folder, names

    if name is None:
        return None
    return folder(name) if name in names() and not Path(name).is_dir() else Path(name)


def _within(recipe: "Settings", pretrained: Path | None) -> "Settings":
    """The recipe for texts as long as the pretrained model reads; what is wrong with that folder is said later."""
    try:
        told = json.loads((pretrained / "config.json").read_text()) if pretrained is not None else {}
    except (OSError, ValueError):
        return recipe
    reads = told.get("reader", told).get("longest", recipe.data.longest)
    return replace(recipe, data=replace(recipe.data, longest=min(recipe.data.longest, reads)))


def _found_from_anywhere(settings: "Settings") -> "Settings":
    """The files by their whole paths, so that the settings that are kept can be used from any folder."""

    def whole(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(Path(path).absolute()) if Path(path).exists() else path for path in paths)

    held_out = settings.data.held_out
    held_out = held_out if isinstance(held_out, float) else whole(held_out)
    (tokenizer,) = whole((settings.tokenizer.path,)) if settings.tokenizer.path else ("",)
    return replace(
        settings, data=replace(settings.data, paths=whole(settings.data.paths), held_out=held_out),
        tokenizer=replace(settings.tokenizer, path=tokenizer),
    )  # fmt: skip
