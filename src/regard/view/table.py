"""A table of measures in a terminal: the best heads of each measure, or a shaded row for each head; and as JSON."""

from typing import TYPE_CHECKING, Any

import numpy as np
from rich.cells import cell_len
from rich.console import Group
from rich.text import Text

from ..errors import OptionError
from .blocks import FAINT, STRONG, Block, Drawing, Paper, grid, left_out
from .labels import printable
from .shades import block, shade

if TYPE_CHECKING:
    from ..record.measures import HeadTable

__all__ = ["as_json", "render", "render_best"]

LOWEST_FIRST = ("entropy",)  # a head is remarkable where it is low
BEST = 3  # heads of each measure
MEANS = {
    "entropy": "look at few tokens",
    "distance": "look far, in tokens",
    "sink": "look at the first token",
    "strongest_key": "all look at one token",
    "previous_token": "look at the one before",
    "self_token": "look at themselves",
    "next_token": "look at the one after",
    "duplicate_token": "look at equal tokens",
    "induction": "look at what came next",
    "retrieval": "look at what is copied",
    "importance": "the loss depends on them",
}  # what the heads do in which a measure is remarkable


NEEDS = {"retrieval": "of texts a model wrote", "importance": "of gradients"}  # what a text that is read has not


def render_best(table: "HeadTable", *, model: str) -> Group:
    """For each measure the heads in which it is most remarkable, and what these do."""
    told = Text.assemble((printable(model), STRONG), f"   {len(table.rows)} heads; the best {BEST} of each measure")
    absent = [name for name in table.columns if not _best(table, name)]
    told_of = [f"{name} ({NEEDS[name]})" if name in NEEDS else name for name in absent]
    notes = [Text(f"nothing to be seen of: {', '.join(told_of)}", FAINT)] if absent else []
    hint = Text("every head: --all   one measure: --sort sink --top 10   a head: regard see", FAINT)
    return Group(told, "", Drawing(lambda paper: [_best_lines(table, paper)]), "", *notes, hint)


def render(table: "HeadTable", *, model: str, sort: str | None = None, top: int = 0) -> Group:
    """Each head with its numbers; the darker a cell, the higher it is in its column."""
    order = _order(table, sort, top)
    rest = len(table.rows) - len(order)
    note = f"{len(order)} of {len(table.rows)} heads" if rest else f"all {len(order)} heads"
    told = Text.assemble((printable(model), STRONG), f"   {note}", f", by {_column(table, sort)}" if sort else "")
    more = [Text(f"… {rest} more heads", FAINT)] if rest else []
    return Group(told, "", Drawing(lambda paper: [_lines(table, order, paper)]), *more)


def as_json(table: "HeadTable", *, model: str, sort: str | None = None, top: int = 0) -> dict[str, Any]:
    """The same as plain lists; a number that a head has not is null."""
    heads = [
        {"kind": row.kind, "layer": row.layer, "head": row.head}
        | {
            name: None if np.isnan(number) else float(number)
            for name, number in zip(table.columns, numbers, strict=True)
        }
        for row, numbers in ((table.rows[place], table.values[place]) for place in _order(table, sort, top))
    ]
    return {"model": model, "heads": heads}


def _order(table: "HeadTable", sort: str | None, top: int) -> list[int]:
    if top < 0:
        raise OptionError(f"--top is {top}; it is a number of heads.")
    order = list(range(len(table.rows)))
    if sort is not None:
        name = _column(table, sort)
        order = [int(place) for place in np.argsort(_signed(table, name), kind="stable")]
    return order[:top] if top else order


def _signed(table: "HeadTable", name: str) -> np.ndarray:
    """A column so that the most remarkable head is the lowest; NaN is last."""
    return table[name] if name in LOWEST_FIRST else -table[name]


def _column(table: "HeadTable", sort: str) -> str:
    """The column that a name or its beginning means, as "previous" does previous_token."""
    known = [name for name in table.columns if name.startswith(sort)]
    if sort in table.columns or len(known) != 1:
        table[sort]  # says what the columns are, where it is none
        return sort
    return known[0]


def _best_lines(table: "HeadTable", paper: Paper) -> Block:
    """A line for each measure; what it means, and all of its heads, only where there is room for that too."""
    lines = [line for name in table.columns if (line := _best_line(table, name, paper))]
    if not lines:
        return []
    whole = grid(lines, "l" + "lr" * BEST + "l")
    for heads in range(BEST, 0, -1):
        if max(cell_len(line.plain.rstrip()) for line in whole) <= paper.width:
            break
        whole = grid([line[: 1 + 2 * heads] for line in lines], "l" + "lr" * heads)
    return whole


def _best_line(table: "HeadTable", name: str, paper: Paper) -> list[Text]:
    numbers, best = table[name], _best(table, name)
    if not best:
        return []
    line = [Text(name, STRONG)]
    for place in best:
        line += [Text(_head(table, place)), _cell(float(numbers[place]), _peak(numbers), paper)]
    return [*line, *[Text()] * (2 * (BEST - len(best))), Text(MEANS.get(name, ""), FAINT)]


def _best(table: "HeadTable", name: str) -> list[int]:
    """The most remarkable heads; none where no head has the measure or all have 0, as causal ones of the next token."""
    numbers = table[name]
    order = np.argsort(_signed(table, name), kind="stable")[:BEST]
    return [int(place) for place in order if np.isfinite(numbers[place]) and (numbers[place] or name in LOWEST_FIRST)]


def _lines(table: "HeadTable", order: list[int], paper: Paper) -> Block:
    """A line for each head; measures that no head has are left out, and those that there is no room for."""
    names = [name for name in table.columns if not np.isnan(table[name]).all()]
    lines = [[Text("head", STRONG), *(Text(_short(name), STRONG) for name in names)]]
    for place in order:
        cells = [_cell(float(table[name][place]), _peak(table[name]), paper) for name in names]
        lines.append([Text(_head(table, place)), *cells])
    for fit in range(len(names), 0, -1):
        whole = grid([line[: fit + 1] for line in lines], "l" + "r" * fit)
        if cell_len(whole[0].plain) <= paper.width:
            break
    return [*whole, *left_out(0, len(names) - fit)]


def _head(table: "HeadTable", place: int) -> str:
    row = table.rows[place]
    kind = "" if len({one.kind for one in table.rows}) == 1 else f" {row.kind}"
    return f"L{row.layer} H{row.head}{kind}"


def _short(column: str) -> str:
    """The name over a column, which --sort takes as well."""
    return column.removesuffix("_token").removesuffix("est_key")


def _peak(numbers: np.ndarray) -> float:
    return float(np.max(np.abs(numbers), initial=0.0, where=np.isfinite(numbers)))


def _cell(number: float, peak: float, paper: Paper) -> Text:
    if not np.isfinite(number):
        return Text("–", FAINT)
    text = f"{number:.2f}" if peak < 100 else f"{number:.1f}"
    share = abs(number) / peak if peak > 0 else 0.0
    if not paper.colours:
        return Text(text + block(share))
    return Text(f" {text}", shade(share, blended=paper.colours > 256))
