"""Weights in a terminal: a shaded table, sorted bars, the top few of each token; and plain tables of numbers.

All of it is for rich's `console.print`, and settled only then: shades are colours where the terminal has 256 of them
and block characters where it has not (a pipe, NO_COLOR, 16 colours), and there are as many columns as have room.
Tokens are shown as `labels.label` writes them; none can act on the terminal.
"""

# Q queries (rows), K keys (columns)

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.cells import cell_len
from rich.console import Group
from rich.style import Style
from rich.text import Text

from ..errors import OptionError, ShapeError
from .blocks import FAINT, ROW_LABEL, STRONG, Block, Drawing, Paper, beside, grid, left_out, padded, table
from .labels import label
from .numbers import as_numbers
from .shades import BLOCKS, block, shade

__all__ = ["MOST", "beside", "figures", "render", "render_bars", "render_numbers", "render_table", "render_top"]

Numbers = NDArray[np.float64]

MOST = 12  # rows and columns of a table before the rest is left out
BAR = 14  # cells of the longest bar
SCALE = 24  # cells of the scale under a shaded table
TEAL = Style(color="rgb(24,140,150)")  # reads on black and on white
EIGHTHS: tuple[str, ...] = ("", *"▏▎▍▌▋▊▉")


@dataclass(frozen=True, eq=False)
class Map:
    """Weights and the tokens that they lie between, checked against each other."""

    weights: Numbers  # (Q, K)
    queries: Sequence[str]
    keys: Sequence[str]

    @classmethod
    def of(cls, weights: ArrayLike, queries: Sequence[str], keys: Sequence[str] | None) -> "Map":
        keys = queries if keys is None else keys
        return cls(_checked(weights, "weights", queries, keys), queries, keys)

    @property
    def largest(self) -> float:
        """The largest finite weight, 0 where there is none."""
        return float(np.max(self.weights, initial=0.0, where=np.isfinite(self.weights)))

    def highest(self, row: int, top: int) -> list[int]:
        """The keys with the highest weights in a row, the highest first, none of them 0.0% but the very highest.

        One key more than `top` is taken too: saying "and 1 other" would need as much room.
        """
        order = np.argsort(-self.weights[row], kind="stable")
        order = order[self.weights[row, order] != 0]
        told = [int(key) for place, key in enumerate(order) if place == 0 or not _is_little(self.weights[row, key])]
        return told if len(order) <= top + 1 else told[:top]


def render(
    weights: ArrayLike, queries: Sequence[str], keys: Sequence[str] | None = None, *, title: str = "", most: int = MOST
) -> Group:
    """One map of weights, (Q, K): the shaded table and, under it, each query's bars."""
    shaded = render_table(weights, queries, keys, title=title, most=most)
    return Group(shaded, "", render_bars(weights, queries, keys, most=most))


def render_table(
    weights: ArrayLike, queries: Sequence[str], keys: Sequence[str] | None = None, *, title: str = "",
    full: float | None = None, digits: int = 3, most: int = MOST,
) -> Drawing:  # fmt: skip
    """The weights as a table, each cell shaded by its weight, and a scale below. A · is a weight of exactly 0.

    full: the weight that gets the full shade, the largest one unless given; maps to be compared should share it.
    """
    shown, most, digits = Map.of(weights, queries, keys), _at_least(1, most, "most"), _at_least(1, digits, "digits")
    full = shown.largest if full is None else full

    longest = max((len(f"{weight:.{digits}f}") for weight in shown.weights[:most, :most].flat), default=0)

    def cell(row: int, key: int, width: int, paper: Paper) -> Text:
        return _cell(shown.weights[row, key], full, width, digits, paper)

    def draw(paper: Paper) -> list[Block]:
        content = longest + (2 if paper.colours else 3)  # a blank on either side; or two blocks and a blank
        indent = max((cell_len(label(query, ROW_LABEL)) for query in shown.queries[:most]), default=1)
        lines = table(
            paper, shown.weights.shape, partial(cell, paper=paper), content=content, most=most, rows=shown.queries,
            columns=shown.keys, title=title, side="c", foot=[_scale(full, digits, indent, paper)],
        )  # fmt: skip
        return [lines]

    return Drawing(draw)


def render_bars(
    weights: ArrayLike, queries: Sequence[str], keys: Sequence[str] | None = None, *, top: int = 5, most: int = MOST
) -> Drawing:
    """For each query the keys it attends to, the highest first, as bars with per cents, all on one scale.

    The `top` highest are shown, and what the others add up to; among those are all that would read 0.0%. Weights of
    exactly 0 are not counted.
    """
    whole, top, most = Map.of(weights, queries, keys), _at_least(1, top, "top"), _at_least(1, most, "most")
    shown = Map(whole.weights[:most], whole.queries[:most], whole.keys)
    rows = range(len(shown.queries))
    names = (label(shown.keys[key], ROW_LABEL) for row in rows for key in shown.highest(row, top))
    width = max((cell_len(name) for name in names), default=0)
    note = left_out(len(whole.queries) - most)
    return Drawing(lambda paper: [*(_bars(shown, row, top, width) for row in rows), *([note] if note else [])])


def render_top(weights: ArrayLike, queries: Sequence[str], keys: Sequence[str] | None = None, *, k: int = 3) -> Drawing:
    """One line for each query: the k keys that it attends to most, with per cents."""
    shown, k = Map.of(weights, queries, keys), _at_least(1, k, "k")
    rows = []
    for row, query in enumerate(shown.queries):
        line = [Text(label(query, ROW_LABEL), STRONG), Text("→")]
        for key in shown.highest(row, k)[:k]:
            line += [Text(label(shown.keys[key], ROW_LABEL)), Text(_per_cent(shown.weights[row, key]))]
        rows.append(line + [Text()] * (2 + 2 * k - len(line)))
    return Drawing(lambda paper: [grid(rows, "ll" + "lr" * k, gap=2)] if rows else [])


def render_numbers(
    numbers: ArrayLike, rows: Sequence[str] | None = None, columns: Sequence[str] | None = None, *, title: str = "",
    digits: int = 2, most: int = MOST,
) -> Drawing:  # fmt: skip
    """A table of numbers, with or without labels for its rows and columns."""
    shown, most = _checked(numbers, "numbers", rows, columns), _at_least(1, most, "most")
    texts = figures(shown[:most, :most], _at_least(0, digits, "digits"))
    content = max((len(text) for row in texts for text in row), default=0) + 1

    def cell(row: int, column: int, width: int) -> Text:
        return padded(Text(texts[row][column]), width, "r")

    def draw(paper: Paper) -> list[Block]:
        return [table(paper, shown.shape, cell, content=content, most=most, rows=rows, columns=columns, title=title)]

    return Drawing(draw)


def _checked(numbers: ArrayLike, name: str, rows: Sequence[str] | None, columns: Sequence[str] | None) -> Numbers:
    """A 2-D array of floats with a label for each row and column, where there are labels."""
    shown = as_numbers(numbers, name, ("rows", "columns"))
    for labels, size, axis in ((rows, shown.shape[0], "row"), (columns, shown.shape[1], "column")):
        if labels is not None and len(labels) != size:
            raise ShapeError(
                f"{name} have shape {shown.shape} and there are {len(labels)} labels; give one for each {axis}."
            )
    return shown


def _at_least(least: int, number: int, name: str) -> int:
    if number < least:
        raise OptionError(f"{name} is {number}; it must be {least} or more.")
    return number


def _cell(weight: float, full: float, width: int, digits: int, paper: Paper) -> Text:
    """One weight, shaded. NaN and inf are no share of anything and are left unshaded."""
    number = "·" if weight == 0 else f"{weight:.{digits}f}"
    if weight == 0 or not np.isfinite(weight):
        return padded(Text(number, FAINT), width, "c")
    share = weight / full if full > 0 else 1.0
    if paper.colours:
        cell = padded(Text(number), width, "c")
        cell.stylize(shade(share, blended=paper.colours > 256))
        return cell
    return padded(Text(number + block(share) * 2), width, "c")


def _scale(full: float, digits: int, indent: int, paper: Paper) -> Text:
    """What the shades mean: from 0 to the full one. It begins where the cells above it do."""
    shades: list[str | tuple[str, Style]] = [sign * 2 for sign in BLOCKS]
    if paper.colours:
        shades = [(" ", shade(place / (SCALE - 1), blended=paper.colours > 256)) for place in range(SCALE)]
    return Text.assemble("0".rjust(indent), " ", *shades, f" {full:.{digits}f}")


def _bars(shown: Map, row: int, top: int, width: int) -> Block:
    weights, highest = shown.weights[row], shown.highest(row, top)
    lines = [
        [
            Text(label(shown.keys[key], ROW_LABEL)),
            Text(_bar(weights[key], shown.largest), TEAL),
            Text(_per_cent(weights[key])),
        ]
        for key in highest
    ]
    others = np.count_nonzero(weights) - len(highest)
    if others:
        rest = float(weights.sum() - weights[highest].sum())
        counted = f"and {others:,} other{'s' if others > 1 else ''}"
        lines.append([Text(), Text(counted, FAINT), Text(_per_cent(rest), FAINT)])
    # The last row is not shown: it makes all blocks equally wide, so that they stand below each other.
    lines.append([Text(" " * width), Text(" " * BAR), Text("100.0%")])
    return [Text.assemble((label(shown.queries[row], ROW_LABEL), STRONG), " looks at"), *grid(lines, "llr")[:-1]]


def _bar(weight: float, full: float) -> str:
    share = weight / full if 0 < weight <= full else 0.0  # NaN and inf have no bar
    eighths = max(int(share * BAR * 8 + 0.5), 1 if share > 0 else 0)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8]


def _is_little(weight: float) -> bool:
    """Whether a weight is written as 0.0%."""
    return abs(weight) < 0.0005


def _per_cent(weight: float) -> str:
    return f"{100 * weight:.1f}%"


def figures(numbers: Numbers, digits: int) -> list[list[str]]:
    """Numbers as text with so many decimals, or in powers of ten where decimals would hide them or run long."""
    sizes = np.abs(numbers[np.isfinite(numbers) & (numbers != 0)])
    readable = sizes.size == 0 or 0.5 * 10.0**-digits <= sizes.max() < 1e4
    shape = f".{digits}f" if readable else ".1e"
    rounded = np.round(numbers, digits) + 0.0 if readable else numbers  # + 0.0: no -0.00
    return [[format(number, shape) for number in row] for row in rounded.tolist()]
