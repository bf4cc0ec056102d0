"""The command `regard`: how a call becomes a command, and the one place where errors become lines on the terminal."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from .. import __version__
from ..errors import OptionError, RegardError

# Click's own class, which Typer carries under different names from version to version.
UsageError: Any = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="regard", add_completion=False, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave with its exit code: 2 for a call that makes no sense, 1 for anything else that failed."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal without Unicode gets escapes, not a traceback
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = app(arguments, prog_name="regard", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except UsageError as error:
        return _complain(_usage(error), 2)
    except RegardError as error:
        return _complain(str(error), 2 if isinstance(error, OptionError) else 1)
    except typer.Abort:
        return 130
    except MemoryError:
        return _complain("out of memory; give a shorter text, or a smaller model.", 1)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would try once more on its way out
        seen_enough = isinstance(error, BrokenPipeError)
        return 1 if seen_enough else _complain(f"cannot write the output: {error.strerror}.", 1)
    return code if isinstance(code, int) else 0


def _usage(error: Any) -> str:
    """What is wrong with a call, in one line, and whose help says more."""
    said = " ".join(error.format_message().split()).rstrip(".").replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    end = "" if said.endswith("?") else "."
    return f"{said}{end} Try: {context.command_path if context else 'regard'} --help"


def _complain(message: str, code: int) -> int:
    from ..view.labels import printable

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
