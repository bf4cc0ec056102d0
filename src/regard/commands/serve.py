"""`regard serve`: a record of any length, or a model as it reads what you type, in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from .app import app
from .see import look

SERVED = "The cat sat on the mat"  # what a model that is served has read before anybody types


@app.command()
def serve(
    what: Annotated[
        str,
        typer.Argument(metavar="[FILE or MODEL]", help="A record that was saved, or a model that reads what you type."),
    ] = "encoder",
    *,
    port: Annotated[
        int | None,
        typer.Option(metavar="N", help="Where it listens; 0: any that is free.", show_default="8787, or the next free"),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address, open nothing.")] = False,
) -> None:  # fmt: skip
    """Look at a record of any length, or at a model as it reads what you type, in the browser.

    regard serve run.regard
    """
    from ..view.serve import require_port, server_of
    from ..view.serve import serve as answer

    require_port(port)  # before a model is loaded
    if Path(what).is_file() or (what.endswith(".regard") and not Path(what).is_dir()):
        from ..record.file import open as open_record

        server = server_of(open_record(what), title=Path(what).name, port=port)
    else:
        subject, seen = look(what, SERVED)
        server = server_of(
            seen.record, title=subject.name, port=port,
            reads=lambda text, pair, generate: subject.look(text, pair=pair, generate=generate).record,
        )  # fmt: skip
    answer(server, browser=not no_browser)
