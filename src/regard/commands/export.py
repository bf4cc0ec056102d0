"""`regard export`: a trained model in the files of another engine."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .app import app
from .asking import loaded
from .options import ModelFolder
from .waiting import waiting


class Engine(StrEnum):
    """Those that there is an export to."""

    ctranslate2 = "ctranslate2"


@app.command()
def export(
    *, model: ModelFolder,
    to: Annotated[Engine, typer.Option(help="The engine.")] = Engine.ctranslate2,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder.", show_default=False)],
    quantisation: Annotated[str, typer.Option(metavar="KIND", help="float32, int8, int16, float16 …")] = "float32",
) -> None:  # fmt: skip
    """Write a translator for CTranslate2, an engine in C++: the same weights, and its tokenizer beside them.

    regard export --model runs/en-zh --out en-zh-ct2 --quantisation int8
    """
    from ..model.export.ctranslate2 import export as write
    from ..text.bpe import TARGET, Tokenizer
    from ..view.labels import printable

    def pieces(tokenizer: Tokenizer) -> list[str]:
        return [tokenizer.piece(number) for number in range(tokenizer.size)]

    predictor = loaded(model, "regard.Translator")
    two = predictor.model.config.target_vocabulary is not None
    with waiting(f"writing {out}"):
        write(
            predictor.model, out, pieces(predictor.tokenizer), pieces(predictor.target_tokenizer) if two else None,
            quantisation=quantisation,
        )  # fmt: skip
    predictor.tokenizer.save(out)
    if two:
        predictor.target_tokenizer.save(out, TARGET)
    print(f"written: {printable(str(out))}, for {to.value}")
