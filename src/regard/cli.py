"""The commands; the one place where errors become lines on the terminal."""

# What a command needs is imported inside it, so that `regard --help` is there at once.

import json
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from . import __version__
from .errors import FileError, OptionError, RegardError

# Click's own class, which Typer carries under different names from version to version.
UsageError: Any = typer.BadParameter.__bases__[0]

DRAWN_WIDTH = 4  # numbers of a word's vector that no file gives

app = typer.Typer(
    name="regard", add_completion=False, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


class MaskName(StrEnum):
    """The masks of `regard explain`."""

    none = "none"
    causal = "causal"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave with its exit code: 2 for a call that makes no sense, 1 for anything else that failed."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal without Unicode gets escapes, not a traceback
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = app(arguments, standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except UsageError as error:
        return _complain(f"{error.format_message().rstrip('.')}. Try: regard --help", 2)
    except RegardError as error:
        return _complain(str(error), 2 if isinstance(error, OptionError) else 1)
    except typer.Abort:
        return 130
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would try once more on its way out
        seen_enough = isinstance(error, BrokenPipeError)
        return 1 if seen_enough else _complain(f"cannot write the output: {error.strerror}.", 1)
    return code if isinstance(code, int) else 0


def _complain(message: str, code: int) -> int:
    from .view.labels import printable

    print(f"regard: {printable(message)}", file=sys.stderr)
    return code


@app.callback(invoke_without_command=True)
def regard(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """Attention: computed from its formula, built into Transformers, and seen."""
    if version:
        typer.echo(f"regard {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


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
    from .explain import explain as work_out
    from .text.vectors import draw, load
    from .text.words import split

    words = split(_text(text))
    if not words:
        raise OptionError('the text has no words; give some, as in: regard explain "我 喜欢 学习 AI 技术"')
    table = draw(words, DRAWN_WIDTH, seed) if vectors is None else load(vectors, words)
    steps = work_out(words, table, mask=mask.value, heads=heads, d_k=d_k, seed=seed)
    if as_json:
        print(json.dumps(steps.numbers(), allow_nan=False))
    else:
        _print_steps(steps, "" if vectors is None else str(vectors))


def _print_steps(steps: Any, source: str) -> None:
    from rich.console import Console

    from .view.steps import render

    Console(highlight=False, markup=False, emoji=False).print(render(steps, source))


def _text(parts: list[str] | None) -> str:
    """The text of the arguments, or of standard input where there are none or "-"."""
    if parts and parts != ["-"]:
        text = " ".join(parts)
        if any("\ud800" <= sign <= "\udfff" for sign in text):
            raise OptionError("the text is not UTF-8.")
        return text
    if sys.stdin is None or (not parts and sys.stdin.isatty()):
        raise OptionError('there is no text; give one, as in: regard explain "我 喜欢 学习 AI 技术"')
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(
            f"standard input is not UTF-8 text: byte {error.start} is 0x{error.object[error.start]:02x}."
        ) from None
