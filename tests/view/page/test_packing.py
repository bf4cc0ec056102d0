"""What is read back out of a page is what the record says."""

import ml_dtypes
import numpy as np
import pytest
import torch

from regard.errors import OptionError
from regard.formula import masks, positions
from regard.formula.positions.bias import as_bias
from regard.record.measures import head_table
from regard.view.page import packing
from regard.view.page.coding import decoded, encoded, thumbnail_bytes, thumbnail_values
from regard.view.page.describe import chosen
from regard.view.page.document import read_block
from regard.view.page.glimpse import SCORES, glimpse
from regard.view.page.packing import pack
from regard.view.page.shaping import bits_of, ranges_of

from .pages import description_of, layer_of, map_of, numbers, page_of, record_of, weights_in

HOLES = np.random.default_rng(0).random((40, 40)) < 0.5
HOLES[7] = False


def toeplitz(queries, keys):
    return numbers(2, queries + keys, seed=4)[:, np.arange(keys) - np.arange(queries)[:, None] + queries]


MASKS = {
    "causal": (masks.causal(), "ranges"),
    "window": (masks.window(3, 2), "ranges"),
    "padding": (masks.padding(31), "ranges"),
    "causal and padded": (masks.causal() & masks.padding(31), "ranges"),
    "ranges": (masks.ranges(np.arange(40) // 2, np.arange(40) - 3), "ranges"),
    "blocks": (masks.blocks(8), "ranges"),
    "keys before": (masks.keys(np.arange(40) > 5), "ranges"),
    "keys between": (masks.keys(np.arange(40) % 3 > 0), "bits"),
    "global": (masks.window(2, 2) | masks.global_tokens([0, 20]), "bits"),
    "segments": (masks.segments(np.arange(40) // 11), "ranges"),
    "not": (~masks.window(1, 1), "bits"),
    "given": (masks.given(HOLES), "bits"),
    "given without holes": (masks.given(np.tril(np.ones((40, 40), dtype=bool))), "ranges"),
    "given of all": (masks.given(np.ones((40, 40), dtype=bool)), None),
}
SHAPES = {
    "grouped": {"heads": 4, "groups": 2},
    "one key head": {"heads": 4, "groups": 1},
    "more keys": {"queries": 30, "keys": 50, "mask": masks.causal()},
    "more queries": {"queries": 50, "keys": 30},
    "cached": {"queries": 30, "keys": 50, "offset": 20, "bias": positions.alibi(2)},
    "softcap": {"softcap": 2.0},
    "sinks": {"sinks": np.asarray([0.5, 2.0], dtype=np.float32)},
    "alibi": {"bias": positions.alibi(2), "mask": masks.causal()},
    "t5": {"bias": positions.t5(numbers(8, 2, seed=3), both_ways=True, farthest=20)},
    "distances": {"bias": positions.by_distance(numbers(2, 79, seed=3), -39)},
    "given by distance": {"bias": as_bias(toeplitz(40, 40))},
    "a bias that is a mask": {"bias": as_bias(np.where(np.tri(40, dtype=bool), 0, -np.inf)[None])},
}
DTYPES = {
    "float16": ("f16", lambda array: array.astype(np.float16)),
    "bfloat16": ("bf16", lambda array: array.astype(ml_dtypes.bfloat16)),
    "float32": ("i16", lambda array: array),
    "float64": ("i16", lambda array: array.astype(np.float64)),
    "torch.float16": ("f16", lambda array: torch.from_numpy(array).half()),
    "torch.bfloat16": ("bf16", lambda array: torch.from_numpy(array).bfloat16()),
    "torch.float32": ("i16", torch.from_numpy),
}


def require_equal(page, layer, tolerance):
    for head in layer.heads:
        own = np.asarray(head.weights().tolist())
        np.testing.assert_allclose(weights_in(page, head=head.place), own, atol=tolerance, rtol=0)
    told = description_of(page)["precision"]
    assert told["bits"] == 16
    assert told["checked"] > 0
    assert told["error"] <= tolerance


@pytest.mark.parametrize("name", MASKS)
def test_masks(tmp_path, name):
    mask, form = MASKS[name]
    layer = layer_of(map_of(mask=mask))
    page = page_of(record_of(layer), tmp_path)
    assert description_of(page)["layers"][0]["packed"]["mask"] == form
    assert description_of(page)["layers"][0]["packed"]["form"] == "dots"
    require_equal(page, layer, 1e-4)


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(tmp_path, name):
    layer = layer_of(map_of(**SHAPES[name]))
    page = page_of(record_of(layer), tmp_path)
    assert description_of(page)["layers"][0]["packed"]["form"] == "dots"
    require_equal(page, layer, 1e-4)


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(tmp_path, name):
    dtype, convert = DTYPES[name]
    layer = layer_of(map_of(convert=convert, mask=masks.causal()))
    page = page_of(record_of(layer), tmp_path)
    assert description_of(page)["layers"][0]["packed"]["dtype"] == dtype
    require_equal(page, layer, 1e-4 if dtype == "i16" else 2e-6)  # half precision is kept to the bit


def test_weights_are_kept_where_they_are_fewer(tmp_path):
    layer = layer_of(map_of(queries=10, keys=10, width=16))
    page = page_of(record_of(layer), tmp_path)
    assert description_of(page)["layers"][0]["packed"]["form"] == "weights"
    require_equal(page, layer, 2.5e-4)


def test_a_causal_map_counts_half():
    wide = {"queries": 30, "keys": 30, "width": 8}
    forms = [
        pack(chosen(record_of(layer_of(map_of(mask=mask, **wide))))).details[0]["packed"]["form"]
        for mask in (None, masks.causal())
    ]
    assert forms == ["dots", "weights"]


@pytest.mark.parametrize(
    "options",
    [
        {"bias": as_bias(numbers(2, 40, 40))},
        {"bias": as_bias(numbers(1, 40, seed=5))},
        {"mask": masks.given(np.stack((np.tri(40, dtype=bool), HOLES)))},
    ],
    ids=["bias", "bias of keys", "a mask for each head"],
)
def test_what_does_not_follow_from_the_distance_is_kept_as_weights(tmp_path, monkeypatch, options):
    layer = layer_of(map_of(**options))
    page = page_of(record_of(layer), tmp_path)
    assert description_of(page)["layers"][0]["packed"]["form"] == "weights"
    require_equal(page, layer, 2.5e-4)
    monkeypatch.setattr(packing, "LARGEST_GIVEN", 100)
    with pytest.raises(OptionError, match=r"layer 0 has a bias .* 40 × 40 .* regard serve"):
        pack(chosen(record_of(layer)))


def test_a_page_too_large_for_a_browser(monkeypatch):
    monkeypatch.setattr(packing, "LARGEST_PAGE", 100)
    with pytest.raises(OptionError, match=r"2 heads .* choose some"):
        pack(chosen(record_of(layer_of(map_of()))))


def test_whole_numbers_are_finer_than_half_precision():
    matrix = numbers(512, 64)
    half = np.abs(matrix.astype(np.float16).astype(np.float32) - matrix)
    whole = np.abs(decoded(encoded(matrix, "i16"), "i16", 64) - matrix)
    assert whole.mean() * 3 < half.mean()
    assert len(encoded(matrix, "i16")) == 512 * 64 * 2 + 64 * 4


@pytest.mark.parametrize("dtype", ["f16", "bf16", "i16"])
@pytest.mark.parametrize("matrix", [np.zeros((3, 2)), np.zeros((0, 4)), np.full((2, 2), 1e-40), np.eye(3) * 6e4])
def test_any_matrix_comes_back(dtype, matrix):
    found = decoded(encoded(matrix.astype(np.float32), dtype), dtype, matrix.shape[1])
    np.testing.assert_allclose(found, matrix, rtol=1e-2, atol=1e-7)


def test_nan_in_a_key_spoils_the_rows_that_see_it_and_no_others(tmp_path):
    found = map_of(mask=masks.causal())
    found.keys[:, 20] = np.nan
    page = page_of(record_of(layer_of(found)), tmp_path)
    here = weights_in(page)
    assert np.isfinite(here[:20]).all()
    assert np.isnan(here[20:, :20]).all()
    np.testing.assert_allclose(here[:20].sum(axis=-1), 1, atol=1e-3)


def test_rows_that_see_nothing_are_zeros(tmp_path):
    layer = layer_of(map_of(mask=masks.ranges(np.full(40, 3), np.arange(40) - 5)))
    assert not weights_in(page_of(record_of(layer), tmp_path))[:8].any()


def test_masks_of_long_texts_are_not_read_cell_by_cell(monkeypatch):
    long = map_of(heads=1, queries=50_000, keys=50_000, width=1, mask=masks.causal() & masks.padding(49_990))
    tiles = []
    kind = type(masks.causal())
    whole = kind.tile
    monkeypatch.setattr(kind, "tile", lambda *args, **names: tiles.append(1) or whole(*args, **names))
    found = ranges_of(long)
    assert not found.first.any()
    np.testing.assert_array_equal(found.last, np.minimum(np.arange(50_000), 49_989))
    assert len(tiles) < 150  # of 1,225


def test_bits():
    found = map_of(mask=masks.given(HOLES))
    assert np.array_equal(np.unpackbits(np.frombuffer(bits_of(found), np.uint8).reshape(40, 5), axis=-1), HOLES)


class TestLooks:
    """Thumbnails, scores and overviews."""

    def test_thumbnails(self, tmp_path):
        layer = layer_of(map_of(queries=100, keys=100, mask=masks.causal()))
        page = page_of(record_of(layer), tmp_path)
        assert description_of(page)["layers"][0]["thumbnail"] == [48, 48]
        found = thumbnail_values(np.frombuffer(read_block(page, "thumbnails:0"), np.uint8)).reshape(2, 48, 48)
        own = layer.pooled(48, 48) * 2  # a cell's share of a row: 2 or 3 keys
        np.testing.assert_allclose(found[own > 1e-5], own[own > 1e-5], rtol=0.025)
        assert not found[own == 0].any()

    def test_levels(self):
        assert list(thumbnail_bytes(np.asarray([0, 1e-9, 1e-5, 0.1, 1, np.nan]))) == [0, 0, 0, 204, 255, 0]

    def test_scores(self):
        layer = layer_of(map_of(), kind="cross")
        scores = pack(chosen(record_of(layer))).details[0]["scores"]
        assert tuple(scores) == SCORES
        assert scores["induction"] == scores["previous_token"] == [None, None]
        np.testing.assert_allclose(scores["entropy"], head_table(layer)["entropy"])

    def test_a_part_of_the_heads(self, tmp_path):
        layer = layer_of(map_of(heads=4, groups=2, bias=positions.alibi(4), mask=masks.causal()))
        page = page_of(record_of(layer), tmp_path, heads=[3, 1])
        told = description_of(page)["layers"][0]
        assert told["heads"] == [1, 3]
        assert told["packed"]["groups"] == [0, 1]
        for place, head in enumerate((1, 3)):
            np.testing.assert_allclose(weights_in(page, head=place), layer.heads[head].weights(), atol=1e-4)
        table = head_table(layer)
        np.testing.assert_allclose(told["scores"]["induction"], table["induction"][[1, 3]], atol=1e-6)
        np.testing.assert_allclose(told["scores"]["sink"], table["sink"][[1, 3]], atol=1e-6)

    def test_overviews_of_large_maps(self, tmp_path, monkeypatch):
        monkeypatch.setattr(packing, "LARGE", 50)
        monkeypatch.setattr(packing, "OVERVIEW", 64)
        layer = layer_of(map_of(queries=300, keys=200))
        told = []
        packed = pack(chosen(record_of(layer)), told.append)
        assert packed.details[0]["packed"]["overview"] == [64, 64]
        assert told == sorted(told)
        assert told[-1] == 1.0
        assert len(told) > 10
        page = page_of(record_of(layer), tmp_path)
        found = decoded(read_block(page, "overview:0:1"), "f16", 64)
        np.testing.assert_allclose(found / 200, layer.heads[1].pooled(64, 64), rtol=6e-4)
        assert description_of(page)["layers"][0]["thumbnail"] == [48, 48]

    def test_overviews_of_many_heads_are_smaller(self):
        assert [packing._overview_side(heads) for heads in (1, 32, 33, 512)] == [1024, 1024, 512, 256]

    def test_long_texts_are_glimpsed(self, monkeypatch):
        monkeypatch.setattr(packing, "WHOLE", 50)
        monkeypatch.setattr(packing, "WORTH_SCORING", 100)
        details = pack(chosen(record_of(layer_of(map_of(queries=96, keys=96))))).details[0]
        assert details["step"] == 2
        assert len(details["scores"]["entropy"]) == 2


class TestGlimpse:
    @pytest.mark.parametrize("name", ["causal", "padding", "keys between", "given"])
    @pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy])
    def test_of_all_rows_it_is_exact(self, name, convert):
        mask = MASKS[name][0]
        if convert is torch.from_numpy and name in ("keys between", "given"):
            mask = masks.given(convert(mask.dense(40, 40).copy()))
        layer = layer_of(map_of(mask=mask, convert=convert), kind="decoder")
        table = head_table(layer, SCORES)
        for head in layer.heads:
            found = glimpse(head, 40)
            assert found.step == 1
            np.testing.assert_allclose([found.scores[name] for name in SCORES], table.values[head.place], atol=1e-5)
            np.testing.assert_allclose(found.thumbnail, np.asarray(head.pooled(48, 48)), atol=1e-5)

    @pytest.mark.parametrize("name", SHAPES)
    def test_with_all_that_shapes_a_weight(self, name):
        layer = layer_of(map_of(**SHAPES[name]), kind="decoder")
        table = head_table(layer, SCORES)
        queries = layer.map.shape[1]
        for head in layer.heads:
            found = glimpse(head, queries).scores
            told = [np.nan if found[name] is None else found[name] for name in SCORES]
            np.testing.assert_allclose(told, table.values[head.place], atol=1e-5)

    def test_of_a_few_it_is_near(self):
        layer = layer_of(map_of(heads=1, queries=2000, keys=2000, mask=masks.causal()), kind="decoder")
        found = glimpse(layer.heads[0])
        assert found.step == 42
        assert found.thumbnail.shape == (48, 48)
        assert found.scores["entropy"] == pytest.approx(float(layer.heads[0].entropy().mean()), rel=0.1)
        own = layer.heads[0].weights(slice(20, 21))[0]  # the middle of the first 41 or 42 rows
        np.testing.assert_allclose(found.thumbnail[0, 0], own[:41].mean(), rtol=1e-4)

    def test_texts_that_do_not_repeat(self):
        from regard.record import Tokens

        side = [Tokens.of([str(place) for place in range(40)])]
        layer = layer_of(map_of(), queries=side, keys=side)
        assert glimpse(layer.heads[0]).scores["induction"] is None
