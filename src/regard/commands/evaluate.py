"""`regard evaluate`: how good a trained model is on text that it has not seen."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import typer

from ..errors import FileError
from .app import app
from .options import ModelFolder
from .showing import printed
from .waiting import waiting


@app.command()
def evaluate(
    data: Annotated[list[str], typer.Argument(metavar="FILE", help="Text to measure by.", show_default=False)], *,
    model: ModelFolder,
    fields: Annotated[
        str | None, typer.Option(metavar="FIELD=COLUMN,…", help="Which columns are which: source=en,target=zh.",
                                 show_default="as it was trained")
    ] = None,
    form: Annotated[
        str, typer.Option(metavar="FORM", help="How the files are written: tsv, csv, jsonl, text, parallel, questions.",
                          show_default="as it was trained, or by their names")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object instead of lines.")] = False,
) -> None:  # fmt: skip
    """Measure a trained model: BLEU, chrF, ROUGE, accuracy, F1, exact match or perplexity, by what it is.

    regard evaluate test.tsv --model runs/en-zh
    """
    from ..training.evaluation import evaluate as measure
    from ..training.settings import DataSettings
    from ..view.labels import printable

    run = _Run.of(Path(model))
    said: Any = {name: value for name, value in (("fields", fields), ("form", form)) if value}
    settings = DataSettings(paths=tuple(data), **{**run.data, **said})
    with waiting(f"{model} is measured"):
        found = measure(model, settings, trained_for=run.task)
    if as_json:
        print(json.dumps(found.as_json(), ensure_ascii=False))
        return
    lines = [f"{printable(found.model)}: {found.examples:,} examples"]
    if found.skipped:
        lines.append(f"{found.skipped:,} malformed ones were skipped")
    lines += [f"  {printable(name)}  {value:.4g}" for name, value in found.numbers.items()]
    lines += [f"  {name}: {signature}" for name, signature in found.signatures.items()]
    printed("\n".join(lines))


class _Run(NamedTuple):
    """What a training left beside its model: the task, and how its text was read."""

    task: str = ""
    data: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def of(cls, folder: Path) -> "_Run":
        """That of a folder; nothing, where its model comes from elsewhere."""
        from ..training.settings import FILE

        try:
            told = tomllib.loads((folder / FILE).read_bytes().decode())
            return cls(told["task"], {name: told["data"][name] for name in ("fields", "form") if name in told["data"]})
        except (FileNotFoundError, NotADirectoryError):
            return cls()
        except OSError as error:
            raise FileError(f"cannot read {folder / FILE}: {error.strerror or error}.") from None
        except (ValueError, KeyError, TypeError):
            raise FileError(f"{folder / FILE} is damaged: it does not say how the model was trained.") from None
