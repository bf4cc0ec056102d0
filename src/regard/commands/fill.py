"""`regard fill`: the words that fit where a text has [MASK]."""

from typing import Annotated, Any

import typer

from .app import app
from .asking import Wanted, ask, loaded, one_line
from .inputs import texts_of
from .options import LinesFile, ResultJson, SaveFile, Shown, Texts

FILL = 'regard fill "The cat [MASK] on the mat."'


@app.command()
def fill(
    texts: Texts = None, *,
    model: Annotated[
        str, typer.Option(metavar="FOLDER", help="encoder, which is built in, or what regard train wrote.")
    ] = "encoder",
    file: LinesFile = None,
    best: Annotated[int, typer.Option(metavar="N", help="Guesses for each gap; 1: the text alone.")] = 5,
    as_json: ResultJson = False, see: Shown = False, save: SaveFile = None,
) -> None:  # fmt: skip
    """Guess the words that fit where a text has [MASK].

    regard fill "The cat [MASK] on the mat."
    """
    wanted = Wanted(as_json, see, save)
    given = wanted.texts(texts_of(texts, file, example=FILL))
    predictor = loaded(model, "regard.TextEncoder")
    ask(
        given, lambda some: predictor(some, best=best), _line, wanted, look=lambda text, _: predictor.look(text),
        name=predictor.name,
    )  # fmt: skip


def _line(result: Any) -> str:
    """The text with the best guesses in it, and below it what else would fit into each gap."""
    gaps = [gap.guesses for gap in result.gaps if len(gap.guesses) > 1]
    told = ["   ".join(f"{one_line(guess.text.strip())} {guess.probability:.1%}" for guess in gap) for gap in gaps]
    return "\n".join([one_line(result.text), *(f"  {line}" for line in told)])
