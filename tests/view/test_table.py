"""The measures of heads as a table: the best first, every head, and as JSON."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from regard.errors import OptionError
from regard.record.measures import HeadTable
from regard.record.measures.scores import COLUMNS as SCORES
from regard.record.measures.table import HeadName
from regard.view.table import as_json, render, render_best

NAN = float("nan")
COLUMNS = ("entropy", "distance", "previous_token", "self_token", "next_token", "retrieval")
VALUES = [
    [1.5, 3.0, 0.1, 0.2, 0, NAN],
    [0.2, 9.0, 0.9, 0.1, 0, NAN],
    [0.9, 1.0, 0.4, NAN, 0, NAN],
    [2.0, 0.5, 0.2, 0.7, 0, NAN],
]


def table(kinds=("decoder",) * 4):
    names = [HeadName(kind, place // 2, place % 2) for place, kind in enumerate(kinds)]
    return HeadTable(COLUMNS, tuple(names), np.asarray(VALUES))


def printed(drawing, width=80):
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    console.print(drawing)
    return console.file.getvalue()


def heads_of(line):
    """The heads that a line names, in its order."""
    words = line.split()
    return [f"{word} {words[place + 1]}" for place, word in enumerate(words) if word[0] == "L" and word[1:].isdigit()]


def test_the_best_of_each_measure():
    out = printed(render_best(table(), model="m"))
    lines = {line.split()[0]: line for line in out.splitlines() if line.split()}
    assert out.startswith("m   4 heads; the best 3 of each measure")
    assert heads_of(lines["entropy"]) == ["L0 H1", "L1 H0", "L0 H0"]  # the lowest first
    assert heads_of(lines["distance"]) == ["L0 H1", "L0 H0", "L1 H0"]
    assert heads_of(lines["self_token"]) == ["L1 H1", "L0 H0", "L0 H1"]  # no number is no best
    assert "look at the one before" in lines["previous_token"]
    assert "next_token" not in lines  # all are 0: there is no best
    assert "retrieval" not in lines
    assert "nothing to be seen of: next_token, retrieval (of texts a model wrote)" in out
    assert "--all" in out


@pytest.mark.parametrize(("width", "heads"), [(80, 3), (45, 2), (34, 1)])
def test_what_has_no_room_is_left_out_whole(width, heads):
    lines = printed(render_best(table(), model="m"), width).splitlines()
    found = [line for line in lines if line.startswith(("entropy", "previous_token"))]
    assert [len(heads_of(line)) for line in found] == [heads, heads]
    assert max(map(len, lines)) <= width


def test_every_head():
    out = printed(render(table(), model="m"))
    lines = out.splitlines()
    assert lines[0] == "m   all 4 heads"
    assert lines[2].split() == ["head", "entropy", "distance", "previous", "self", "next"]
    assert [heads_of(line)[0] for line in lines[3:]] == ["L0 H0", "L0 H1", "L1 H0", "L1 H1"]
    assert "–" in lines[5]
    assert "… 4 more columns" in printed(render(table(), model="m"), 16)


def test_all_measures_fit_a_terminal_of_80_cells():
    """In colours as in plain text, for heads and layers of two figures."""
    names = tuple(HeadName("decoder", 29, head) for head in (8, 11))
    whole = HeadTable(SCORES[:9], names, np.full((2, 9), 0.5))
    for colours in (None, "truecolor"):
        console = Console(file=io.StringIO(), width=80, color_system=colours, force_terminal=colours is not None)
        console.print(render(whole, model="m"))
        assert "induction" in console.file.getvalue()


def test_heads_of_several_kinds_say_so():
    out = printed(render(table(("encoder", "encoder", "cross", "cross")), model="m"))
    assert "L1 H0 cross" in out


@pytest.mark.parametrize("sort", ["previous_token", "previous", "p"])
def test_sorted_by_a_measure(sort):
    lines = printed(render(table(), model="m", sort=sort, top=2)).splitlines()
    assert lines[0] == "m   2 of 4 heads, by previous_token"
    assert [heads_of(line)[0] for line in lines[3:5]] == ["L0 H1", "L1 H0"]
    assert lines[5] == "… 2 more heads"


@pytest.mark.parametrize(("options", "said"), [({"sort": "x"}, "no column 'x'"), ({"top": -1}, "--top is -1")])
def test_what_makes_no_sense(options, said):
    for shown in (render, as_json):
        with pytest.raises(OptionError, match=said):
            shown(table(), model="m", **options)


def test_as_json():
    told = json.loads(json.dumps(as_json(table(), model="m", sort="entropy", top=3), allow_nan=False))
    assert [(head["layer"], head["head"]) for head in told["heads"]] == [(0, 1), (1, 0), (0, 0)]
    assert told["heads"][0] == {
        "kind": "decoder", "layer": 0, "head": 1, "entropy": 0.2, "distance": 9.0, "previous_token": 0.9,
        "self_token": 0.1, "next_token": 0.0, "retrieval": None,
    }  # fmt: skip
