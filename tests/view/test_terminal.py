import io
import re

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from rich.ansi import AnsiDecoder
from rich.console import Console

from regard.errors import DtypeError, OptionError, ShapeError
from regard.view.terminal import beside, render, render_bars, render_numbers, render_table, render_top

from .tokens import ALL, EMOJI, HOSTILE, MARKS, WIDE, cells

WORDS = ["我", "喜欢", "学习", "AI", "技术"]
SETS = {
    "words": WORDS,
    "wide": WIDE,
    "emoji": EMOJI,
    "marks": MARKS,
    "hostile": HOSTILE[:15],
    "hostile too": HOSTILE[15:],
}
NUMBER = re.compile(r"-?\d\.\d+")


def weights_for(tokens, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(len(tokens), 0.5), len(tokens)) + 0.0


def printed(drawing, *, width=100, **terminal):
    file = io.StringIO()
    options = {"color_system": None} | terminal
    Console(file=file, width=width, highlight=False, _environ={}, **options).print(drawing)
    return file.getvalue()


def coloured(drawing, **options):
    return printed(drawing, force_terminal=True, color_system="truecolor", **options)


def lines_of(output):
    """What a terminal shows, line by line, with the colours taken out."""
    return [line.plain for line in AnsiDecoder().decode(output.removesuffix("\n"))]


def columns_of(line):
    """The cells at which the numbers of a line end."""
    return [cells(line[: found.end()]) for found in NUMBER.finditer(line)]


@pytest.mark.parametrize("show", [printed, coloured])
@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("tokens", SETS.values(), ids=SETS)
class TestStraight:
    def test_shaded_table(self, show, width, tokens):
        output = show(render_table(weights_for(tokens) + 1e-9, tokens, most=20), width=width)
        head, *lines = lines_of(output)
        rows = lines[: len(tokens)]
        assert len({tuple(columns_of(row)) for row in rows}) == 1
        assert len({cells(row) for row in [head, *rows]}) == 1
        assert max(map(cells, lines)) <= width

    def test_bars(self, show, width, tokens):
        output = show(render_bars(weights_for(tokens) + 1e-9, tokens, most=20), width=width)
        ends = [cells(line[: found.end()]) for line in lines_of(output) for found in re.finditer(r"\d\.\d%", line)]
        blocks = len(set(ends))
        assert blocks <= max(1, width // 23)
        assert all(ends.count(end) > len(tokens) // blocks for end in ends)
        assert max(map(cells, lines_of(output))) <= width

    def test_numbers(self, show, width, tokens):
        table = np.random.default_rng(1).normal(size=(len(tokens), 4))
        output = show(
            beside(
                render_numbers(table, tokens, title="Q", most=20), render_numbers(table, tokens, title="K", most=20)
            ),
            width=width,
        )
        rows = [tuple(columns_of(line)) for line in lines_of(output) if columns_of(line)]
        assert len(set(rows)) == 1
        assert len(rows[0]) in (4, 8)
        assert max(map(cells, lines_of(output))) <= width

    def test_top(self, show, width, tokens):
        lines = lines_of(show(render_top(weights_for(tokens) + 1e-9, tokens), width=width))
        assert len({cells(line) for line in lines}) == 1
        assert len({cells(line[: line.index("→")]) for line in lines}) == 1


@pytest.mark.parametrize("show", [printed, coloured])
def test_no_token_acts_on_the_terminal(show):
    output = show(render(weights_for(ALL), ALL, ALL[::-1], title="\x1b[5m[red]\n", most=len(ALL)))
    left = re.sub(r"\x1b\[[\d;]*m", "", output) if show is coloured else output
    assert not set(left) & {
        chr(code) for code in (*range(10), *range(11, 32), *range(127, 160), 0x202E, 0x2066, 0x200B)
    }
    # The only colours are ours: a shade for each cell and of the scale, the teal of the bars, bold and faint.
    codes = {
        code for found in re.findall(r"\x1b\[([\d;]*)m", output) for code in [found] if not found.startswith("38;2;")
    }
    assert codes <= {"0", "1", "2"}
    assert "[red]x[/red]" in left


class TestTable:
    def test_numbers_and_labels(self):
        weights = weights_for(WORDS)
        rows = lines_of(printed(render_table(weights, WORDS, title="weights")))
        assert rows[0] == "weights"
        assert rows[1].split() == WORDS
        for word, row, line in zip(WORDS, weights, rows[2:7], strict=True):
            assert line.startswith(word)
            assert NUMBER.findall(line) == [f"{weight:.3f}" for weight in row]
        assert rows[7].endswith(f"{weights.max():.3f}")

    def test_plain_shades_follow_the_weights(self):
        line = lines_of(printed(render_table([[0.05, 0.15, 0.3, 0.5, 0.0]], ["q"], WORDS)))[1]
        assert line.split() == ["q", "0.050░░", "0.150▒▒", "0.300▓▓", "0.500██", "·"]

    def test_coloured_shades_follow_the_weights(self):
        output = coloured(render_table([[0.1, 0.9, 0.0]], ["q"], ["a", "b", "c"])).splitlines()[1]
        grounds = re.findall(r"48;2;(\d+);(\d+);(\d+)m", output)
        assert len(grounds) == 2
        assert sum(map(int, grounds[0])) < sum(map(int, grounds[1]))
        assert not set("░▒▓█") & set(output)

    @pytest.mark.parametrize(
        "terminal",
        [
            {"force_terminal": True, "color_system": "truecolor", "no_color": True},
            {"force_terminal": True, "color_system": "standard"},
            {"color_system": None},
        ],
    )
    def test_without_256_colours_there_are_blocks(self, terminal):
        output = printed(render_table(weights_for(WORDS), WORDS), **terminal)
        assert set("░█") <= set(output)
        assert not re.search(r"\x1b\[[^m]*(3|4)8;", output)

    def test_the_full_shade_can_be_shared(self):
        assert "0.400▒▒" in printed(render_table([[0.4, 0.6]], ["q"], ["a", "b"], full=1.0))
        assert "0.400▓▓" in printed(render_table([[0.4, 0.6]], ["q"], ["a", "b"]))

    def test_a_large_map_is_cut_and_says_so(self):
        tokens = [f"token{place}" for place in range(200)]
        lines = lines_of(printed(render_table(weights_for(tokens), tokens)))
        assert len(lines) == 1 + 12 + 1 + 1
        assert lines[-1] == "… 188 more rows and 189 more columns"
        assert all(line.endswith("…") for line in lines[:13])

    def test_long_labels_get_room_where_there_is_some(self):
        words = ["attention", "is", "everything"]
        assert "attention" in lines_of(printed(render_table(weights_for(words), words)))[0]
        assert "attention" not in lines_of(printed(render_table(weights_for(words), words), width=40))[0]

    @pytest.mark.parametrize("width", [1, 5, 20])
    def test_a_narrow_terminal(self, width):
        lines = lines_of(printed(render(weights_for(WORDS), WORDS), width=width))
        assert max(map(cells, lines)) <= width

    def test_odd_weights(self):
        lines = lines_of(printed(render([[np.nan, np.inf], [-12.5, 1e-12]], ["a", "b"])))
        assert "nan" in lines[1]
        assert "inf" in lines[1]
        assert len({cells(line) for line in lines[:3]}) == 1

    def test_all_zero_and_nothing_at_all(self):
        assert "·" in printed(render(np.zeros((2, 2)), ["a", "b"]))
        printed(render(np.zeros((0, 0)), []))
        printed(render(np.zeros((2, 0)), ["a", "b"], []))
        printed(render_top(np.zeros((0, 3)), [], ["a", "b", "c"]))


class TestBars:
    def test_sorted_with_per_cents(self):
        lines = lines_of(printed(render_bars([[0.25, 0.5, 0.125, 0.0, 0.125]], ["q"], WORDS)))
        assert lines[0] == "q looks at"
        assert [(line.split()[0], line.split()[-1]) for line in lines[1:]] == [
            ("喜欢", "50.0%"), ("我", "25.0%"), ("学习", "12.5%"), ("技术", "12.5%"),
        ]  # fmt: skip

    def test_lengths_are_in_proportion(self):
        lines = lines_of(printed(render_bars([[0.8, 0.4, 0.1]], ["q"], ["a", "b", "c"])))
        assert [line.split()[1] for line in lines[1:]] == ["█" * 14, "█" * 7, "█▊"]

    def test_one_scale_for_all(self):
        output = printed(render_bars([[1.0, 0.0], [0.5, 0.5]], ["a", "b"]))
        assert output.count("█" * 14) == 1
        assert output.count("█" * 7) == 4  # two in the long one

    def test_the_others_are_added_up(self):
        weights = np.arange(1, 21)[None, ::-1] / 210
        lines = lines_of(printed(render_bars(weights, ["q"], [str(place) for place in range(20)], top=3)))
        assert lines[-1].split() == ["and", "17", "others", "72.9%"]
        assert len(lines) == 5

    def test_one_other_is_shown_instead(self):
        assert "other" not in printed(render_bars([[0.3, 0.3, 0.4]], ["q"], ["a", "b", "c"], top=2))

    def test_many_queries_are_cut(self):
        tokens = [f"t{place}" for place in range(30)]
        output = printed(render_bars(weights_for(tokens), tokens, most=4))
        assert output.count("looks at") == 4
        assert "… 26 more rows" in output


def test_top_names_the_highest():
    lines = lines_of(printed(render_top([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0]], ["a", "b"], ["x", "y", "z"], k=2)))
    assert [line.split() for line in lines] == [["a", "→", "z", "70.0%", "y", "20.0%"], ["b", "→", "x", "100.0%"]]


def test_render_is_table_and_bars():
    output = printed(render(weights_for(WORDS), WORDS))
    assert "░" in output
    assert output.count("looks at") == 5


class TestNumbers:
    @pytest.mark.parametrize(
        ("numbers", "shown"),
        [
            ([[0.006, -0.001]], ["0.01", "0.00"]),
            ([[-np.inf, 1.5]], ["-inf", "1.50"]),
            ([[123456.0, 0.5]], ["1.2e+05", "5.0e-01"]),
            ([[0.0001, 0.00002]], ["1.0e-04", "2.0e-05"]),
            ([[0, 0]], ["0.00", "0.00"]),
        ],
    )
    def test_figures(self, numbers, shown):
        assert printed(render_numbers(numbers)).split() == shown

    def test_cut_to_the_width(self):
        lines = lines_of(printed(render_numbers(np.ones((2, 100)), ["a", "b"], most=100), width=40))
        assert lines[0] == "a " + " 1.00" * 7 + " …"
        assert lines[2] == "… 93 more columns"


def test_weights_of_any_library_are_drawn():
    weights = np.asarray([[0.25, 0.75], [1.0, 0.0]])
    expected = printed(render_table(weights, ["a", "b"]))
    for same in (torch.tensor(weights, requires_grad=True), jnp.asarray(weights), weights.tolist()):
        assert printed(render_table(same, ["a", "b"])) == expected


class TestBadInput:
    @pytest.mark.parametrize("function", [render, render_table, render_bars, render_top])
    def test_shapes(self, function):
        with pytest.raises(ShapeError, match=r"shape \(2, 3\) and there are 2 labels; give one for each column"):
            function(np.ones((2, 3)), ["a", "b"])
        with pytest.raises(ShapeError, match=r"shape \(2, 3\) and there are 1 labels; give one for each row"):
            function(np.ones((2, 3)), ["a"], ["x", "y", "z"])
        with pytest.raises(ShapeError, match=r"shape \(4, 2, 2\)"):
            function(np.ones((4, 2, 2)), ["a", "b"])

    def test_no_numbers(self):
        with pytest.raises(DtypeError, match="weights are a list; they must be numbers"):
            render([["a", "b"]], ["q"], ["x", "y"])
        with pytest.raises(DtypeError, match="must be numbers"):
            render([[1.0], [1.0, 2.0]], ["q"])

    def test_options(self):
        for call in (
            lambda: render_bars([[1.0]], ["a"], top=0),
            lambda: render_top([[1.0]], ["a"], k=0),
            lambda: render_table([[1.0]], ["a"], digits=0),
            lambda: render_numbers([[1.0]], most=0),
        ):
            with pytest.raises(OptionError, match="is 0; it must be 1 or more"):
                call()
