"""A record as a plot: one head, a layer, the model; short texts weight by weight, long ones pooled."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from regard.errors import FileError, OptionError
from regard.record import Tokens
from regard.view import seen, sheet

from .records import WORDS, causal, layer, record

N = len(WORDS)
SELF, FAR = range(N), [5, 6, 5, 6, 2, 1, 2, 3]


@pytest.fixture
def plain():
    return record(layer([SELF, FAR, SELF]), layer([FAR, SELF, FAR], index=1), model="by hand")


def images(figure):
    return [np.asarray(axes.images[0].get_array()) for axes in figure.axes if axes.images]


def title(figure):
    return figure.get_suptitle()


def labels(figure):
    axes = next(axes for axes in figure.axes if axes.images)
    return [text.get_text() for text in axes.get_yticklabels()], [text.get_text() for text in axes.get_xticklabels()]


def test_one_head(plain):
    figure = sheet.plot(plain, layer=0, head=1)
    (image,) = images(figure)
    np.testing.assert_allclose(image, np.eye(N)[FAR], atol=1e-6)
    assert title(figure) == "by hand\nlayer 0 head 1 (encoder)"
    assert labels(figure)[0][:3] == ["[CLS]", "␣the", "␣cat"]


def test_words(plain):
    (image,) = images(sheet.plot(plain, layer=0, head=1, words=True))
    assert image.shape == (7, 7)


def test_all_heads_of_a_layer(plain):
    figure = sheet.plot(plain, layer=1)
    found = images(figure)
    assert len(found) == 3
    np.testing.assert_allclose(found[1], np.eye(N), atol=1e-6)
    assert title(figure) == "by hand\nlayer 1 (encoder)"


def test_every_head(plain):
    assert title(sheet.plot(plain)) == "by hand"


def test_layers_of_different_sizes():
    """A translator: the maps of its layers have neither the same sides nor the same number of heads."""
    rows = Tokens.of(["<s>", "le", "chat"])
    cross = layer([[2, 1, 2]], index=1, kind="cross", queries=rows)
    assert sheet.plot(record(layer([SELF, FAR]), cross)).axes


def test_tokens_that_the_model_wrote_are_marked():
    tokens = Tokens(("a", " b", " c"), (True,) * 3, None, generated=2)
    made = record(causal([[0, 0, 1]], tokens))
    for figure in (sheet.plot(made, layer=0, head=0), sheet.plot(made, layer=0)):
        assert labels(figure) == (["a", "␣b", "»␣c"], ["a", "␣b", "»␣c"])


def test_a_part_of_a_pair():
    tokens = Tokens(WORDS, (True,) * N, (0,) * 3 + (1,) * 5)
    (image,) = images(sheet.plot_choice(seen.choose(record(layer([FAR], keys=tokens)), pair=True)))
    np.testing.assert_allclose(image, np.eye(N)[FAR][:3, 3:], atol=1e-6)


def test_long_texts_are_pooled(monkeypatch):
    monkeypatch.setattr(sheet, "DENSE", 10)
    monkeypatch.setattr(sheet, "POOLED", 8)
    tokens = Tokens.of([str(place) for place in range(24)])
    made = record(layer([list(range(23, -1, -1))], keys=tokens))
    (one,) = images(sheet.plot(made, layer=0, head=0, log=False))
    np.testing.assert_allclose(one, np.eye(8)[::-1] / 3, atol=1e-6)
    (four,) = images(sheet.plot(made, layer=0, log=False))
    np.testing.assert_allclose(four, np.eye(4)[::-1] / 6, atol=1e-6)


def test_entropy_and_distance(plain):
    """A dot for each head, layer by layer: heads that look at one key have no entropy, and go as far as they look."""
    upper, lower = sheet.plot_spread(plain).axes
    far = np.abs(np.arange(N) - FAR).mean()
    np.testing.assert_allclose(upper.get_lines()[0].get_ydata(), np.zeros(6), atol=1e-5)
    np.testing.assert_allclose(lower.get_lines()[0].get_ydata(), [0, far, 0, far, 0, far], atol=1e-5)


def test_files(plain, tmp_path):
    for name in ("a.png", "b.svg", "c.pdf"):
        sheet.plot(plain, tmp_path / name, layer=0)
        assert (tmp_path / name).stat().st_size > 1000
    with pytest.raises(OptionError, match=r"\.png, \.svg, \.pdf"):
        sheet.plot(plain, tmp_path / "d.bmp")
    with pytest.raises(FileError, match="No such file"):
        sheet.plot(plain, tmp_path / "no" / "d.png")
    with pytest.raises(OptionError, match="no layer 7; the layers are 0 to 1"):
        sheet.plot(plain, layer=7)
