"""The losses of a training over its steps, drawn in a terminal: dots of braille, or plain letters where it has none."""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter

from rich.text import Text

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a braille sign, row by row; U+2800 has none
BLANK = 0x2800
TRAINED, HELD_OUT = "cyan", "bold yellow"  # also told apart by their signs, where there are no colours
MOST = 2048  # points that are kept of a series

Point = tuple[float, float]


class Series:
    """Steps and losses, at most so many: when there are more, neighbours are put together by their mean."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self._each = 1  # entries that make one point
        self._pending: list[Point] = []

    def add(self, step: float, loss: float) -> None:
        """One more, later than all the others."""
        self._pending.append((step, loss))
        if len(self._pending) == self._each:
            self.points.append(_mean(self._pending))
            self._pending = []
        if len(self.points) == MOST:
            self.points = [_mean(self.points[place : place + 2]) for place in range(0, MOST, 2)]
            self._each *= 2


def drawn(trained: Sequence[Point], held_out: Sequence[Point], *, width: int, height: int, unicode: bool) -> list[Text]:
    """Lines of at most `width` cells: the training loss as dots, the held-out one as marks; nothing for no numbers.

    height: rows of the curve itself, without the steps below it and the line that says what is what.
    """
    shown = [*trained, *held_out]
    if not shown or width < 24:
        return []
    low, high = min(loss for _, loss in shown), max(loss for _, loss in shown)
    first, last = min(step for step, _ in shown), max(step for step, _ in shown)
    scale = [f"{high:.3g}", f"{low:.3g}"]
    margin = max(map(len, scale)) + 1
    columns = width - margin - 1

    def place(point: Point, across: int, down: int) -> tuple[int, int]:
        x = (point[0] - first) / (last - first) if last > first else 0.0
        y = (high - point[1]) / (high - low) if high > low else 0.0
        return round(x * (across - 1)), round(y * (down - 1))

    line = _joined([place(point, 2 * columns, 4 * height) for point in trained])
    dots = _dotted(line, columns, height, unicode)
    marks = {place(point, columns, height) for point in held_out}
    edge, mark = ("│", "●") if unicode else ("|", "o")
    lines = []
    for row in range(height):
        number = scale[0] if row == 0 else scale[1] if row == height - 1 else ""
        drawing = Text(f"{number:>{margin - 1}} {edge}", style="dim")
        cells = [((column, row) in marks, dots[row][column]) for column in range(columns)]
        for marked, run in groupby(cells, key=itemgetter(0)):
            drawing.append("".join(mark if marked else sign for _, sign in run), HELD_OUT if marked else TRAINED)
        lines.append(drawing)
    return [*lines, _steps(first, last, margin, columns), _legend(margin, mark, bool(held_out), unicode)]


def _joined(places: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The places, and those on the way from each to the next."""
    yield from places[:1]
    for (x, y), (to_x, to_y) in pairwise(places):
        far = max(abs(to_x - x), abs(to_y - y))
        for step in range(1, far + 1):
            yield x + round((to_x - x) * step / far), y + round((to_y - y) * step / far)


def _dotted(places: Iterator[tuple[int, int]], columns: int, height: int, unicode: bool) -> list[list[str]]:
    """Signs, each of 2 × 4 dots."""
    cells = [[0] * columns for _ in range(height)]
    for x, y in places:
        cells[y // 4][x // 2] |= DOTS[y % 4][x % 2]
    if unicode:
        return [[chr(BLANK + cell) if cell else " " for cell in row] for row in cells]
    return [["." if cell else " " for cell in row] for row in cells]


def _steps(first: float, last: float, margin: int, columns: int) -> Text:
    left, right = f"{first:,.0f}", f"step {last:,.0f}"
    return Text(" " * (margin + 1) + left + right.rjust(columns - len(left)), style="dim")


def _legend(margin: int, mark: str, held_out: bool, unicode: bool) -> Text:
    line = Text(" " * (margin + 1))
    line.append("⠒⠢ training loss" if unicode else ".. training loss", style=TRAINED)
    if held_out:
        line.append(f"   {mark} held-out loss", style=HELD_OUT)
    return line


def _mean(points: Sequence[Point]) -> Point:
    return sum(step for step, _ in points) / len(points), sum(loss for _, loss in points) / len(points)
