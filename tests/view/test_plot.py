"""The heat map as it is drawn: its parts, its pixels, its fonts, and that nothing of the user's is touched."""

import logging
import subprocess
import sys
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from rich.cells import cell_len

from regard.errors import DtypeError, FileError, OptionError, ShapeError
from regard.view import picture, plot
from regard.view.plot import all_heads, head_grid, heat_map, layer_curves
from tests.view.figures import rendered, texts

WORDS = ["我", "喜欢", "学习", "AI", "技术"]


def shares(*shape):
    powers = np.exp(2 * np.random.default_rng(5).normal(size=shape))
    return powers / powers.sum(axis=-1, keepdims=True)


def maps(figure):
    return [axes for axes in figure.axes if axes.images]


def bars(figure):
    """The colour bars: axes inside the axes of a map."""
    return [bar for axes in maps(figure) for bar in axes.child_axes]


def pixels(figure):
    return np.asarray(rendered(figure).buffer_rgba())


def test_a_map_has_all_its_parts():
    weights = shares(5, 5)
    figure = heat_map(weights, WORDS, title="我 喜欢 学习 AI 技术")
    (axes,) = maps(figure)
    np.testing.assert_array_equal(axes.images[0].get_array(), weights)
    assert texts(axes.get_xticklabels()) == texts(axes.get_yticklabels()) == WORDS
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("key", "query")
    assert figure.get_suptitle() == "我 喜欢 学习 AI 技术"
    assert [bar.get_ylabel() for bar in bars(figure)] == ["weight"]
    assert texts(axes.texts) == [f"{weight:.2f}" for weight in weights.flat]


def test_rows_are_queries_and_columns_keys():
    figure = heat_map([[1.0, 0.0, 0.0]], ["猫"], ["the", "cat", "sat"])
    (axes,) = maps(figure)
    assert texts(axes.get_yticklabels()) == ["猫"]
    assert texts(axes.get_xticklabels()) == ["the", "cat", "sat"]
    assert texts(axes.texts) == ["1.00", "0", "0"], "an exact 0 is shown as one"


def test_every_number_can_be_read_on_its_cell():
    figure = heat_map(np.linspace(0, 1, 256).reshape(16, 16), [str(n) for n in range(16)])
    (axes,) = maps(figure)
    for text, weight in zip(axes.texts, axes.images[0].get_array().flat, strict=True):
        one, other = sorted(luminance(colour) for colour in (to_rgb(text.get_color()), axes.images[0].to_rgba(weight)))
        assert (other + 0.05) / (one + 0.05) >= 4.5, weight


def luminance(colour):
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def test_the_colours_rise_evenly():
    lightness = [luminance(picture.COLOURS(step)) for step in np.linspace(0, 1, 20)]
    assert lightness == sorted(lightness), "so that the map is right in grey, and to the colour-blind"


def test_many_tokens_have_no_numbers_and_fewer_labels():
    figure = heat_map(shares(200, 200), [f"w{n}" for n in range(200)])
    (axes,) = maps(figure)
    assert not axes.texts
    labels = texts(axes.get_yticklabels())
    assert 20 < len(labels) < 200
    assert labels == [f"w{place:.0f}" for place in axes.get_yticks()]


def spanned(side):
    """A side as numbers: where its ticks are, and what they say."""
    return [
        (float(place), text) for place, text in zip(side.get_majorticklocs(), texts(side.get_ticklabels()), strict=True)
    ]


def test_a_pooled_map_says_the_places_of_its_tokens():
    figure = heat_map(shares(512, 256), places=(100_000, range(4096, 8192)))
    (axes,) = maps(figure)
    down, right = spanned(axes.yaxis), spanned(axes.xaxis)
    assert down == [
        (0, "0"),
        (20e3, "20,000"),
        (40e3, "40,000"),
        (60e3, "60,000"),
        (80e3, "80,000"),
        (99999.5, "100,000"),
    ]
    assert right[0] == (5000, "5,000")
    assert right[-1] == (8000, "8,000")
    assert axes.get_ylim() == (99_999.5, -0.5)
    assert axes.get_xlim() == (4095.5, 8191.5)
    extent = axes.get_window_extent(rendered(figure).get_renderer())
    assert extent.height / extent.width == pytest.approx(2, rel=0.02), "cells are squares, whatever they stand for"


def test_a_map_without_tokens_counts_them():
    figure = heat_map(shares(40, 30))
    (axes,) = maps(figure)
    assert spanned(axes.xaxis) == [(n, str(n)) for n in (0, 5, 10, 15, 20, 25)], "30 is the next one, and not there"
    numbered = heat_map([[0.1, 0.2], [0.3, 0.4]], places=(100, 200))
    (axes,) = maps(numbered)
    places = {text.get_text(): text.get_position() for text in axes.texts}
    assert places["0.20"] == pytest.approx((149.5, 24.5)), "the number is in the middle of its cell"


def test_labels_of_places_stay_between_the_edges_of_their_map():
    figure = head_grid(shares(4, 64, 64), places=(100_000, 100_000))
    renderer = rendered(figure).get_renderer()
    for axes in maps(figure):
        inside = axes.get_window_extent(renderer)
        boxes = [text.get_window_extent(renderer) for text in axes.get_xticklabels() if text.get_text()]
        assert len(boxes) > 2
        assert all(inside.x0 - 1 <= box.x0 and box.x1 <= inside.x1 + 1 for box in boxes)
        assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_a_logarithmic_scale_tells_small_weights_apart_and_shows_zero_as_the_darkest():
    weights = np.array([[1.0, 0.0, 1e-3, 1e-4]])
    plain, logarithmic = (heat_map(weights, ["a"], list("abcd"), log=log) for log in (False, True))
    one, other = (maps(figure)[0].images[0].to_rgba(weights)[0, :, :3] for figure in (plain, logarithmic))
    assert np.abs(one[2] - one[3]).max() < 0.01
    assert np.abs(other[2] - other[3]).max() > 0.1
    np.testing.assert_array_equal(other[1], picture.COLOURS(0.0)[:3])
    np.testing.assert_array_equal(other[0], picture.COLOURS(1.0)[:3])
    assert [bar.get_ylabel() for bar in bars(logarithmic)] == ["weight (log scale)"]
    low, high = maps(heat_map([[1.0, 1e-30]], ["a"], ["a", "b"], log=True))[0].images[0].get_clim()
    assert (low, high) == (picture.FLOOR, 1.0), "what is next to nothing does not take the colours from the rest"


@pytest.mark.parametrize(
    "weights", [np.zeros((2, 2)), np.ones((2, 2)), np.full((2, 2), np.nan), np.full((2, 2), 1e-320)]
)
def test_a_logarithmic_scale_of_one_weight_or_none(weights):
    pixels(heat_map(weights, ["a", "b"], log=True))


def test_one_bright_cell_of_a_huge_map_is_seen(tmp_path):
    weights = np.zeros((4000, 4000), dtype=np.float32)
    weights[1234, 2345] = 1.0
    heat_map(weights, [str(n) for n in range(4000)], path=tmp_path / "map.png")
    seen = mpl.image.imread(tmp_path / "map.png")
    assert max(seen.shape) < 2500, "the picture does not grow with the tokens"
    brightest = (np.abs(seen[..., :3] - picture.COLOURS(1.0)[:3]).max(axis=-1) < 0.2)[:, :1800]
    assert brightest.any()
    row, col = (places.mean() for places in np.nonzero(brightest))
    assert (row / seen.shape[0], col / seen.shape[1]) == pytest.approx((1234 / 4000, 2345 / 4000), abs=0.1)


@pytest.mark.parametrize("shape", [(1, 4000), (4000, 1), (3, 500)])
def test_a_map_with_a_short_side_can_be_seen(shape):
    figure = heat_map(np.zeros(shape))
    box = maps(figure)[0].get_window_extent(rendered(figure).get_renderer())
    assert min(box.width, box.height) > 25
    assert max(figure.get_size_inches()) < 12


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_every_kind_of_file_is_written_without_a_word(tmp_path, capfd, caplog, kind):
    path = tmp_path / f"map.{kind}"
    path.write_text("what was there before")
    with caplog.at_level(logging.WARNING):
        heat_map(shares(5, 5), WORDS, title="谁看谁", path=path)
    assert path.read_bytes()[:5] in {"png": [b"\x89PNG\r"], "svg": [b"<?xml"], "pdf": [b"%PDF-"]}[kind]
    assert [file.name for file in tmp_path.iterdir()] == [path.name], "no unfinished file stays behind"
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_a_picture_that_cannot_be_finished_leaves_the_old_one(tmp_path, monkeypatch):
    def full(figure, path, **options):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    path = tmp_path / "map.png"
    heat_map(np.eye(2), ["a", "b"], path=path)
    before = path.read_bytes()
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    with pytest.raises(FileError, match=r"map\.png: No space left"):
        heat_map(np.eye(2), ["a", "b"], path=path)
    assert [file.name for file in tmp_path.iterdir()] == ["map.png"]
    assert path.read_bytes() == before


def test_the_saved_picture_shows_the_weights(tmp_path):
    heat_map([[0.0, 1.0], [0.5, 0.25]], ["a", "b"], path=tmp_path / "map.png")
    seen = mpl.image.imread(tmp_path / "map.png")
    for weight in (0.0, 0.25, 0.5, 1.0):
        found = np.abs(seen[..., :3] - picture.COLOURS(weight)[:3]).max(axis=-1) < 0.01
        assert found.sum() > 3000, weight


def test_dollars_are_dollars():
    figure = heat_map(np.eye(2), ["$x_1$", "$"], title="costs $5 or $6")
    assert texts(maps(figure)[0].get_xticklabels()) == ["$x_1$", "$"]
    for dollars, letters in (("$x$", "x"), ("$\\frac{1}{2}$", "½")):
        one, other = (rendered(heat_map([[1.0]], [label])) for label in (dollars, letters))
        widths = [label_width(canvas) for canvas in (one, other)]
        assert widths[0] > widths[1] * 1.5, "drawn as it is written, not set as mathematics"


@pytest.mark.parametrize(
    "title", ["", "\n\n", "$\\frac{", "very long " * 1000, "字" * 5000, "a\x1b[0m\tb\u202e", "x" * 3000]
)
def test_a_title_may_be_anything_and_the_picture_stays_a_picture(title, tmp_path):
    figure = heat_map(np.eye(3), ["$\\frac", "a\nb", "x" * 500], title=title, path=tmp_path / "map.svg")
    assert max(figure.get_size_inches()) < 12
    shown = figure.get_suptitle()
    assert shown.count("\n") < picture.LINES
    assert not set(shown) & set("\x1b\t\u202e")
    box = figure._suptitle.get_window_extent(rendered(figure).get_renderer())
    assert box.x0 >= -1
    assert box.x1 <= figure.bbox.x1 + 1


def test_no_picture_has_more_pixels_than_a_screen_can_show(tmp_path):
    picture.saved(mpl.figure.Figure(figsize=(100, 1)), tmp_path / "long.png")
    assert mpl.image.imread(tmp_path / "long.png").shape[1] <= picture.SIDE
    assert max(head_grid(np.zeros((150, 2, 2)), ["a", "b"]).get_size_inches()) < 60


def label_width(canvas):
    (axes,) = maps(canvas.figure)
    return axes.get_yticklabels()[0].get_window_extent(canvas.get_renderer()).width


def test_labels_are_short_and_safe():
    tokens = ["antidisestablishmentarianism", "\n", " the", "", "喜欢" * 20]
    figure = heat_map(np.eye(5), tokens)
    labels = texts(maps(figure)[0].get_yticklabels())
    assert all(0 < cell_len(label) <= picture.LABEL for label in labels)
    assert labels[0].startswith("antidisest")
    assert labels[0].endswith("…")
    assert "\n" not in "".join(labels)
    assert labels[2] != "the"


@pytest.mark.parametrize(("rows", "cols"), [(1, 3), (5, 5), (16, 16), (20, 20), (4, 60), (60, 4), (150, 150)])
def test_nothing_overlaps_and_nothing_is_cut(rows, cols):
    tokens = ["喜欢", "learning", "x", "internationalization"]
    figure = heat_map(
        shares(rows, cols), [tokens[n % 4] for n in range(rows)], [tokens[n % 4] for n in range(cols)], title="a title"
    )
    canvas = rendered(figure)
    renderer = canvas.get_renderer()
    (axes,) = maps(figure)
    across = [label.get_window_extent(renderer) for label in axes.get_xticklabels()]
    upwards = [label.get_window_extent(renderer) for label in axes.get_yticklabels()]
    label = axes.get_xticklabels()[0]
    if label.get_rotation() == 45:  # slanted ones pass by each other, and their frames do not
        apart = np.diff(axes.get_xticks())[0] * axes.get_window_extent(renderer).width / cols * 72 / figure.dpi
        assert apart * np.sin(np.pi / 4) > label.get_fontsize() * 1.1
    else:
        assert all(one.x1 <= other.x0 + 1 for one, other in pairwise(across))
    assert all(one.y0 >= other.y1 - 1 for one, other in pairwise(upwards))
    for box in across + upwards:
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1
    inside = axes.get_window_extent(renderer)
    assert all(box.x1 <= inside.x0 for box in upwards)
    assert all(box.y1 <= inside.y0 + 1 for box in across)
    bar = bars(figure)[0].get_window_extent(renderer)
    assert bar.x0 > inside.x1
    assert (bar.y0, bar.y1) == pytest.approx((inside.y0, inside.y1), abs=1)
    title = figure._suptitle.get_window_extent(renderer)
    assert inside.y1 <= title.y0 <= inside.y1 + 20


@pytest.mark.parametrize(("heads", "across"), [(1, 1), (3, 3), (4, 4), (5, 3), (6, 3), (8, 4), (12, 4)])
def test_heads_stand_side_by_side_on_one_scale(heads, across):
    weights = shares(heads, 3, 3)
    figure = head_grid(weights, ["我", "喜欢", "AI"], title="heads")
    panels = maps(figure)
    assert [axes.get_title() for axes in panels] == [f"head {head}" for head in range(heads)]
    assert {axes.images[0].get_clim() for axes in panels} == {(0, weights.max())}
    assert panels[0].get_gridspec().ncols == across
    assert len(bars(figure)) == 1
    for head, axes in enumerate(panels):
        np.testing.assert_array_equal(axes.images[0].get_array(), weights[head])
        assert texts(axes.get_yticklabels()) == (["我", "喜欢", "AI"] if head % across == 0 else [""] * 3)
        assert texts(axes.get_xticklabels()) == (["我", "喜欢", "AI"] if head + across >= heads else [""] * 3)
    assert not any(axes.axison for axes in figure.axes if axes not in panels)


def test_heads_have_the_names_they_are_given():
    figure = head_grid(shares(2, 3, 3), WORDS[:3], names=["layer 3 head 5", "层 4 $x$"])
    assert [axes.get_title() for axes in maps(figure)] == ["layer 3 head 5", "层 4 $x$"]
    rendered(figure)
    names = head_grid(shares(1, 3, 3), WORDS[:3], names=["x" * 500])
    assert len(maps(names)[0].get_title()) < 30


@pytest.mark.parametrize("heads", [17, 50, 64, 97, 128])
def test_many_heads_leave_few_places_empty(heads):
    across = plot._across(heads)
    down = -(-heads // across)
    assert across * down - heads <= max(across // 2, heads // 8)
    assert down <= 2 * across


def test_weights_that_are_not_numbers_are_grey():
    figure = heat_map([[np.nan, np.inf, 0.5]], ["a"], ["a", "b", "c"])
    assert texts(maps(figure)[0].texts) == ["nan", "inf", "0.50"]
    assert {text.get_color() for text in maps(figure)[0].texts} == {"black"}
    assert (pixels(figure)[..., :3] == [211, 211, 211]).all(axis=-1).sum() > 500
    pixels(heat_map(np.full((2, 2), np.nan), ["a", "b"]))
    pixels(heat_map(np.zeros((2, 2)), ["a", "b"]))


def test_the_users_settings_are_left_alone_and_do_not_turn_the_map_round():
    before = dict(mpl.rcParams)
    for figure in (
        heat_map(shares(5, 5), WORDS, title="题 مرحبا 🎉"),
        head_grid(shares(2, 5, 5), WORDS, log=True),
        all_heads(shares(2, 3, 4, 4), title="नमस्ते"),
        layer_curves(shares(2, 3), shares(2, 3)),
    ):
        rendered(figure)
    assert dict(mpl.rcParams) == before
    style = {
        "image.origin": "lower",
        "image.aspect": "auto",
        "axes.grid": True,
        "font.weight": "bold",
        "font.style": "italic",
    }
    with mpl.rc_context(style):
        figure = heat_map([[1.0, 0.0], [0.0, 0.5]], ["first", "second"])
        (axes,) = maps(figure)
        assert axes.get_ylim() == (1.5, -0.5), "the first query on top"
        assert not any(line.get_visible() for line in axes.get_xgridlines())
        rendered(figure)


def test_no_window_no_pyplot_and_no_import_of_the_font_packages():
    program = (
        "import io, sys; from regard.view.plot import heat_map; heat_map([[1.0]], ['猫한🎉']).savefig(io.BytesIO());"
        "unwanted = {'matplotlib.pyplot', 'zhplot', 'pylopdf_fonts_ko', 'manimgx_fonts', 'torch'};"
        "print(sorted(unwanted & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert (answer.stdout, answer.stderr) == ("[]\n", "")


def test_without_matplotlib_it_says_what_to_install():
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from regard.errors import MissingExtra\n"
        "from regard.lessons import plot_attention_weights\n"
        "try: plot_attention_weights([[1.0]], ['a'])\n"
        "except MissingExtra as error: print(error)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "plots need matplotlib: pip install regard[plot]\n"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: heat_map(np.zeros((2, 3)), ["a", "b"]), ShapeError, "2 × 3.*2 tokens for the queries and 2 for"),
        (lambda: heat_map(np.zeros((2, 2, 2)), ["a", "b"]), ShapeError, r"\(2, 2, 2\).*\(queries, keys\)"),
        (lambda: head_grid(np.zeros((2, 2)), ["a", "b"]), ShapeError, r"\(2, 2\).*\(heads, queries, keys\)"),
        (lambda: heat_map(np.zeros((0, 0)), []), ShapeError, "nothing to draw"),
        (lambda: head_grid(np.zeros((0, 1, 1)), ["a"]), ShapeError, "nothing to draw"),
        (lambda: head_grid(np.zeros((2, 1, 1)), ["a"], names=["x"]), ShapeError, "2 maps and 1 names"),
        (lambda: heat_map(np.zeros((2, 2)), None, ["a", "b"]), OptionError, "give rows"),
        (lambda: heat_map(np.zeros((2, 2)), ["a", "b"], places=(2, 2)), OptionError, "tokens at its sides or places"),
        (lambda: heat_map(np.zeros((9, 2)), places=(4, 2)), OptionError, "9 × 2 cannot stand for 4 × 2 tokens"),
        (lambda: heat_map(np.zeros((2, 2)), places=(4,)), OptionError, r"\(4,\); give \(queries, keys\)"),
        (lambda: heat_map(np.zeros((2, 2)), places=("4", 4)), OptionError, "give"),
        (lambda: heat_map(np.zeros((2, 2)), places=(range(0, 9, 2), 4)), OptionError, r"range\(0, 9, 2\)"),
        (lambda: heat_map([["a"]], ["a"]), DtypeError, "must be numbers"),
        (lambda: heat_map([[1.0], [1.0, 2.0]], ["a", "b"]), DtypeError, "must be numbers"),
        (lambda: heat_map([[1.0]], ["a"], path="map.jpeg"), OptionError, r"map\.jpeg.*\.png, \.svg, \.pdf"),
        (lambda: heat_map([[1.0]], ["a"], path="map"), OptionError, r"\.png"),
        (lambda: heat_map([[1.0]], ["a"], path="no/such/folder/map.png"), FileError, r"no/such/folder/map\.png"),
    ],
)
def test_bad_input_is_named(call, error, words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=words):
        call()
    assert not list(tmp_path.iterdir())
