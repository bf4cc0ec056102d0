"""The commands; the one place where errors become lines on the terminal."""

# What a command needs is imported inside it, so that `regard --help` is there at once.

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from . import __version__
from .errors import FileError, OptionError, RegardError

# Click's own class, which Typer carries under different names from version to version.
UsageError: Any = typer.BadParameter.__bases__[0]

EXPLAIN = 'regard explain "我 喜欢 学习 AI 技术"'
SEE = 'regard see "The cat sat on the mat"'
HEADS = 'regard heads "The cat sat on the mat"'
SERVED = "The cat sat on the mat"  # what a model that is served has read before anybody types
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
    except MemoryError:
        return _complain("out of memory; give a shorter text, or a smaller model.", 1)
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

    words = split(_text(text, example=EXPLAIN))
    if not words:
        raise OptionError(f"the text has no words; give some, as in: {EXPLAIN}")
    table = draw(words, DRAWN_WIDTH, seed) if vectors is None else load(vectors, words)
    steps = work_out(words, table, mask=mask.value, heads=heads, d_k=d_k, seed=seed)
    if as_json:
        print(json.dumps(steps.numbers(), allow_nan=False))
    else:
        _print_steps(steps, "" if vectors is None else str(vectors))


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


@app.command()
def see(
    text: Text_ = None, *, model: ModelName = "encoder", file: TextFile = None, layer: LayerNumber = None,
    head: HeadNumber = None, words: Words = None, pair: Pair = None,
    generate: Annotated[int, typer.Option(metavar="N", help="Let the model write N tokens, and see those too.")] = 0,
    save: SaveFile = None, page: PageFile = None, plot: PlotFile = None, as_json: Json = False,
) -> None:  # fmt: skip
    """See what each token of a text looks at, in a model as it runs.

    regard see "The cat sat on the mat" --model minilm --layer 3 --head 5 --plot cat.png
    """
    if generate < 0:
        raise OptionError(f"--generate is {generate}; it is a number of tokens to write.")
    if pair is not None and not pair.strip():
        raise OptionError("--pair has no words; it is a second text.")
    files = _Files(plot, save, page)
    files.require_places()
    subject, seen = _look(model, _given(text, file, example=SEE), pair=pair, generate=generate)
    _show(
        seen.record, model=subject.name, wrote=seen.wrote, layer=layer, head=head, words=words, pair=pair is not None,
        files=files, as_json=as_json,
    )  # fmt: skip


@app.command("open")
def open_(
    file: Annotated[Path, typer.Argument(help="A record that was saved.", show_default=False)], *,
    layer: LayerNumber = None, head: HeadNumber = None, words: Words = None, page: PageFile = None,
    plot: PlotFile = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Look at a record that was saved, of any length.

    regard open run.regard --layer 3 --head 5
    """
    from .record.file import open as open_record

    files = _Files(plot, page=page)
    files.require_places()
    record = open_record(file)
    model = record.model or str(file)
    _show(record, model=model, layer=layer, head=head, words=words, files=files, as_json=as_json)


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
    from .view.serve import require_port, server_of
    from .view.serve import serve as answer

    require_port(port)  # before a model is loaded
    if Path(what).is_file() or (what.endswith(".regard") and not Path(what).is_dir()):
        from .record.file import open as open_record

        server = server_of(open_record(what), title=Path(what).name, port=port)
    else:
        subject, seen = _look(what, SERVED)
        server = server_of(
            seen.record, title=subject.name, port=port,
            reads=lambda text, pair, generate: subject.look(text, pair=pair, generate=generate).record,
        )  # fmt: skip
    answer(server, browser=not no_browser)


@app.command()
def heads(
    text: Text_ = None, *, model: ModelName = "encoder", file: TextFile = None,
    everything: Annotated[bool, typer.Option("--all", help="A row for every head.")] = False,
    sort: Annotated[str | None, typer.Option(metavar="MEASURE", help="A row for every head, the best first.")] = None,
    top: Annotated[int, typer.Option(metavar="N", help="How many rows.", show_default="all")] = 0,
    plot: PlotFile = None, as_json: Json = False,
) -> None:  # fmt: skip
    """What the heads of a model do with a text: entropy, distance, previous token, induction, sink and more.

    regard heads --model smollm2 --file story.txt --sort induction --top 10
    """
    from .record.measures import head_table
    from .view import table

    files = _Files(plot)
    files.require_places()
    subject, seen = _look(model, _given(text, file, example=HEADS))
    with _waiting("measuring the heads"):
        found = head_table(seen.record)
    chosen = {"model": subject.name, "sort": sort, "top": top}
    drawing = table.render(found, **chosen) if everything or sort or top else table.render_best(found, model=model)
    told = table.as_json(found, **chosen) if as_json else {}
    if plot is not None:
        from .view.sheet import plot_spread

        with _waiting(f"drawing {plot}"):
            plot_spread(seen.record, plot, title=subject.name)
    if as_json:
        print(json.dumps(told, allow_nan=False))
    else:
        _print(drawing)
        files.tell()


def _look(model: str, text: str, **options: Any) -> Any:
    """A model and what it made of a text."""
    from .see import is_here, load

    watched = sys.stderr is not None and sys.stderr.isatty()
    if is_here(model) or not watched:
        os.environ.setdefault("TQDM_DISABLE", "1")  # what is fetched has bars of its own; all else has ours
    with _waiting(f"loading {model}") if is_here(model) else nullcontext():
        subject = load(model)
    with _waiting(f"{model} reads"):
        return subject, subject.look(text, **options)


def _show(
    record: Any, *, model: str, wrote: str | None = None, layer: int | None, head: int | None,
    words: bool | None, pair: bool = False, files: "_Files", as_json: bool,
) -> None:  # fmt: skip
    """What was chosen of a record: kept, drawn, and printed."""
    from .view import seen

    plot, save, page = files

    joined = seen.in_bytes(record) if words is None else words
    choice = seen.choose(record, layer, head, words=joined, pair=pair)
    if save is not None:
        with _waiting(f"writing {save}"):
            record.save(save)
    if plot is not None:
        from .view import sheet

        with _waiting(f"drawing {plot}"):
            if head is not None or pair:
                sheet.plot_choice(choice, plot, title=model)
            else:
                sheet.plot(record, plot, layer=layer, words=joined, title=model)
    if page is not None:
        with _progressing(f"writing {page}") as progress:
            record.page(page, layers=layer, heads=head, title=model, progress=progress)
    if as_json:
        said = layer is not None or words or pair
        print(json.dumps(seen.as_json(record, choice if said else None, model=model, wrote=wrote), allow_nan=False))
    else:
        _print(seen.render(record, choice, model=model, wrote=wrote))
        files.tell()


class _Files(NamedTuple):
    """The files that a command writes besides what it prints."""

    plot: Path | None = None
    save: Path | None = None
    page: Path | None = None

    def require_places(self) -> None:
        """Say what is wrong with the name of a file before a model is loaded for it."""
        if self.plot is not None:
            from .view.picture import KINDS
            from .view.plot import heat_map  # noqa: F401  says what is missing, where plots cannot be drawn

            if self.plot.suffix.removeprefix(".").lower() not in KINDS:
                raise OptionError(f"{self.plot} says no kind of picture; let it end in .{', .'.join(KINDS)}.")
        for file in filter(None, self):
            if file.is_dir():
                raise FileError(f"cannot write {file}: it is a folder; name a file.")
            if not file.absolute().parent.is_dir():
                raise FileError(f"cannot write {file}: there is no folder {file.absolute().parent}; make it first.")

    def tell(self) -> None:
        """Which of them were written."""
        from .view.labels import printable

        says = ("drawn: {}", "kept: {}, for regard open", "page: {}, open it in a browser")
        for file, words in zip(self, says, strict=True):
            if file is not None:
                print(words.format(printable(str(file))))


@contextmanager
def _waiting(what: str) -> Iterator[None]:
    """Something that may take more than a second: a sign of life, where somebody watches."""
    from rich.console import Console

    from .view.labels import printable

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{printable(what)} …"):
        yield


@contextmanager
def _progressing(what: str) -> Iterator[Callable[[float], None] | None]:
    """Something that may take a minute: a bar, where somebody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from .view.labels import printable

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    said = TextColumn(f"{printable(what)} …", markup=False)
    columns = said, BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda done: bar.update(task, completed=done)


def _print(drawing: Any) -> None:
    from rich.console import Console

    Console(highlight=False, markup=False, emoji=False).print(drawing)


def _print_steps(steps: Any, source: str) -> None:
    from .view.steps import render

    _print(render(steps, source))


def _text(parts: list[str] | None, file: Path | None = None, *, example: str) -> str:
    """The text of the arguments, of a file, or of standard input where there are none or "-"."""
    if file is not None:
        if parts:
            raise OptionError(f"there is a text and a file, {file}; give one of them.")
        return _read(file)
    if parts and parts != ["-"]:
        text = " ".join(parts)
        if any("\ud800" <= sign <= "\udfff" for sign in text):
            raise OptionError("the text is not UTF-8.")
        return text
    if sys.stdin is None or (not parts and sys.stdin.isatty()):
        raise OptionError(f"there is no text; give one, as in: {example}")
    return _decoded(sys.stdin.buffer.read(), "standard input")


def _given(parts: list[str] | None, file: Path | None, *, example: str) -> str:
    """A text that has something in it."""
    text = _text(parts, file, example=example)
    if not text.strip():
        raise OptionError(f"the text has no words; give some, as in: {example}")
    return text


def _read(file: Path) -> str:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {file}: {error.strerror or error}.") from None
    return _decoded(content, str(file))


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{name} is not UTF-8 text: byte {error.start} is 0x{content[error.start]:02x}.") from None
