"""The plots of a whole model: every head as a thumbnail, and numbers about heads over the layers."""

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest

from regard.errors import DtypeError, OptionError, ShapeError
from regard.view import picture
from regard.view.plot import all_heads, layer_curves
from tests.view.figures import rendered, texts


def shares(*shape):
    powers = np.exp(2 * np.random.default_rng(7).normal(size=shape))
    return powers / powers.sum(axis=-1, keepdims=True)


def tile(figure, layer, head):
    """The colours of one thumbnail in the mosaic, margins and all."""
    (axes,) = figure.axes
    colours = axes.images[0].get_array()
    right, bottom = axes.get_xlim()[1] + 0.5, axes.get_ylim()[0] + 0.5
    high, wide = colours.shape[0] // round(bottom), colours.shape[1] // round(right)
    return colours[layer * high : (layer + 1) * high, head * wide : (head + 1) * wide]


def inside(figure, layer, head):
    """The same, without what cannot be seen."""
    colours = tile(figure, layer, head)
    seen = colours[..., 3] > 0
    return colours[np.ix_(seen.any(axis=1), seen.any(axis=0))]


def bar(figure):
    return figure.axes[0].child_axes[0]


@pytest.mark.parametrize("shape", [(12, 12), (30, 9), (6, 12), (1, 1), (2, 32), (80, 64)])
def test_every_head_is_in_its_row_and_column(shape):
    layers, heads = shape
    maps = np.zeros((layers, heads, 8, 8))
    for layer, head in np.ndindex(shape):
        maps[layer, head, layer % 8, head % 8] = 1.0
    figure = all_heads(maps, title="all heads")
    for layer, head in {(0, 0), (layers - 1, 0), (layers - 1, heads - 1), (layers // 2, heads // 2)}:
        colours = inside(figure, layer, head)
        bright = np.argwhere((colours[..., :3] == picture.COLOURS(1.0, bytes=True)[:3]).all(axis=-1))
        middle = bright.mean(axis=0) / colours.shape[:2] * 8
        assert tuple(middle.astype(int)) == (layer % 8, head % 8)
    rendered(figure)


@pytest.mark.parametrize("shape", [(12, 12), (30, 9), (6, 12), (80, 64), (1, 128)])
def test_numbers_at_the_sides_do_not_overlap_and_the_picture_has_a_size_that_can_be_looked_at(shape):
    figure = all_heads(np.zeros((*shape, 4, 4)), title="all heads")
    renderer = rendered(figure).get_renderer()
    (axes,) = figure.axes
    down, right = axes.get_yticklabels(), axes.get_xticklabels()
    assert texts(down)[:2] == ["0", "1"][: len(down)]
    assert texts(right)[0] == "0"
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("layer", "head")
    upwards = [text.get_window_extent(renderer) for text in down]
    across = [tick.label2.get_window_extent(renderer) for tick in axes.xaxis.get_major_ticks()]
    assert all(one.y0 >= other.y1 - 1 for one, other in pairwise(upwards))
    assert all(one.x1 < other.x0 for one, other in pairwise(across))
    assert max(figure.get_size_inches()) < 18
    box = axes.get_window_extent(renderer)
    assert box.width / shape[1] == pytest.approx(box.height / shape[0], rel=0.02), "square maps are squares"


def test_each_head_has_its_own_scale_or_all_have_one():
    maps = np.stack([shares(2, 8, 8), 0.01 * shares(2, 8, 8)])
    brightest = np.array(picture.COLOURS(1.0, bytes=True))
    own, one = (all_heads(maps, one_scale=one_scale) for one_scale in (False, True))
    for layer, head in np.ndindex(2, 2):
        assert (tile(own, layer, head) == brightest).all(axis=-1).any()
    assert sum((tile(one, layer, head) == brightest).all(axis=-1).any() for layer, head in np.ndindex(2, 2)) == 1
    assert (own.axes[0].images[0].get_array() != one.axes[0].images[0].get_array()).any()
    assert bar(own).get_ylabel().replace("\n", " ") == "share of the head's highest weight"
    assert bar(one).get_ylabel() == "weight"
    assert bar(one).get_ylim()[1] == pytest.approx(maps.max())


def test_a_head_that_is_not_there_leaves_its_place_empty_and_a_lost_weight_is_grey():
    maps = shares(3, 4, 8, 8)
    maps[1, 2:] = np.nan
    maps[2, 3, 5, 5] = np.nan
    figure = all_heads(maps)
    assert (tile(figure, 1, 2)[..., 3] == 0).all()
    assert (tile(figure, 1, 3)[..., 3] == 0).all()
    assert (tile(figure, 1, 1)[..., 3] == 255).any()
    grey = (tile(figure, 2, 3)[..., :3] == 211).all(axis=-1)
    assert 0 < grey.sum() < grey.size / 8
    rendered(all_heads(np.full((2, 2, 4, 4), np.nan)))
    rendered(all_heads(np.zeros((2, 2, 4, 4)), log=True))


def test_thumbnails_of_large_maps_keep_their_lines():
    maps = np.zeros((2, 20, 300, 300), dtype=np.float16)
    maps[1, 4, 17] = 1.0
    figure = all_heads(maps)
    assert max(figure.axes[0].images[0].get_array().shape) < 6000
    colours = inside(figure, 1, 4)
    assert ((colours[..., :3] == picture.COLOURS(1.0, bytes=True)[:3]).all(axis=-1).sum(axis=0) == 1).all()


def test_layers_have_the_names_they_are_given(tmp_path):
    figure = all_heads(shares(2, 3, 4, 9), layers=["decoder 0", "层 7"], path=tmp_path / "all.svg")
    assert texts(figure.axes[0].get_yticklabels()) == ["decoder 0", "层 7"]
    figure = layer_curves(shares(2, 3), shares(2, 3), layers=[3, 7], path=tmp_path / "curves.svg")
    assert texts(figure.axes[1].get_xticklabels()) == ["3", "7"]


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_both_are_saved_as_every_kind(tmp_path, kind):
    all_heads(shares(3, 3, 8, 8), title="所有的头", path=tmp_path / f"all.{kind}")
    layer_curves(shares(3, 3), shares(3, 3), title="熵", path=tmp_path / f"curves.{kind}")
    for name in ("all", "curves"):
        begins = {"png": b"\x89PNG\r", "svg": b"<?xml", "pdf": b"%PDF-"}[kind]
        assert (tmp_path / f"{name}.{kind}").read_bytes()[:5] == begins
    assert len(list(tmp_path.iterdir())) == 2


def test_curves_have_a_dot_for_each_head_and_a_line_through_the_means():
    entropy, distance = shares(4, 6), 100 * shares(4, 6)
    entropy[2, 3:] = distance[2, 3:] = np.nan
    entropy[3] = distance[3] = np.nan
    figure = layer_curves(entropy, distance, title="curves")
    for axes, numbers in zip(figure.axes, (entropy, distance), strict=True):
        dots, line = axes.lines
        assert {(x, y) for x, y in zip(*dots.get_data(), strict=True)} == {
            (layer, number) for (layer, _), number in np.ndenumerate(numbers) if np.isfinite(number)
        }
        np.testing.assert_array_equal(line.get_xdata(), [0, 1, 2])
        means = [numbers[0].mean(), numbers[1].mean(), numbers[2, :3].mean()]
        np.testing.assert_allclose(line.get_ydata(), means)
        assert axes.get_ylim()[0] == 0
    assert [axes.get_ylabel() for axes in figure.axes] == ["mean entropy (nats)", "mean distance (tokens)"]
    assert texts(figure.axes[1].get_xticklabels()) == ["0", "1", "2", "3"]
    rendered(figure)
    rendered(layer_curves(np.full((2, 2), np.nan), np.zeros((2, 2))))


@pytest.mark.parametrize("layers", [1, 12, 80, 300])
def test_names_of_layers_do_not_run_into_each_other(layers):
    figure = layer_curves(shares(layers, 3), shares(layers, 3), layers=[f"decoder {n}" for n in range(layers)])
    renderer = rendered(figure).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.axes[1].get_xticklabels()]
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
    assert max(figure.get_size_inches()) <= 14
    legend = figure.axes[0].get_legend().get_window_extent(renderer)
    assert legend.y0 >= figure.axes[0].get_window_extent(renderer).y1 - 1, "the legend hides no dot"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: all_heads(np.zeros((2, 2, 2))), ShapeError, r"\(2, 2, 2\).*\(layers, heads, rows, columns\)"),
        (lambda: all_heads(np.zeros((2, 0, 2, 2))), ShapeError, "nothing to draw"),
        (lambda: all_heads(np.zeros((2, 2, 2, 2)), layers=["a"]), ShapeError, "2 layers and 1 names"),
        (lambda: all_heads([["a"]]), DtypeError, "must be numbers"),
        (lambda: all_heads(np.zeros((2, 2, 2, 2)), path="all.gif"), OptionError, r"all\.gif.*\.png"),
        (lambda: layer_curves(np.zeros((2, 2)), np.zeros((2, 3))), ShapeError, r"\(2, 2\) and distance \(2, 3\)"),
        (lambda: layer_curves(np.zeros(2), np.zeros(2)), ShapeError, r"\(layers, heads\)"),
        (lambda: layer_curves(np.zeros((0, 2)), np.zeros((0, 2))), ShapeError, "must be"),
        (lambda: layer_curves(np.zeros((2, 2)), np.zeros((2, 2)), layers="abc"), ShapeError, "2 layers and 3 names"),
    ],
)
def test_bad_input_is_named(call, error, words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=words):
        call()
    assert not list(tmp_path.iterdir())


def test_the_users_style_does_not_turn_it_round():
    with mpl.rc_context({"image.origin": "lower", "axes.grid": True, "xtick.top": True, "font.weight": "bold"}):
        figure = all_heads(shares(3, 2, 4, 4))
        rendered(figure)
        assert figure.axes[0].get_ylim() == (2.5, -0.5)
        assert not any(line.get_visible() for line in figure.axes[0].get_xgridlines())
