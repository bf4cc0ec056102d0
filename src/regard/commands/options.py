"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import OptionError

Text_ = Annotated[
    list[str] | None,
    typer.Argument(help='The text, as in "The cat sat on the mat"; "-" or nothing reads standard input.'),
]
ModelName = Annotated[
    str, typer.Option("--model", metavar="NAME", help="encoder (built in), minilm, smollm2, a folder, or a hub name.")
]
TextFile = Annotated[Path | None, typer.Option("--file", metavar="FILE", help="Read the text from a file.")]
LayerNumber = Annotated[int | None, typer.Option("--layer", metavar="N", help="Which layer, counted from 0.")]
HeadNumber = Annotated[int | None, typer.Option("--head", metavar="N", help="Which head of it, counted from 0.")]
Words = Annotated[
    bool | None,
    typer.Option("--words/--tokens", help="Put pieces together to words, or not.", show_default="words for bytes"),
]
Pair = Annotated[
    str | None, typer.Option("--pair", metavar="TEXT", help="A second text: shown is how one looks at the other.")
]
PlotFile = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw it: a .png, .svg or .pdf.")]
PageFile = Annotated[
    Path | None, typer.Option("--page", metavar="FILE", help="Write a page for the browser: an .html of its own.")
]
SaveFile = Annotated[Path | None, typer.Option("--save", metavar="FILE", help="Keep the record, for regard open.")]
Json = Annotated[bool, typer.Option("--json", help="Numbers instead of a picture.")]

# Of the commands that use a model that was trained.
Texts = Annotated[
    list[str] | None,
    typer.Argument(help='Texts, each in quotes; "-" or nothing reads standard input, a text a line.'),
]
LinesFile = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="Read the texts from a file, one a line.")
]
ModelFolder = Annotated[str, typer.Option("--model", metavar="FOLDER", help="What regard train wrote.")]
ResultJson = Annotated[bool, typer.Option("--json", help="A JSON object for each text, a line each.")]
Shown = Annotated[bool, typer.Option("--see", help="Show the attention of what it did, of one text.")]
Longest = Annotated[
    int | None,
    typer.Option("--longest", metavar="N", help="Tokens to write at most.", show_default="by the length of the source"),
]


def require_within(option: str, value: int | None, least: int, most: int | None = None) -> None:
    """A number that makes sense, where one is given; what is wrong with it is said before the work."""
    if value is not None and (value < least or (most is not None and value > most)):
        wanted = f"{least} or more" if most is None else f"from {least} to {most}"
        raise OptionError(f"{option} is {value}; it must be {wanted}.")
