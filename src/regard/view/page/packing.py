"""Layers → the blocks of a page: weights, or the queries and keys they follow from; thumbnails, scores, overviews."""

# H heads that are shown, G key heads, Q queries, K keys, D width

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...errors import OptionError
from ...formula.arrays import Library
from ...formula.pooling import even_edges
from ...record import Head, Layer
from ...record.map import Map
from ...record.measures import head_table
from .coding import Numbers, decoded, dtype_for, encoded, halves, host, read_weights, thumbnail_bytes
from .describe import Part, Shown
from .glimpse import SCORES, THUMBNAIL, glimpse, pooled_columns
from .shaping import bias_by_distance, bits_of, ranges_of, same_for_all_heads

__all__ = ["Block", "Packed", "pack"]

OVERVIEW, LARGE = 1024, 2048  # cells of an overview's side, and tokens from which on there is one
OVERVIEWS = 2**26  # bytes of all overviews together; those of many heads are smaller
WHOLE = 4096  # tokens up to which every weight is gone over for the scores
WORTH_SCORING = 2**33  # weights in the page up to which they are all gone over, however long the text
LARGEST_GIVEN = 4096**2  # weights of a map that are kept as they are, if they must be
LARGEST_PAGE = 2**30  # bytes of numbers
CHECKED = 16  # rows of each head whose weights are compared with the record's
BANDS = 8  # steps in which the progress of a large map is told

Progress = Callable[[float], None]


class Block(NamedTuple):
    """A piece of data in the page, made when it is written."""

    name: str
    make: Callable[[], bytes]


@dataclass(eq=False)
class Packed:
    """A record as a page holds it."""

    blocks: list[Block] = field(default_factory=list)  # in the order of the page
    details: dict[int, dict[str, Any]] = field(default_factory=dict)  # for the description, by the layer's id
    error: float = 0.0  # the largest difference between a weight of the page and the record's own
    checked: int = 0  # weights that were compared

    @property
    def precision(self) -> dict[str, Any]:
        """What the page says of its own numbers."""
        return {"bits": 16, "error": self.error, "checked": self.checked}


def pack(shown: Shown, progress: Progress | None = None) -> Packed:
    """Everything that a page shows. progress: told the share of the work that is done, from 0 to 1."""
    parts = shown.parts
    sizes = {part.id: _sizes(part) for part in parts}
    _require_room(shown, sum(min(size) for size in sizes.values()))
    total = sum(_weights(part) for part in parts)
    large = sum(len(part.places) for part in parts if _is_large(part))
    done = 0.0
    packed = Packed()
    thumbnails, rest = [], []
    for part in parts:
        share = _weights(part) / max(total, 1)
        told = _scaled(progress, done, share)
        looks = _Looks(part, _overview_side(large), total, told)
        made = _Layer(part, looks, sizes[part.id])
        packed.details[part.id] = made.details
        thumbnails.append(Block(f"thumbnails:{part.id}", partial(thumbnail_bytes, looks.thumbnails * looks.share)))
        rest += made.blocks
        error, checked = _checked(part, made)
        packed.error, packed.checked = max(packed.error, error), packed.checked + checked
        done += share
        if progress is not None:
            progress(min(done, 1.0))
    first = _first_head(parts[0], packed.details[0]["packed"])
    packed.blocks = [block for block in rest if block.name in first] + thumbnails
    packed.blocks += [block for block in rest if block.name not in first]
    return packed


class _Looks:
    """How the heads of a layer look from afar: thumbnails, scores, and overviews of large maps."""

    def __init__(self, part: Part, side: int, total: int, progress: Progress | None) -> None:
        self.overviews: list[Numbers] | None = None
        self.step = 1
        heads = [part.layer.heads[place] for place in part.places]
        if _is_large(part):
            self.overviews = []
            for place, head in enumerate(heads):
                told = _scaled(progress, place / len(heads), 1 / len(heads))
                self.overviews.append(_overview(head, side, told))
        small = max(part.shape[1:]) <= WHOLE
        if small or total <= WORTH_SCORING:
            self.scores = _exact_scores(part)
        else:
            glimpses = [glimpse(head) for head in heads]
            self.scores = {name: [one.scores[name] for one in glimpses] for name in SCORES}
            self.step = glimpses[0].step
        self.thumbnails = np.stack([_shrunk(one) for one in self.overviews]) if self.overviews else _thumbnails(part)
        # A cell's mean becomes what it gets of a row: means alone grow too small for 8 bits as texts grow longer.
        self.share = part.shape[2] // max(1, self.thumbnails.shape[2])


class _Layer:
    """One layer as blocks, and what the description says of them."""

    def __init__(self, part: Part, looks: _Looks, sizes: tuple[int, int]) -> None:
        self.part, self.map = part, part.layer.map
        self.blocks: list[Block] = []
        numbers = bias_by_distance(self.map)
        shaped = (self.map.bias is None or numbers is not None) and same_for_all_heads(self.map)
        if not shaped:
            _require_few(part)
        as_weights = not shaped or sizes[0] <= sizes[1]
        self.packed: dict[str, Any] = {
            "form": "weights" if as_weights else "dots",
            "dtype": dtype_for(self.map.queries, self.map.keys),
            "width": int(self.map.queries.shape[-1]), "groups": _groups(part),
            "scale": float(self.map.scale), "softcap": None if self.map.softcap is None else float(self.map.softcap),
            "mask": None, "bias": None,
            "overview": None if looks.overviews is None else list(looks.overviews[0].shape),
        }  # fmt: skip
        if as_weights:
            self._add_weights()
        else:
            self._add_mask()
            self._add_dots()
            self._add_bias(numbers)
        for place, overview in enumerate(looks.overviews or ()):
            # times the number of keys, so that 1 is an even share: half precision has no room for 1 in 100,000
            self._add(f"overview:{part.id}:{place}", partial(halves, overview * part.shape[2]))
        self.details = {
            "scores": looks.scores, "step": looks.step, "thumbnail": list(looks.thumbnails.shape[1:]),
            "packed": self.packed,
        }  # fmt: skip

    def _add(self, name: str, make: Callable[[], bytes]) -> None:
        self.blocks.append(Block(name, make))

    def _add_weights(self) -> None:
        for place, head in _heads(self.part):
            self._add(f"weights:{self.part.id}:{place}", partial(_weights_of, head))

    def _add_mask(self) -> None:
        if self.map.mask is None:
            return
        ranges, (_, _, keys) = ranges_of(self.map), self.map.shape
        if ranges is None:
            self.packed["mask"] = "bits"
            self._add(f"bits:{self.part.id}", partial(_constant, bits_of(self.map)))
        elif bool((ranges.first > 0).any()) or bool((ranges.last < keys - 1).any()):
            self.packed["mask"] = "ranges"
            self._add(f"ranges:{self.part.id}", partial(_constant, ranges.content))

    def _add_dots(self) -> None:
        id_, dtype, groups = self.part.id, self.packed["dtype"], self.packed["groups"]
        for place, head in _heads(self.part):
            self._add(f"queries:{id_}:{place}", partial(_matrix, self.map.queries, head.place, dtype))
            if groups[place] not in groups[:place]:
                self._add(f"keys:{id_}:{groups[place]}", partial(_matrix, self.map.keys, groups[place], dtype))
            self._add(f"sums:{id_}:{place}", partial(_constant, _sums_of(head, dtype)))

    def _add_bias(self, numbers: Numbers | None) -> None:
        if numbers is None:
            return
        self.packed["bias"] = {"first": 1 - self.map.shape[1] - int(self.map.offset)}
        for place, head in _heads(self.part):
            self._add(f"bias:{self.part.id}:{place}", partial(_constant, numbers[head.place].astype("<f4").tobytes()))


def _heads(part: Part) -> Iterator[tuple[int, Head]]:
    """The heads that are shown, each with its place in the page."""
    return ((place, part.layer.heads[kept]) for place, kept in enumerate(part.places))


def _groups(part: Part) -> list[int]:
    """The key head of each head."""
    heads, groups = part.layer.map.queries.shape[0], part.layer.map.keys.shape[0]
    return [place * groups // heads for place in part.places]


def _weights(part: Part) -> int:
    """How many weights are shown of a layer."""
    heads, queries, keys = part.shape
    return heads * queries * keys


def _sizes(part: Part) -> tuple[int, int]:
    """Bytes of a layer as weights, and as queries and keys; half of a causal map is zeros, which take next to none."""
    heads, queries, keys = part.shape
    found: Map = part.layer.map
    corner = range(0, 1), range(keys - 1, keys)
    causal = found.mask is not None and min(queries, keys) > 1 and found.mask.sees(*corner, found.shape) is False
    width, groups = found.queries.shape[-1], len(set(_groups(part)))
    dots = 2 * width * (heads * queries + groups * keys) + 4 * heads * queries
    return 2 * _weights(part) // (2 if causal else 1), dots


def _is_large(part: Part) -> bool:
    return max(part.shape[1:]) > LARGE


def _overview_side(heads: int) -> int:
    """Cells of an overview's side, so that all overviews together stay within bounds."""
    side = OVERVIEW
    while heads * side * side * 2 > OVERVIEWS and side > 2 * THUMBNAIL:
        side //= 2
    return side


def _overview(head: Head, side: int, progress: Progress | None) -> Numbers:
    """A large map made small; the rows' log-sum-exps are found on the way, and kept."""
    queries, keys = head.shape
    rows, cols = even_edges(range(queries), side), even_edges(range(keys), side)
    bands = 1 if progress is None else min(BANDS, len(rows) - 1)
    cuts = even_edges(range(len(rows) - 1), bands)
    found = []
    for band in range(bands):
        found.append(host(head.grouped(rows[cuts[band] : cuts[band + 1] + 1], cols)))
        if progress is not None:
            progress((band + 1) / bands)
    return (np.concatenate(found) / np.diff(cols)).astype(np.float32)


def _shrunk(overview: Numbers) -> Numbers:
    """A thumbnail of an overview."""
    return pooled_columns(np.ascontiguousarray(pooled_columns(overview).T)).T


def _thumbnails(part: Part) -> Numbers:
    """Each head made small.   -> (H, h, w)"""
    if _is_whole(part):
        return host(part.layer.pooled(THUMBNAIL, THUMBNAIL))
    return np.stack([host(head.pooled(THUMBNAIL, THUMBNAIL)) for _, head in _heads(part)])


def _exact_scores(part: Part) -> dict[str, list[float | None]]:
    """The scores of each head, every weight counted; None where one has no meaning."""
    layer = part.layer
    alone = [layer] if _is_whole(part) else [
        replace(layer, maps=(layer.map.head(place),), head_numbers=(layer.head_numbers[place],))
        for place in part.places
    ]  # fmt: skip
    tables = [head_table(one, SCORES) for one in alone]
    return {
        name: [float(value) if np.isfinite(value) else None for table in tables for value in table[name]]
        for name in SCORES
    }


def _is_whole(part: Part) -> bool:
    """Whether all heads that were kept are shown, so that they can be gone over together."""
    return len(part.places) == len(part.layer.head_numbers)


def _matrix(array: Any, place: int, dtype: str) -> bytes:
    return encoded(host(array[place]), dtype)


def _weights_of(head: Head) -> bytes:
    return halves(host(head.weights()))


def _sums_of(head: Head, dtype: str) -> bytes:
    """Each row's log-sum-exp; where there is nothing to sum, +inf, which makes every weight exp(score − sum) zero."""
    sums = host(head.log_sum_exp())
    if dtype == "i16":  # has no NaN and no infinity; a row that is spoilt by them has a sum that says so
        sums = np.where(np.isfinite(sums), host(_rounded(head, dtype).log_sum_exp())[0], sums)
    return np.where(sums == -np.inf, np.inf, sums).astype("<f4").tobytes()


def _rounded(head: Head, dtype: str) -> Layer:
    """A head alone, its queries and keys as the page has them: its sums are those by which the page's rows make 1."""
    alone = head.map.head(head.place)
    library = Library.of(alone.queries)
    rounded = {
        name: library.asarray(decoded(encoded(host(array[0]), dtype), dtype, array.shape[-1])[None])
        for name, array in (("queries", alone.queries), ("keys", alone.keys))
    }
    return replace(head.layer, maps=(replace(alone, **rounded, lse=None),), head_numbers=(head.index,))


def _constant(content: bytes) -> bytes:
    return content


def _checked(part: Part, made: _Layer) -> tuple[float, int]:
    """The largest difference between the page's weights and the record's in some rows of each head, and how many."""
    _, queries, keys = part.shape
    makers = {block.name: block.make for block in made.blocks}
    rows = sorted({(2 * row + 1) * queries // (2 * CHECKED) for row in range(CHECKED)} if queries and keys else ())
    described = {"id": part.id, "offset": int(made.map.offset), "packed": made.packed}
    error, checked = 0.0, 0
    own = _own_weights(part, rows)
    for place, _ in _heads(part):
        there = read_weights(described, place, rows, (queries, keys), lambda name: makers[name]())
        apart = np.abs(there - own[place])
        error = max(error, float(np.max(apart, initial=0.0, where=np.isfinite(apart))))
        checked += apart.size
    return error, checked


def _own_weights(part: Part, rows: Sequence[int]) -> Numbers:
    """Some rows of the record's own weights.   -> (H, rows, K)"""
    heads, _, keys = part.shape
    found = np.zeros((heads, len(rows), keys), dtype=np.float32)
    for line, row in enumerate(rows):
        one = slice(row, row + 1)
        if _is_whole(part):
            found[:, line] = host(part.layer.weights(one))[:, 0]
        else:
            for place, head in _heads(part):
                found[place, line] = host(head.weights(one))[0]
    return found


def _first_head(part: Part, packed: dict[str, Any]) -> set[str]:
    """The blocks that the first picture needs."""
    kinds = {"weights": 0, "queries": 0, "sums": 0, "bias": 0, "overview": 0, "keys": packed["groups"][0]}
    return {f"{kind}:{part.id}:{place}" for kind, place in kinds.items()} | {f"ranges:{part.id}", f"bits:{part.id}"}


def _scaled(progress: Progress | None, begin: float, share: float) -> Progress | None:
    """A part of the work that tells its own progress from 0 to 1."""
    return None if progress is None else lambda done: progress(min(1.0, begin + share * done))


def _require_room(shown: Shown, size: int) -> None:
    if size > LARGEST_PAGE:
        heads = sum(len(part.places) for part in shown.parts)
        raise OptionError(
            f"a page of these {heads:,} heads would hold {size / 2**30:.1f} GiB of numbers, and a browser opens about "
            f"{LARGEST_PAGE / 2**30:.0f}; choose some with layers= and heads=, or look at the record with regard serve."
        )


def _require_few(part: Part) -> None:
    _, queries, keys = part.shape
    if queries * keys > LARGEST_GIVEN:
        raise OptionError(
            f"layer {part.layer.index} has a bias that does not follow from the distance, or a mask for each head, and "
            f"its maps of {queries:,} × {keys:,} are too large to be kept weight by weight (up to {LARGEST_GIVEN:,}); "
            "look at the record with regard serve."
        )
