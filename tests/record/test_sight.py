"""What can be asked of a head, a layer and a mean: each answer against the dense map in float64."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from regard.errors import DtypeError, OptionError
from regard.formula import masks, threads
from regard.record import Layer, Mean, Tokens, statistics
from regard.record.map import Map
from tests.record import measures_cases as cases
from tests.record.measures_cases import CASES, N, case, each_library, each_tiling, numbers

library, tiles = each_library, each_tiling  # fixtures, by the names that tests ask for them

FEW = ["causal", "grouped", "ranges", "turned round", "bias", "sinks", "softcap"]
# what is asked, and what that makes of an answer for each head
SUBJECTS = {
    "head": (lambda record: record.layers[0].heads[1], lambda each: each[1]),
    "layer": (lambda record: record.layers[0], lambda each: each),
    "mean": (lambda record: record.mean(), lambda each: each.mean(0)),
}
ONES = ("head", "layer")  # those that have rows of one softmax


def subjects(name, library, chosen=SUBJECTS):
    """A head, a layer and a mean, each of a record nobody has asked anything yet; what is dense; how it is reduced."""
    for subject in chosen:
        choose, reduced = SUBJECTS[subject]
        record, (dense,) = case(name, library)
        yield choose(record), dense, reduced


def assert_close(found, expected, **tolerance):
    assert tuple(found.shape) == expected.shape
    np.testing.assert_allclose(numbers(found), expected, **{"rtol": 1e-4, "atol": 2e-6, **tolerance})


def entropy_of(weights):
    return -(weights * np.log(np.where(weights > 0, weights, 1))).sum(-1)


def distance_of(weights, offset=0):
    queries, keys = weights.shape[-2:]
    return (weights * np.abs(np.arange(queries)[:, None] + offset - np.arange(keys))).sum(-1)


def groups_of(weights, rows, cols):
    """The mean over each group of rows of the sum over each group of columns, group by group."""
    cells = [
        [weights[..., top:bottom, left:right].sum(-1).mean(-1) for left, right in pairwise(cols)]
        for top, bottom in pairwise(rows)
    ]
    return np.moveaxis(np.asarray(cells), (0, 1), (-2, -1))


def pixels_of(weights, height, width):
    """The mean of each cell; no cell is smaller than one weight."""
    rows, cols = weights.shape[-2:]
    row_edges = [rows * step // min(height, rows) for step in range(min(height, rows) + 1)]
    col_edges = [cols * step // min(width, cols) for step in range(min(width, cols) + 1)]
    return groups_of(weights, row_edges, col_edges) / np.diff(col_edges)


# ---- the answers


@pytest.mark.parametrize("name", CASES)
def test_weights(library, name, tiles):
    for sight, dense, reduced in subjects(name, library):
        assert tuple(sight.shape) == reduced(dense.weights).shape
        assert_close(sight.weights(), reduced(dense.weights))


RECTANGLES = {
    "a part": (slice(4, 19), slice(2, 11)),
    "one weight": (slice(7, 8), slice(3, 4)),
    "from the end": (slice(-3, None), slice(None, -20)),
    "further than there is": (slice(20, 100), slice(-100, 5)),
    "NumPy's numbers": (slice(np.int64(2), np.int32(9)), slice(np.int64(-4), None)),
    "no rows": (slice(5, 5), slice(None)),
    "the wrong way round": (slice(9, 2), slice(3, 8)),
    "no columns": (slice(3, 8), slice(23, 40)),
}


@pytest.mark.parametrize("rectangle", RECTANGLES)
def test_rectangles(library, rectangle, tiles):
    rows, cols = RECTANGLES[rectangle]
    for sight, dense, reduced in subjects("grouped", library):
        assert_close(sight.weights(rows, cols), reduced(dense.weights)[..., rows, cols])
    for sight, dense, reduced in subjects("grouped", library, ONES):
        assert_close(sight.log_sum_exp(rows), reduced(dense.lse)[..., rows])


@pytest.mark.parametrize("name", CASES)
def test_log_sum_exp(library, name, tiles):
    for sight, dense, reduced in subjects(name, library, ONES):
        assert_close(sight.log_sum_exp(slice(6, 9)), reduced(dense.lse)[..., 6:9])
        assert_close(sight.log_sum_exp(), reduced(dense.lse))


@pytest.mark.parametrize("name", CASES)
def test_pooled(library, name, tiles):
    for sight, dense, reduced in subjects(name, library):
        assert_close(sight.pooled(5, 4), pixels_of(reduced(dense.weights), 5, 4))


@pytest.mark.parametrize(("height", "width"), [(1, 1), (N, N), (7, 100), (512, 3), (np.int64(3), np.int32(3))])
def test_sizes_of_a_pooled_map(library, height, width):
    """A map is never made larger than it is."""
    for sight, dense, reduced in subjects("causal", library):
        assert_close(sight.pooled(height, width), pixels_of(reduced(dense.weights), height, width))
        assert_close(sight.pooled(), reduced(dense.weights))


@pytest.mark.parametrize("rectangle", [name for name in RECTANGLES if "no " not in name and "wrong" not in name])
def test_a_pooled_rectangle(library, rectangle, tiles):
    rows, cols = RECTANGLES[rectangle]
    for sight, dense, reduced in subjects("sinks", library):
        expected = pixels_of(reduced(dense.weights)[..., rows, cols], 4, 3)
        assert_close(sight.pooled(4, 3, rows=rows, cols=cols), expected)


@pytest.mark.parametrize("name", CASES)
def test_grouped(library, name, tiles):
    rows, cols = [0, 1, 4, 5, 16, 23], [0, 11, 12, 23]
    for sight, dense, reduced in subjects(name, library):
        assert_close(sight.grouped(rows, cols), groups_of(reduced(dense.weights), rows, cols))


@pytest.mark.parametrize("kind", [list, tuple, np.asarray])
def test_groups_of_a_part(library, kind, tiles):
    rows, cols = [2, 5, 9], [3, 4, 20]
    for sight, dense, reduced in subjects("grouped", library):
        assert_close(sight.grouped(kind(rows), kind(cols)), groups_of(reduced(dense.weights), rows, cols))


def test_groups_that_are_words(library):
    """What goes to a word is added up, what comes from it is averaged; so each row still sums to one."""
    words = Tokens((" a",) * N, tuple(place % 3 == 0 for place in range(N)))
    edges = words.word_edges
    for sight, dense, reduced in subjects("plain", library):
        found = sight.grouped(edges, edges)
        assert_close(found, groups_of(reduced(dense.weights), edges, edges))
        np.testing.assert_allclose(numbers(found).sum(-1), 1, atol=1e-5)


STRIDES = [range(0, N), range(2, N, 5), range(7, 8), range(3, 19), range(0, N, 2)]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rows", STRIDES)
def test_shares_of_some_rows(library, name, rows, tiles):
    for sight, dense, reduced in subjects(name, library):
        for cols in ([0, 5, 6, N], [3, 11]):
            expected = groups_of(dense.weights[..., list(rows), :], range(len(rows) + 1), cols)
            assert_close(sight.shares(rows, cols), reduced(expected))  # whose log-sum-exps are found, then known
        assert sight.is_summed(rows)


def test_shares_teach_the_rows_they_were_made_of_and_no_others(library):
    (sight, dense, reduced), *_ = subjects("causal", library, ONES)
    sight.shares(range(1, N, 4), [0, N])
    assert sight.is_summed(range(1, N, 4))
    assert not sight.is_summed(range(0, 2))
    assert_close(sight.weights(), reduced(dense.weights))


def test_shares_of_nothing(library):
    (sight, *_), *_ = subjects("causal", library, ONES)
    assert tuple(sight.shares(range(4, 4), [0, 3, N]).shape) == (0, 2)
    assert tuple(sight.shares(range(4, 8, 2), [0]).shape) == (2, 0)


@pytest.mark.parametrize("rows", [range(0, N + 1), range(-1, 4), range(8, 2, -1), range(N, N + 5)])
def test_shares_of_rows_that_are_not_there(library, rows):
    (sight, *_), *_ = subjects("causal", library, ONES)
    with pytest.raises(OptionError, match=f"0 to {N - 1}"):
        sight.shares(rows, [0, N])


@pytest.mark.parametrize("name", CASES)
def test_top(library, name, tiles):
    for sight, dense, reduced in subjects(name, library, ONES):
        expected = reduced(dense.weights)[..., 3:20, :]
        found = sight.top(4, slice(3, 20))
        assert_close(found.weights, -np.sort(-expected, axis=-1)[..., :4])
        assert_keys(found, expected)


def assert_keys(found, expected):
    """Each key named once, with the weight that it has; −1 where there is none."""
    keys = numbers(found.keys)
    there = np.take_along_axis(expected, np.maximum(keys, 0), axis=-1)
    np.testing.assert_allclose(np.where(keys < 0, 0, there), numbers(found.weights), atol=2e-6)
    ordered = np.sort(keys, axis=-1)
    assert not ((np.diff(ordered, axis=-1) == 0) & (ordered[..., 1:] >= 0)).any()


@pytest.mark.parametrize("count", [N, N + 1, 1000, np.int64(30)])
def test_more_of_the_highest_than_there_are_keys(library, count, tiles):
    for sight, dense, reduced in subjects("causal", library, ONES):
        expected, found = reduced(dense.weights), sight.top(count)
        assert_close(found.weights, -np.sort(-expected, axis=-1))
        assert_keys(found, expected)
        seen = np.broadcast_to(np.arange(1, N + 1), expected.shape[:-1])  # row 0 sees one key, row 1 two
        np.testing.assert_array_equal((numbers(found.keys) >= 0).sum(-1), seen)


def test_the_highest_of_no_rows(library):
    for sight, dense, reduced in subjects("causal", library, ONES):
        expected = reduced(dense.weights)[..., 5:5, :3]
        found = sight.top(3, slice(5, 5))
        assert tuple(found.keys.shape) == tuple(found.weights.shape) == expected.shape
        assert found.keys.dtype == sight.top(3).keys.dtype


@pytest.mark.parametrize("name", CASES)
def test_entropy(library, name, tiles):
    for sight, dense, reduced in subjects(name, library):
        assert_close(sight.entropy(), reduced(entropy_of(dense.weights)), atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_distance(library, name, tiles):
    for sight, dense, reduced in subjects(name, library):
        assert_close(sight.distance(), reduced(distance_of(dense.weights)), atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_received(library, name, tiles):
    for sight, dense, reduced in subjects(name, library):
        assert_close(sight.received(), reduced(dense.weights).sum(-2), atol=1e-5)


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("places", [[4], [0, 9, 22], [-1, 3], np.array([5, -2]), range(N)])
def test_attention_from_and_to_some_places(library, name, places):
    for sight, dense, reduced in subjects(name, library):
        expected = reduced(dense.weights)
        assert_close(sight.attention_from(places), expected[..., places, :].mean(-2))
        assert_close(sight.attention_to(places), expected[..., places].sum(-1), atol=1e-5)


@pytest.mark.parametrize("place", [4, -1, np.int64(7)])
def test_attention_from_and_to_one_place(library, place):
    for sight, dense, reduced in subjects("causal", library):
        expected = reduced(dense.weights)
        assert_close(sight.attention_from(place), expected[..., place, :])
        assert_close(sight.attention_to(place), expected[..., place])


def test_queries_at_the_end_of_the_keys(library, tiles):
    """As in a generated text: five queries, the first of them at place 18, and all the keys."""
    for subject in SUBJECTS:
        record, (dense,) = case("plain", library)
        (layer,) = record.layers
        late = replace(layer.map, queries=layer.map.queries[:, -5:], offset=N - 5, kept={})
        layer = replace(layer, maps=(late,))
        sight = {"head": layer.heads[1], "layer": layer, "mean": Mean(layer.heads)}[subject]
        reduced, weights = SUBJECTS[subject][1], dense.weights[:, -5:]
        assert tuple(sight.shape) == reduced(weights).shape
        assert_close(sight.weights(), reduced(weights))
        assert_close(sight.pooled(2, 6), pixels_of(reduced(weights), 2, 6))
        assert_close(sight.distance(), reduced(distance_of(weights, N - 5)), atol=1e-5)
        assert_close(sight.received(), reduced(weights).sum(-2), atol=1e-5)
        assert_close(sight.attention_from([-1]), reduced(weights)[..., -1, :])


@pytest.mark.parametrize("empty", [{"rows": slice(4, 4)}, {"cols": slice(30, 40)}, {"rows": slice(9, 2)}])
def test_nothing_pooled_is_nothing_of_the_same_kind(library, empty):
    for sight, _, _ in subjects("causal", library):
        found, whole = sight.pooled(3, 3, **empty), sight.pooled(3, 3)
        assert 0 in found.shape
        assert found.ndim == whole.ndim
        assert (found.dtype, found.device) == (whole.dtype, whole.device)


def test_no_groups(library):
    for sight, _, _ in subjects("causal", library):
        lead = tuple(sight.shape[:-2])
        for rows, cols, shape in (([], [], (0, 0)), ([0], [0, 5], (0, 1)), ([0, 4, 9], [7], (2, 0))):
            assert tuple(sight.grouped(rows, cols).shape) == (*lead, *shape)


# ---- what is known is not computed again


def refuse(*_):
    raise AssertionError("what was known was computed again")


@pytest.mark.parametrize("subject", ONES)
@pytest.mark.parametrize(
    "ask",
    [
        lambda sight: sight.log_sum_exp(),
        lambda sight: sight.pooled(4, 4),
        lambda sight: sight.grouped([0, 3, N], [0, 5]),
        lambda sight: sight.top(2),
        lambda sight: sight.entropy(),
        lambda sight: sight.received(),
        lambda sight: sight.weights(),
    ],
    ids=["log_sum_exp", "pooled", "grouped", "top", "entropy", "received", "weights"],
)
def test_log_sum_exps_are_kept_whoever_found_them(library, subject, ask, monkeypatch):
    ((sight, dense, reduced),) = subjects("sinks", library, [subject])
    ask(sight)
    monkeypatch.setattr(statistics, "log_sum_exp", refuse)
    assert_close(sight.log_sum_exp(), reduced(dense.lse))
    assert_close(sight.weights(slice(3, 5)), reduced(dense.weights)[..., 3:5, :])


def test_heads_and_their_layer_know_the_same_rows(library, monkeypatch):
    record, (dense,) = case("grouped", library)
    (layer,) = record.layers
    for head in layer.heads:
        head.log_sum_exp()
    monkeypatch.setattr(statistics, "log_sum_exp", refuse)
    assert_close(layer.log_sum_exp(), dense.lse)


def test_rows_that_are_not_known_yet_are_found(library):
    """Some rows of one head are known: the others, and those of the other heads, are not taken for known."""
    record, (dense,) = case("causal", library)
    (layer,) = record.layers
    layer.heads[1].log_sum_exp(slice(4, 9))
    assert_close(layer.heads[1].log_sum_exp(slice(6, 12)), dense.lse[1, 6:12])
    assert_close(layer.heads[0].log_sum_exp(slice(4, 9)), dense.lse[0, 4:9])
    assert_close(layer.log_sum_exp(), dense.lse)


@pytest.mark.parametrize("subject", ONES)
@pytest.mark.parametrize("name", ["entropy", "distance", "received"])
def test_numbers_of_the_whole_are_kept(library, subject, name):
    ((sight, _, _),) = subjects("causal", library, [subject])
    assert getattr(sight, name)() is getattr(sight, name)()


def test_what_one_head_knows_is_not_taken_for_another(library):
    record, (dense,) = case("grouped", library)
    (layer,) = record.layers
    for place, head in enumerate(layer.heads):
        assert_close(head.received(), dense.weights[place].sum(-2), atol=1e-5)
        assert_close(head.entropy(), entropy_of(dense.weights[place]), atol=1e-5)
    assert_close(layer.received(), dense.weights.sum(-2), atol=1e-5)
    assert_close(layer.entropy(), entropy_of(dense.weights), atol=1e-5)


def test_a_log_sum_exp_that_the_map_brings_is_used(library, tiles):
    """Twice the sum halves every weight: so it was this sum that the weights were divided by."""
    record, (dense,) = case("grouped", library)
    (layer,) = record.layers
    given = (dense.lse + np.log(2)).astype("f")
    known = replace(layer, maps=(replace(layer.map, lse=library(given), kept={}),))
    for sight, weights, lse in ((known.heads[2], dense.weights[2] / 2, given[2]), (known, dense.weights / 2, given)):
        np.testing.assert_array_equal(numbers(sight.log_sum_exp()), lse)
        assert_close(sight.weights(), weights)
        assert_close(sight.weights(slice(5, 9), slice(2, 4)), weights[..., 5:9, 2:4])
        assert_close(sight.pooled(5, 4), pixels_of(weights, 5, 4))
        assert_close(sight.top(3).weights, -np.sort(-weights, axis=-1)[..., :3])
        assert_close(sight.received(), weights.sum(-2), atol=1e-5)


# ---- what cannot be asked


@pytest.fixture(params=SUBJECTS)
def sight(request):
    ((found, _, _),) = subjects("causal", np.asarray, [request.param])
    return found


def test_a_rectangle_has_no_steps(sight):
    for ask in (sight.weights, lambda part: sight.pooled(3, 3, rows=part)):
        with pytest.raises(OptionError, match=r"rows slice\(0, 9, 2\) are taken in steps of 2"):
            ask(slice(0, 9, 2))
        with pytest.raises(OptionError, match=r"rows .* are taken in steps of -1"):
            ask(slice(None, None, -1))
    for ask in (lambda part: sight.weights(cols=part), lambda part: sight.pooled(3, 3, cols=part)):
        with pytest.raises(OptionError, match=r"cols .* are taken in steps of 3"):
            ask(slice(None, None, 3))
    with pytest.raises(DtypeError, match=r"rows is 3; a rectangle is taken by slices, as in rows=slice\(3, 4\)"):
        sight.weights(3)


@pytest.mark.parametrize("size", [0, -2, True, 2.0, "3", None])
def test_sizes_are_whole_numbers(sight, size):
    with pytest.raises(OptionError, match=f"height is {size!r}; it must be a whole number, 1 or more"):
        sight.pooled(size, 3)
    with pytest.raises(OptionError, match=f"width is {size!r}; it must be a whole number, 1 or more"):
        sight.pooled(3, size)


@pytest.mark.parametrize("subject", ONES)
@pytest.mark.parametrize("count", [0, -1, False, 1.5])
def test_counts_are_whole_numbers(subject, count):
    ((sight, _, _),) = subjects("causal", np.asarray, [subject])
    with pytest.raises(OptionError, match=f"count is {count!r}; it must be a whole number, 1 or more"):
        sight.top(count)


@pytest.mark.parametrize("edges", [[0, 5, 5], [5, 2], [-1, 4], [0, N + 1], np.array([3, 3])])
def test_edges_rise_within_the_map(sight, edges):
    with pytest.raises(OptionError, match="the edges of the rows must rise, from 0 at least to 23 at most"):
        sight.grouped(edges, [0, N])
    with pytest.raises(OptionError, match="the edges of the cols must rise, from 0 at least to 23 at most"):
        sight.grouped([0, N], edges)


def test_edges_are_whole_numbers(sight):
    with pytest.raises(DtypeError, match=r"the edges of the cols are \[0, 2\.5\]; they must be whole numbers"):
        sight.grouped([0, N], [0, 2.5])


@pytest.mark.parametrize("places", [[], [N], [-N - 1], [0, 40]])
def test_places_are_those_of_tokens(sight, places):
    with pytest.raises(OptionError, match=r"rows are .*; choose at least one, out of 0 to 22"):
        sight.attention_from(places)
    with pytest.raises(OptionError, match=r"cols are .*; choose at least one, out of 0 to 22"):
        sight.attention_to(places)


def test_places_are_whole_numbers(sight):
    with pytest.raises(DtypeError, match=r"rows are \[1\.7\]; they must be whole numbers"):
        sight.attention_from([1.7])
    with pytest.raises(DtypeError, match=r"cols are 0\.5; they must be whole numbers"):
        sight.attention_to(0.5)


def test_a_mean_has_no_rows_of_one_softmax():
    ((mean, _, _),) = subjects("causal", np.asarray, ["mean"])
    with pytest.raises(OptionError, match=r"highest weights of a mean are not kept; ask its weights\(rows\)"):
        mean.top()
    with pytest.raises(OptionError, match="a mean of heads has no log-sum-exp; ask one head's"):
        mean.log_sum_exp()


def test_the_entropy_of_a_mean_is_the_mean_of_entropies():
    """Not that of the mean weights, which is higher."""
    ((mean, dense, _),) = subjects("plain", np.asarray, ["mean"])
    assert (numbers(mean.entropy()) < entropy_of(dense.weights.mean(0)) - 0.01).all()


# ---- memory


def test_a_large_map_is_not_held(monkeypatch):
    """8,192 tokens: no question takes an eighth of what the map would."""
    monkeypatch.setattr(threads, "cores", lambda: 2)
    size, rng = 8192, np.random.default_rng(0)
    queries, keys = rng.normal(size=(2, 1, size, 8)).astype("f")
    made = Map(queries=queries, keys=keys, scale=0.3, mask=masks.causal())
    tokens = (Tokens.numbered(size),)
    layer = Layer(name="l", kind="decoder", index=0, maps=(made,), queries=tokens, keys=tokens, head_numbers=(0,))
    (head,) = layer.heads
    for call in (
        head.log_sum_exp,
        lambda: layer.pooled(64, 64),
        lambda: head.grouped([0, 100, size], [0, 7, size]),
        lambda: head.top(3, slice(size - 2000, size)),
        head.entropy,
        head.received,
        lambda: head.weights(slice(0, 64)),
        lambda: head.attention_from([size - 1, 17]),
        lambda: head.attention_to([0]),
        lambda: Mean((head,)).pooled(64, 64),
    ):
        made.kept.clear()
        cases.assert_never_square(size, call)
