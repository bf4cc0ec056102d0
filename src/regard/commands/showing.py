"""What was chosen of a record: kept, drawn and printed."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import FileError, OptionError
from .waiting import progressing, waiting


class Files(NamedTuple):
    """The files that a command writes besides what it prints."""

    plot: Path | None = None
    save: Path | None = None
    page: Path | None = None

    def require_places(self) -> None:
        """Say what is wrong with the name of a file before a model is loaded for it."""
        if self.plot is not None:
            from ..view.picture import KINDS
            from ..view.plot import heat_map  # noqa: F401  says what is missing, where plots cannot be drawn

            if self.plot.suffix.removeprefix(".").lower() not in KINDS:
                raise OptionError(f"{self.plot} says no kind of picture; let it end in .{', .'.join(KINDS)}.")
        for file in filter(None, self):
            if file.is_dir():
                raise FileError(f"cannot write {file}: it is a folder; name a file.")
            if not file.absolute().parent.is_dir():
                raise FileError(f"cannot write {file}: there is no folder {file.absolute().parent}; make it first.")

    def tell(self) -> None:
        """Which of them were written."""
        from ..view.labels import printable

        says = ("drawn: {}", "kept: {}, for regard open", "page: {}, open it in a browser")
        for file, words in zip(self, says, strict=True):
            if file is not None:
                print(words.format(printable(str(file))))


def show(
    record: Any, *, model: str, wrote: str | None = None, layer: int | None, head: int | None,
    words: bool | None, pair: bool = False, files: Files, as_json: bool, hint: str | None = None,
) -> None:  # fmt: skip
    """What was chosen of a record: kept, drawn, and printed. hint: how to see more, where no option here does."""
    from ..view import seen

    plot, save, page = files

    joined = seen.in_bytes(record) if words is None else words
    choice = seen.choose(record, layer, head, words=joined, pair=pair)
    if save is not None:
        with waiting(f"writing {save}"):
            record.save(save)
    if plot is not None:
        from ..view import sheet

        with waiting(f"drawing {plot}"):
            if head is not None or pair:
                sheet.plot_choice(choice, plot, title=model)
            else:
                sheet.plot(record, plot, layer=layer, words=joined, title=model)
    if page is not None:
        with progressing(f"writing {page}") as progress:
            record.page(page, layers=layer, heads=head, title=model, progress=progress)
    if as_json:
        said = layer is not None or words or pair
        print(json.dumps(seen.as_json(record, choice if said else None, model=model, wrote=wrote), allow_nan=False))
    else:
        printed(seen.render(record, choice, model=model, wrote=wrote, hint=hint))
        files.tell()


def printed(drawing: Any) -> None:
    """A drawing onto standard output, as it is: nothing in it is markup."""
    from rich.console import Console

    Console(highlight=False, markup=False, emoji=False).print(drawing)
