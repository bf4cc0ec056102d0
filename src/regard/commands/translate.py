"""`regard translate` and `regard summarise`: texts into other texts, by a model that was trained for it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import OptionError
from .app import app
from .asking import Wanted, ask, loaded, one_line
from .inputs import texts_of
from .options import LinesFile, Longest, ModelFolder, ResultJson, SaveFile, Shown, Texts, require_within

TRANSLATE = 'regard translate "Good morning" --model runs/en-zh'
SUMMARISE = "regard summarise --file articles.txt --model runs/short"

WIDEST = 64  # a beam that is wider finds nothing better, and needs much memory

Beam = Annotated[int, typer.Option(metavar="N", help="Beginnings kept at once; 1: the likeliest token each time.")]
Quick = Annotated[bool, typer.Option("--int8", help="Weights of 8 bits: several times as fast on a CPU.")]
Best = Annotated[int, typer.Option(metavar="N", help="How many for each text, the best first.")]
Align = Annotated[bool, typer.Option("--align", help="Also tell which word each word was looking at: 猫←cat.")]


@app.command()
def translate(
    texts: Texts = None, *, model: ModelFolder, file: LinesFile = None, beam: Beam = 4, best: Best = 1,
    longest: Longest = None, quick: Quick = False, align: Align = False, as_json: ResultJson = False,
    see: Shown = False, save: SaveFile = None,
) -> None:  # fmt: skip
    """Translate texts with a model of your own.

    regard translate "Good morning" --model runs/en-zh
    """
    wanted, found = Wanted(as_json, see, save), {"width": beam, "n_best": best, "longest": longest}
    _write(texts, file, model, quick, wanted, TRANSLATE, **found, align=align)


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
    require_within("--beam", options["width"], 1, WIDEST)
    require_within("--best", options["n_best"], 1, WIDEST)
    require_within("--longest", options["longest"], 1)
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
    """The text, below it what its words looked at, where that was asked, and the next best with their scores."""
    links = " ".join(f"{link.target}←{link.source}" for link in result.alignment or ())
    aligned = [] if result.alignment is None else [one_line(links)]
    others = [f"  {other.score:.2f}  {one_line(other.text)}" for other in result.alternatives]
    return "\n".join([one_line(result.text), *aligned, *others])
