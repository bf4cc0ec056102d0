"""`regard translate` and `regard summarise`: texts into other texts, by a model that was trained for it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import OptionError
from .app import app
from .asking import Wanted, ask, loaded, one_line
from .inputs import texts_of
from .options import LinesFile, Longest, ModelFolder, ResultJson, SaveFile, Shown, Texts

TRANSLATE = 'regard translate "Good morning" --model runs/en-zh'
SUMMARISE = "regard summarise --file articles.txt --model runs/short"

Beam = Annotated[int, typer.Option(metavar="N", help="Beginnings kept at once; 1: the likeliest token each time.")]
Quick = Annotated[bool, typer.Option("--int8", help="Weights of 8 bits: several times as fast on a CPU.")]
Best = Annotated[int, typer.Option(metavar="N", help="How many for each text, the best first.")]


@app.command()
def translate(
    texts: Texts = None, *, model: ModelFolder, file: LinesFile = None, beam: Beam = 4, best: Best = 1,
    longest: Longest = None, quick: Quick = False, as_json: ResultJson = False, see: Shown = False,
    save: SaveFile = None,
) -> None:  # fmt: skip
    """Translate texts with a model of your own.

    regard translate "Good morning" --model runs/en-zh
    """
    _write(texts, file, model, quick, Wanted(as_json, see, save), TRANSLATE, width=beam, n_best=best, longest=longest)


@app.command()
def summarise(
    texts: Texts = None, *, model: ModelFolder, file: LinesFile = None, beam: Beam = 4, best: Best = 1,
    longest: Longest = None, quick: Quick = False, as_json: ResultJson = False, see: Shown = False,
    save: SaveFile = None,
) -> None:  # fmt: skip
    """Make long texts short with a model of your own.

    regard summarise --file articles.txt --model runs/short
    """
    _write(texts, file, model, quick, Wanted(as_json, see, save), SUMMARISE, width=beam, n_best=best, longest=longest)


def _write(  # noqa: PLR0917
    texts: list[str] | None, file: Path | None, model: str, quick: bool, wanted: Wanted, example: str, **options: Any
) -> None:
    if options["n_best"] > options["width"]:
        raise OptionError(
            f"--best is {options['n_best']} and --beam is {options['width']}; a beam finds at most as many texts as it "
            f"is wide: give --beam {options['n_best']} too."
        )
    given = wanted.texts(texts_of(texts, file, example=example))
    predictor = loaded(model, "regard.Translator")
    predictor = predictor.quick() if quick else predictor
    ask(
        given, lambda some: predictor(some, **options), _line, wanted, name=predictor.name,
        look=lambda text, result: predictor.look(text, result.text),
    )  # fmt: skip


def _line(result: Any) -> str:
    """The text, and below it the next best with their scores."""
    others = [f"  {other.score:.2f}  {one_line(other.text)}" for other in result.alternatives]
    return "\n".join([one_line(result.text), *others])
