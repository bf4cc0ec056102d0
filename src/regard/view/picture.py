"""What all plots share: their colours, how their texts are written, and a file that is never half a picture."""

import math
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from rich.cells import cell_len

from ..errors import FileError, OptionError, ShapeError
from .fonts import drawable, families_for, width
from .labels import label, printable

COLOURS = colormaps["viridis"].with_extremes(bad="lightgrey")  # equal steps look equal, also to the colour-blind
KINDS = ("png", "svg", "pdf")
LABEL = 14  # terminal cells of a label; a longer token is cut
HEADING = 13.0  # points
LINE, LINES = 76, 4  # terminal cells of a line of a title, and how many lines there are at most
FLOOR = 1e-5  # of the highest weight: what is below has the darkest colour of a logarithmic scale
DOTS, SIDE = 200, 8000  # pixels: of an inch, and of the longer side of a picture at most

_STAND_IN = "\u034f"  # a mark that nobody sees
_RIGHT_TO_LEFT = "\u0600-\u08ff"
_EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff"
_PARTED = re.compile(f"(?<=[{_RIGHT_TO_LEFT}])\u200c(?=[{_RIGHT_TO_LEFT}])|(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])")
_LETTERS_APART = re.compile(f"(?<=[{_RIGHT_TO_LEFT}]){_STAND_IN}(?=[{_RIGHT_TO_LEFT}])")
_EMOJI_JOINED = re.compile(f"(?<=[{_EMOJI}]){_STAND_IN}(?=[{_EMOJI}])")


@dataclass(frozen=True)
class Style:
    """How the texts of one figure are written: in fonts that have all their characters, and a $ is a $."""

    families: tuple[str, ...]

    def of(self, points: float) -> dict[str, Any]:
        """The style of a text of that size, as matplotlib takes it."""
        plain = {"fontweight": "normal", "fontstyle": "normal", "parse_math": False, "usetex": False}
        return {"fontsize": points, "fontfamily": list(self.families), **plain}

    def width(self, texts: Iterable[str], points: float) -> float:
        """How wide the widest line of some texts is, in points."""
        lines = {line for text in texts for line in text.split("\n")}
        return max((width(line, self.families, points) for line in lines), default=0.0)


def style_for(texts: Iterable[str]) -> Style:
    """The style in which all of `texts` can be drawn."""
    return Style(families_for(texts))


def caption(token: object, cells: int = LABEL) -> str:
    """A token as it is written at the side: safe, short, and with characters that can be drawn."""
    text = _with_joiners(str(token), partial(label, cells=cells))
    spelled = drawable(text)
    return text if spelled == text else _with_joiners(spelled, partial(label, cells=cells))


def heading(title: str | None) -> str:
    """A title, in lines that are not longer than a picture is wide, and not too many of them."""
    safe = (drawable(_with_joiners(line, printable)) for line in (title or "").splitlines())
    lines = [part for line in safe for part in _wrapped(line)]
    return "\n".join(lines if len(lines) <= LINES else [*lines[: LINES - 1], f"{lines[LINES - 1]} …"])


def layer_names(layers: Sequence[str | int] | None, count: int) -> list[str]:
    """What the layers are called: as the caller says, or 0, 1, 2 and so on."""
    names = [caption(layer) for layer in (range(count) if layers is None else layers)]
    if len(names) != count:
        raise ShapeError(f"there are {count} layers and {len(names)} names for them; each layer needs one.")
    return names


def scale_of(maps: np.ndarray, *, log: bool) -> Normalize:
    """From a weight to its place among the colours: 0 is the darkest, and the highest weight the brightest."""
    seen = maps[np.isfinite(maps) & (maps > 0)]
    highest = float(seen.max(initial=0.0))
    if not log:
        return Normalize(0, highest or 1.0)
    if highest < np.finfo(np.float32).tiny:
        return LogNorm(FLOOR, 1.0, clip=True)
    lowest = max(float(seen.min()), highest * FLOOR)
    return LogNorm(lowest if lowest < highest else highest / 10, highest, clip=True)


def shrunk(maps: np.ndarray, most: int) -> np.ndarray:
    """Maps of at most so many cells a side, each the highest weight of those it stands for: no line is lost."""
    for axis in (-2, -1):
        if maps.shape[axis] > most:
            starts = np.linspace(0, maps.shape[axis], most, endpoint=False).astype(int)
            maps = np.fmax.reduceat(maps, starts, axis=axis)
    return maps


def draw_bar(axes: Axes, scale: Normalize, name: str, style: Style, size: tuple[float, float]) -> None:
    """The colour bar at the right of `axes`, which is so many points wide and high; eight inches at most."""
    wide, high = size
    share = min(1.0, 8 * 72 / high)
    bar = axes.inset_axes((1 + 10 / wide, 1 - share, 12 / wide, share))
    Colorbar(bar, ScalarMappable(scale, COLOURS))
    bar.set_ylabel(f"{name} (log scale)" if isinstance(scale, LogNorm) else name, **style.of(10))


def saved(figure: Figure, path: str | Path | None) -> Figure:
    """`figure`, written to `path` by way of a temporary name: nobody ever finds half a picture there."""
    if path is None:
        return figure
    path = Path(path)
    kind = path.suffix.removeprefix(".").lower()
    if kind not in KINDS:
        raise OptionError(f"{path} says no kind of picture; let it end in .{', .'.join(KINDS)}.")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    dots = min(DOTS, SIDE / (max(figure.get_size_inches()) + 1))  # an inch, for a margin and what hangs over
    try:
        figure.savefig(unfinished, format=kind, dpi=dots, bbox_inches="tight")
        unfinished.replace(path)
    except OSError as reason:
        raise FileError(f"cannot write {path}: {reason.strerror}.") from reason
    finally:
        unfinished.unlink(missing_ok=True)
    return figure


def every(count: int, needed: float, room: float) -> range:
    """Which of `count` labels are written: each needs so many points, and there is room for one in every so many."""
    return range(0, count, math.ceil(needed / room))


def _with_joiners(text: str, made_safe: Callable[[str], str]) -> str:
    """`text` made safe, with the joiners that a plot can draw; terminals cannot, so labels go without them."""
    safe = made_safe(_PARTED.sub(_STAND_IN, text))
    return _EMOJI_JOINED.sub("\u200d", _LETTERS_APART.sub("\u200c", safe)).replace(_STAND_IN, "")


def _wrapped(line: str) -> list[str]:
    """A line of a title in parts of some cells each; a Chinese character takes two."""
    return textwrap.wrap(line, max(1, LINE * len(line) // max(1, cell_len(line)))) or [""]
