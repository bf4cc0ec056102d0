"""`regard generate`: how a text goes on, as it is written."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from .app import app
from .asking import Wanted, ask, loaded, tell_cut
from .inputs import texts_of
from .options import LinesFile, ModelFolder, ResultJson, SaveFile, Shown, Texts, require_within

GENERATE = 'regard generate "Once upon a time" --model runs/stories'
SEEDS = 2**63 - 1  # the largest of them


@app.command()
def generate(
    texts: Texts = None, *, model: ModelFolder, file: LinesFile = None,
    longest: Annotated[int, typer.Option(metavar="N", help="Tokens to write at most.")] = 100,
    temperature: Annotated[float, typer.Option(metavar="T", help="Lower: surer, higher: bolder; 0: likeliest.")] = 0.8,
    top_k: Annotated[
        int | None, typer.Option(metavar="N", help="Draw from so many tokens.", show_default="all")
    ] = None,
    top_p: Annotated[float, typer.Option(metavar="P", help="Draw from the likeliest of this share together.")] = 1.0,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="The same text each time.", show_default="another each time")
    ] = None,
    as_json: ResultJson = False, see: Shown = False, save: SaveFile = None,
) -> None:  # fmt: skip
    """Let a language model go on with a text, or write one from nothing: "".

    regard generate "Once upon a time" --model runs/stories --temperature 0.7
    """
    from secrets import randbits

    require_within("--longest", longest, 1)
    require_within("--seed", seed, 0, SEEDS)
    wanted = Wanted(as_json, see, save)
    given = wanted.texts(texts_of(texts, file, example=GENERATE, blank=True))
    sampling = _sampling(temperature, top_k, top_p)
    predictor = loaded(model, "regard.LanguageModel")
    options = {"longest": longest, "sampling": sampling, "seed": randbits(32) if seed is None else seed}
    if as_json:
        ask(
            given, lambda some: predictor(some, **options), str, wanted, name=predictor.name, blank=True,
            look=lambda prompt, result: predictor.look(prompt, result.text),
        )  # fmt: skip
        return
    cut = 0
    for prompt in given:
        cut += predictor.cuts(prompt, longest=longest)
        written = _streamed(prompt, predictor.stream(prompt, **options))
        if wanted.looks:
            wanted.show(predictor.look(prompt, written), predictor.name)
    tell_cut(cut, predictor.name)


def _sampling(temperature: float, top_k: int | None, top_p: float) -> Any:
    from ..model.decoding import Sampling

    return None if temperature == 0 else Sampling(temperature=temperature, top_k=top_k, top_p=top_p)


def _streamed(prompt: str, pieces: Iterator[str]) -> str:
    """The prompt and what follows it, printed as it comes; what follows is given back."""
    print(_shown(prompt), end="", flush=True)
    written = []
    for piece in pieces:
        written.append(piece)
        print(_shown(piece), end="", flush=True)
    print()
    return "".join(written)


def _shown(text: str) -> str:
    """As it is, lines and all; on a terminal with nothing in it that acts there."""
    from ..view.labels import printable

    return "\n".join(map(printable, text.split("\n"))) if sys.stdout.isatty() else text
