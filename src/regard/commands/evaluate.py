"""`regard evaluate`: how good a trained model is on text that it has not seen."""

import json
from typing import Annotated

import typer

from .app import app
from .options import ModelFolder
from .showing import printed
from .waiting import waiting


@app.command()
def evaluate(
    data: Annotated[list[str], typer.Argument(metavar="FILE", help="Text to measure by.", show_default=False)], *,
    model: ModelFolder,
    fields: Annotated[
        str | None, typer.Option(metavar="FIELD=COLUMN,…", help="Which columns are which: source=en,target=zh.")
    ] = None,
    form: Annotated[
        str, typer.Option(metavar="FORM", help="How the files are written: tsv, csv, jsonl, text, parallel, questions.",
                          show_default="by their names")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object instead of lines.")] = False,
) -> None:  # fmt: skip
    """Measure a trained model: BLEU, chrF, ROUGE, accuracy, F1, exact match or perplexity, by what it is.

    regard evaluate test.tsv --model runs/en-zh --fields source=en,target=zh
    """
    from ..training.evaluation import evaluate as measure
    from ..training.settings import DataSettings
    from ..view.labels import printable

    settings = DataSettings(paths=tuple(data), fields=fields or {}, form=form)  # type: ignore[arg-type]  # it checks
    with waiting(f"{model} is measured"):
        found = measure(model, settings)
    if as_json:
        print(json.dumps(found.as_json(), ensure_ascii=False))
        return
    lines = [f"{printable(found.model)}: {found.examples:,} examples"]
    if found.skipped:
        lines.append(f"{found.skipped:,} malformed ones were skipped")
    lines += [f"  {printable(name)}  {value:.4g}" for name, value in found.numbers.items()]
    lines += [f"  {name}: {signature}" for name, signature in found.signatures.items()]
    printed("\n".join(lines))
