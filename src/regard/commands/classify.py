"""`regard classify`: a label for each text."""

from typing import Any

from .app import app
from .asking import Wanted, ask, loaded, one_line
from .inputs import texts_of
from .options import LinesFile, ModelFolder, ResultJson, SaveFile, Shown, Texts

CLASSIFY = 'regard classify "A film to remember" --model runs/films'


@app.command()
def classify(
    texts: Texts = None, *, model: ModelFolder, file: LinesFile = None, as_json: ResultJson = False,
    see: Shown = False, save: SaveFile = None,
) -> None:  # fmt: skip
    """Give each text a label, with its probability.

    regard classify "A film to remember" "Two lost hours" --model runs/films
    """
    wanted = Wanted(as_json, see, save)
    given = wanted.texts(texts_of(texts, file, example=CLASSIFY))
    predictor = loaded(model, "regard.Classifier")
    ask(given, predictor, _line, wanted, look=lambda text, _: predictor.look(text), name=predictor.name)


def _line(result: Any) -> str:
    return f"{one_line(result.label)}\t{result.probability:.1%}"
