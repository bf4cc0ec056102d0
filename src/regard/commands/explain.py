"""`regard explain`: attention worked out for a sentence, step by step."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..errors import OptionError
from .app import app
from .inputs import text_of
from .showing import printed

EXPLAIN = 'regard explain "我 喜欢 学习 AI 技术"'
DRAWN_WIDTH = 4  # numbers of a word's vector that no file gives


class MaskName(StrEnum):
    """The masks of `regard explain`."""

    none = "none"
    causal = "causal"


@app.command()
def explain(
    text: Annotated[
        list[str] | None,
        typer.Argument(help='The words, as in "我 喜欢 学习 AI 技术"; "-" or nothing reads standard input.'),
    ] = None,
    *,
    mask: Annotated[MaskName, typer.Option(help="causal: no word looks at a later one.")] = MaskName.none,
    heads: Annotated[int, typer.Option(metavar="N", help="How many heads.")] = 1,
    d_k: Annotated[
        int | None,
        typer.Option("--d-k", metavar="N", help="Width of a query and a key.", show_default="vector width / heads"),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="What the matrices, and vectors without a file, are drawn from.")
    ] = 0,
    vectors: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help='Word vectors: lines of "word 0.1 -0.2 …", or JSON {"word": [0.1, -0.2]}.'),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Every step as numbers; a masked score (−inf) is null.")
    ] = False,
) -> None:
    """Work attention out for a sentence, step by step, with all the numbers.

    Words are what stands between spaces; a Chinese or Japanese text without spaces is taken character by character.
    """
    from ..explain import explain as work_out
    from ..text.vectors import draw, load
    from ..text.words import split
    from ..view.steps import render

    words = split(text_of(text, example=EXPLAIN))
    if not words:
        raise OptionError(f"the text has no words; give some, as in: {EXPLAIN}")
    table = draw(words, DRAWN_WIDTH, seed) if vectors is None else load(vectors, words)
    steps = work_out(words, table, mask=mask.value, heads=heads, d_k=d_k, seed=seed)
    if as_json:
        print(json.dumps(steps.numbers(), allow_nan=False))
    else:
        printed(render(steps, "" if vectors is None else str(vectors)))
