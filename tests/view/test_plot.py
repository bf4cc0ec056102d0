"""The heat map as it is drawn: its parts, its pixels, its fonts, and that nothing of the user's is touched."""

import logging
import subprocess
import sys
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from rich.cells import cell_len

from regard.errors import DtypeError, FileError, OptionError, ShapeError
from regard.view import fonts, plot
from regard.view.plot import head_grid, heat_map

WORDS = ["我", "喜欢", "学习", "AI", "技术"]


def shares(*shape):
    powers = np.exp(2 * np.random.default_rng(5).normal(size=shape))
    return powers / powers.sum(axis=-1, keepdims=True)


def maps(figure):
    return [axes for axes in figure.axes if axes.images]


def bars(figure):
    """The colour bars: axes inside the axes of a map."""
    return [bar for axes in maps(figure) for bar in axes.child_axes]


def texts(labels):
    return [label.get_text() for label in labels]


def rendered(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas


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
    lightness = [luminance(plot.COLOURS(step)) for step in np.linspace(0, 1, 20)]
    assert lightness == sorted(lightness), "so that the map is right in grey, and to the colour-blind"


def test_many_tokens_have_no_numbers_and_fewer_labels():
    figure = heat_map(shares(200, 200), [f"w{n}" for n in range(200)])
    (axes,) = maps(figure)
    assert not axes.texts
    labels = texts(axes.get_yticklabels())
    assert 20 < len(labels) < 200
    assert labels == [f"w{place}" for place in axes.get_yticks()]


@pytest.mark.parametrize("word", ["我", "貓", "ありがとう"])
def test_chinese_and_japanese_are_drawn_and_no_boxes(word):
    other = "".join(chr(ord(sign) + 1) for sign in word)
    assert fonts.drawable(word + other) == word + other
    one, two = (pixels(heat_map([[1.0]], [label])) for label in (word, other))  # a warning would be an error here
    assert one.shape == two.shape
    assert (one != two).any(), "boxes are all alike"


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
    picture = mpl.image.imread(tmp_path / "map.png")
    for weight in (0.0, 0.25, 0.5, 1.0):
        found = np.abs(picture[..., :3] - plot.COLOURS(weight)[:3]).max(axis=-1) < 0.01
        assert found.sum() > 3000, weight


def test_dollars_are_dollars():
    figure = heat_map(np.eye(2), ["$x_1$", "$"], title="costs $5 or $6")
    assert texts(maps(figure)[0].get_xticklabels()) == ["$x_1$", "$"]
    for dollars, letters in (("$x$", "x"), ("$\\frac{1}{2}$", "½")):
        one, other = (rendered(heat_map([[1.0]], [label])) for label in (dollars, letters))
        widths = [label_width(canvas) for canvas in (one, other)]
        assert widths[0] > widths[1] * 1.5, "drawn as it is written, not set as mathematics"


def label_width(canvas):
    (axes,) = maps(canvas.figure)
    return axes.get_yticklabels()[0].get_window_extent(canvas.get_renderer()).width


def test_labels_are_short_and_safe():
    tokens = ["antidisestablishmentarianism", "\n", " the", "", "喜欢" * 20]
    figure = heat_map(np.eye(5), tokens)
    labels = texts(maps(figure)[0].get_yticklabels())
    assert all(0 < cell_len(label) <= plot.LABEL for label in labels)
    assert labels[0].startswith("antidisest")
    assert labels[0].endswith("…")
    assert "\n" not in "".join(labels)
    assert labels[2] != "the"


@pytest.fixture
def only_latin(monkeypatch):
    """A machine whose one font is matplotlib's own."""
    monkeypatch.setattr(fonts, "_chain", lambda: ("DejaVu Sans",))
    monkeypatch.setattr(fonts, "_regular_families", lambda: {"DejaVu Sans"})
    monkeypatch.setattr(fonts, "_families", {})


@pytest.mark.usefixtures("only_latin")
def test_a_character_that_no_font_has_is_written_as_its_number(capfd, caplog):
    figure = heat_map(np.eye(3), ["猫", "a한", "b"], title="猫\nb")
    assert texts(maps(figure)[0].get_yticklabels()) == ["U+732B", "aU+D55C", "b"]
    assert figure.get_suptitle() == "U+732B\nb"
    rendered(figure)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_a_font_outside_the_chain_is_found(monkeypatch):
    monkeypatch.setattr(fonts, "_chain", lambda: ("DejaVu Sans",))
    monkeypatch.setattr(fonts, "_regular_families", lambda: {"DejaVu Sans", "Noto Sans SC", "no such font"})
    monkeypatch.setattr(fonts, "_families", {})
    assert fonts.drawable("a猫") == "a猫"
    assert fonts.families_for(["a猫"]) == ["DejaVu Sans", "Noto Sans SC"]
    assert fonts.families_for(["a"]) == ["DejaVu Sans"]


def test_fonts_without_a_regular_weight_and_the_font_of_boxes_are_left_out():
    families = fonts._regular_families()
    assert "DejaVu Sans" in families
    assert not [family for family in families if "Last Resort" in family]


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


def test_weights_that_are_not_numbers_are_grey():
    figure = heat_map([[np.nan, np.inf, 0.5]], ["a"], ["a", "b", "c"])
    assert texts(maps(figure)[0].texts) == ["nan", "inf", "0.50"]
    assert {text.get_color() for text in maps(figure)[0].texts} == {"black"}
    assert (pixels(figure)[..., :3] == [211, 211, 211]).all(axis=-1).sum() > 500
    pixels(heat_map(np.full((2, 2), np.nan), ["a", "b"]))
    pixels(heat_map(np.zeros((2, 2)), ["a", "b"]))


def test_the_users_settings_are_left_alone_and_do_not_turn_the_map_round():
    before = dict(mpl.rcParams)
    heat_map(shares(5, 5), WORDS, title="题")
    assert dict(mpl.rcParams) == before
    style = {"image.origin": "lower", "image.aspect": "auto", "axes.grid": True, "font.weight": "bold"}
    with mpl.rc_context(style):
        figure = heat_map([[1.0, 0.0], [0.0, 0.5]], ["first", "second"])
        (axes,) = maps(figure)
        assert axes.get_ylim() == (1.5, -0.5), "the first query on top"
        assert not any(line.get_visible() for line in axes.get_xgridlines())
        rendered(figure)


def test_no_window_no_pyplot_and_no_zhplot():
    program = (
        "import io, sys; from regard.view.plot import heat_map; heat_map([[1.0]], ['猫']).savefig(io.BytesIO());"
        "print([name for name in ('matplotlib.pyplot', 'zhplot', 'torch') if name in sys.modules])"
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
