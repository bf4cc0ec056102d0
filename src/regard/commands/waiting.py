"""Signs of life on standard error, where somebody watches: a status line, and a bar."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Something that may take more than a second: a sign of life, where somebody watches."""
    from rich.console import Console

    from ..view.labels import printable

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{printable(what)} …"):
        yield


@contextmanager
def progressing(what: str) -> Iterator[Callable[[float], None] | None]:
    """Something that may take a minute: a bar, where somebody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from ..view.labels import printable

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    said = TextColumn(f"{printable(what)} …", markup=False)
    columns = said, BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda done: bar.update(task, completed=done)
