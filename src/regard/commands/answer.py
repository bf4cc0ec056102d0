"""`regard answer`: the part of a text that answers a question."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import OptionError
from .app import app
from .asking import Wanted, ask, loaded, one_line
from .inputs import given, require_utf8, texts_of
from .options import ModelFolder, ResultJson, SaveFile, Shown

ANSWER = 'regard answer "Who sat?" --context "The cat sat." --model runs/answers'


@app.command()
def answer(
    questions: Annotated[
        list[str] | None,
        typer.Argument(help='Questions, each in quotes; "-" or nothing reads standard input, one a line.'),
    ] = None,
    *,
    model: ModelFolder,
    context: Annotated[str | None, typer.Option(metavar="TEXT", help="The text that has the answers.")] = None,
    file: Annotated[Path | None, typer.Option(metavar="FILE", help="Read that text from a file.")] = None,
    as_json: ResultJson = False, see: Shown = False, save: SaveFile = None,
) -> None:  # fmt: skip
    """Find the answers to questions in a text of any length.

    regard answer "Who sat?" --context "The cat sat." --model runs/answers
    """
    text = _context(context, file)
    wanted = Wanted(as_json, see, save)
    asked = wanted.texts(texts_of(questions, None, example=ANSWER))
    predictor = loaded(model, "regard.Answerer")
    ask(
        asked, lambda some: predictor([(question, text) for question in some]), _line, wanted, name=predictor.name,
        look=lambda question, _: predictor.look(question, text),
    )  # fmt: skip


def _context(context: str | None, file: Path | None) -> str:
    if (context is None) == (file is None):
        raise OptionError(f"give the text that has the answers, as --context or as --file: {ANSWER}")
    if context is None:
        return given(None, file, example=ANSWER)
    require_utf8(context)
    if not context.strip():
        raise OptionError("--context has no words; it is the text that has the answers.")
    return context


def _line(result: Any) -> str:
    return f"{one_line(result.text)}\t{result.probability:.1%}" if result.text else "(the text does not say)"
