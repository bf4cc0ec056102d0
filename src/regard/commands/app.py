"""The command `regard`: how a call becomes a command, and the one place where errors become lines on the terminal."""

import errno
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from .. import __version__
from ..errors import OptionError, RegardError

DISK = (errno.ENOSPC, errno.EIO)  # a disk that is full, or broken

# Click's own class, which Typer carries under different names from version to version.
UsageError: Any = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="regard", add_completion=False, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave with its exit code: 2 for a call that makes no sense, 1 for anything else that failed."""
    _open_closed()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal without Unicode gets escapes, not a traceback
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = app(arguments, prog_name="regard", standalone_mode=False)
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
        return _broken(error)
    return code if isinstance(code, int) else 0


def _open_closed() -> None:
    """A stream that the caller closed, as in `regard … >&-`, is one that nobody reads."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  it is open to the end
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _broken(error: OSError) -> int:
    """What is said where the output cannot be written, and of a file that nobody thought of."""
    seen_enough = isinstance(error, BrokenPipeError)
    if not seen_enough and (error.filename is not None or error.errno not in DISK):
        named = error.filename is not None and error.strerror
        return _complain(f"{error.filename}: {error.strerror}." if named else str(error), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would try once more on its way out
    return 1 if seen_enough else _complain(f"cannot write the output: {error.strerror}.", 1)


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
