"""`regard see`, `regard heads`, `regard open`: the attention of a model as it runs, or as it was kept."""

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import OptionError
from .app import app
from .inputs import given
from .options import (
    HeadNumber,
    Json,
    LayerNumber,
    ModelName,
    PageFile,
    Pair,
    PlotFile,
    SaveFile,
    Text_,
    TextFile,
    Words,
)
from .showing import Files, printed, show
from .waiting import waiting

SEE = 'regard see "The cat sat on the mat"'
HEADS = 'regard heads "The cat sat on the mat"'


@app.command()
def see(
    text: Text_ = None, *, model: ModelName = "encoder", file: TextFile = None, layer: LayerNumber = None,
    head: HeadNumber = None, words: Words = None, pair: Pair = None,
    generate: Annotated[int, typer.Option(metavar="N", help="Let the model write N tokens, and see those too.")] = 0,
    save: SaveFile = None, page: PageFile = None, plot: PlotFile = None, as_json: Json = False,
) -> None:  # fmt: skip
    """See what each token of a text looks at, in a model as it runs.

    regard see "The cat sat on the mat" --layer 3 --head 5 --plot cat.png
    """
    if generate < 0:
        raise OptionError(f"--generate is {generate}; it is a number of tokens to write.")
    if pair is not None and not pair.strip():
        raise OptionError("--pair has no words; it is a second text.")
    files = Files(plot, save, page)
    files.require_places()
    subject, seen = look(model, given(text, file, example=SEE), pair=pair, generate=generate)
    show(
        seen.record, model=subject.name, wrote=seen.wrote, layer=layer, head=head, words=words, pair=pair is not None,
        files=files, as_json=as_json,
    )  # fmt: skip


@app.command("open")
def open_(
    file: Annotated[Path, typer.Argument(help="A record that was saved.", show_default=False)], *,
    layer: LayerNumber = None, head: HeadNumber = None, words: Words = None, page: PageFile = None,
    plot: PlotFile = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Look at a record that was saved, of any length.

    regard open run.regard --layer 3 --head 5
    """
    from ..record.file import open as open_record

    files = Files(plot, page=page)
    files.require_places()
    record = open_record(file)
    model = record.model or str(file)
    show(record, model=model, layer=layer, head=head, words=words, files=files, as_json=as_json)


@app.command()
def heads(
    text: Text_ = None, *, model: ModelName = "encoder", file: TextFile = None,
    everything: Annotated[bool, typer.Option("--all", help="A row for every head.")] = False,
    sort: Annotated[str | None, typer.Option(metavar="MEASURE", help="A row for every head, the best first.")] = None,
    top: Annotated[int, typer.Option(metavar="N", help="How many rows.", show_default="all")] = 0,
    plot: PlotFile = None, as_json: Json = False,
) -> None:  # fmt: skip
    """What the heads of a model do with a text: entropy, distance, previous token, induction, sink and more.

    regard heads --model smollm2 --file story.txt --sort induction --top 10
    """
    from ..record.measures import head_table
    from ..view import table

    files = Files(plot)
    files.require_places()
    subject, seen = look(model, given(text, file, example=HEADS))
    with waiting("measuring the heads"):
        found = head_table(seen.record)
    chosen = {"model": subject.name, "sort": sort, "top": top}
    drawing = table.render(found, **chosen) if everything or sort or top else table.render_best(found, model=model)
    told = table.as_json(found, **chosen) if as_json else {}
    if plot is not None:
        from ..view.sheet import plot_spread

        with waiting(f"drawing {plot}"):
            plot_spread(seen.record, plot, title=subject.name)
    if as_json:
        print(json.dumps(told, allow_nan=False))
    else:
        printed(drawing)
        files.tell()


def look(model: str, text: str, **options: Any) -> Any:
    """A model and what it made of a text."""
    from ..see import is_here, load

    watched = sys.stderr is not None and sys.stderr.isatty()
    if is_here(model) or not watched:
        os.environ.setdefault("TQDM_DISABLE", "1")  # what is fetched has bars of its own; all else has ours
    with waiting(f"loading {model}") if is_here(model) else nullcontext():
        subject = load(model)
    with waiting(f"{model} reads"):
        return subject, subject.look(text, **options)
