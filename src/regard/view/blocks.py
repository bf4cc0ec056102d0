"""Lines of text in straight columns, side by side as far as the terminal is wide."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.style import Style
from rich.text import Text

from .labels import label, printable

__all__ = ["FAINT", "ROW_LABEL", "STRONG", "Block", "Drawing", "Paper", "beside", "grid", "left_out", "padded", "table"]

Block = list[Text]  # lines, one below the other

GAP = 3  # cells between two blocks side by side
ROW_LABEL, COLUMN_LABEL = 12, 9  # cells at most
STRONG, FAINT = Style(bold=True), Style(dim=True)


@dataclass(frozen=True)
class Paper:
    """What there is to draw on."""

    width: int
    colours: int  # 0, 256, or 2**24

    @classmethod
    def of(cls, console: Console, options: ConsoleOptions) -> "Paper":
        """16 colours are too few for a ramp, and what they look like is the user's own choice: they count as none."""
        colours = {"256": 256, "truecolor": 2**24}.get(console.color_system or "", 0)
        return cls(options.max_width, 0 if console.no_color else colours)


@dataclass(frozen=True)
class Drawing:
    """Blocks that are drawn once the paper is known; as many go side by side as there is room for."""

    draw: Callable[[Paper], list[Block]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        paper = Paper.of(console, options)
        for line in _flowed(self.draw(paper), paper.width):
            line.no_wrap, line.overflow = True, "crop"
            yield line


def beside(*drawings: Drawing) -> Drawing:
    """Several drawings side by side, or below each other where the paper is too narrow."""
    return Drawing(lambda paper: [block for drawing in drawings for block in drawing.draw(paper)])


def padded(text: Text, width: int, side: str = "l") -> Text:
    """`text` with blanks up to `width` cells; it stands left, right or in the centre."""
    room = max(width - cell_len(text.plain), 0)
    before = {"l": 0, "r": room, "c": (room + 1) // 2}[side]
    return Text.assemble(" " * before, text, " " * (room - before))


def grid(rows: Sequence[Sequence[Text]], sides: str, gap: int = 1) -> Block:
    """Cells in straight columns, each column as wide as its widest cell; `sides` has an l, r or c for each."""
    widths = [max(cell_len(cell.plain) for cell in column) for column in zip(*rows, strict=True)]
    joint = Text(" " * gap)
    return [joint.join(padded(*cell) for cell in zip(row, widths, sides, strict=True)) for row in rows]


def table(
    paper: Paper, shape: tuple[int, int], cell: Callable[[int, int, int], Text], *, content: int, most: int,
    rows: Sequence[str] | None = None, columns: Sequence[str] | None = None, title: str = "", side: str = "r",
    foot: Sequence[Text] = (),
) -> Block:  # fmt: skip
    """A table of as many rows and columns as `most` and the paper allow, and a line on what was left out.

    cell(row, column, width) draws a cell; `content` is the width it needs at least. A column grows beyond that for a
    long label only where all columns have room to. `foot`: lines that go under the table.
    """
    height = min(shape[0], most)
    names = [""] * height if rows is None else [label(name, ROW_LABEL) + " " for name in rows[:height]]
    heads = [""] if columns is None else [label(name, COLUMN_LABEL) for name in columns[:most]]
    room = paper.width - max([0, *map(cell_len, names)]) - 2
    size = max([content, *(cell_len(head) + 1 for head in heads)])
    size = size if size * min(shape[1], most) <= room else content
    width = min(shape[1], most, max(room // size, 1))
    more = Text(" …" if width < shape[1] else "")
    lines = [[Text(name), *(cell(row, place, size) for place in range(width)), more] for row, name in enumerate(names)]
    if columns is not None:
        lines.insert(0, [Text(), *(padded(Text(label(name, size - 1)), size, side) for name in columns[:width]), more])
    body = grid(lines, "l" * (width + 2), gap=0)
    return [
        *([Text(printable(title), STRONG)] if title else []),
        *body,
        *foot,
        *left_out(shape[0] - height, shape[1] - width),
    ]


def left_out(rows: int, columns: int = 0) -> Block:
    """A line that says how much of a table is not shown; no line where all of it is."""
    axes = ((rows, "row"), (columns, "column"))
    counts = [f"{count} more {axis}{'s' * (count > 1)}" for count, axis in axes if count > 0]
    return [Text(f"… {' and '.join(counts)}", FAINT)] if counts else []


def _flowed(blocks: list[Block], width: int) -> Block:
    """The blocks in rows, a blank line between two rows."""
    lines: Block = []
    for row in _rows(blocks, width):
        sizes = [_width(block) + GAP for block in row[:-1]] + [0]
        for place in range(max(map(len, row))):
            if place == 0 and lines:
                lines.append(Text())
            parts = (block[place] if place < len(block) else Text() for block in row)
            lines.append(Text().join(padded(part, size) for part, size in zip(parts, sizes, strict=True)))
    return lines


def _rows(blocks: list[Block], width: int) -> Iterator[list[Block]]:
    row: list[Block] = []
    taken = 0
    for block in blocks:
        if row and taken + _width(block) > width:
            yield row
            row, taken = [], 0
        row.append(block)
        taken += _width(block) + GAP
    if row:
        yield row


def _width(block: Block) -> int:
    return max((cell_len(line.plain) for line in block), default=0)
