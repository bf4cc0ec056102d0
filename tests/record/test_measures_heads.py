"""Scores of heads and their table, against loops over dense weights in float64."""

import tracemalloc

import numpy as np
import pytest

import regard
from regard.errors import OptionError
from regard.formula import masks, threads
from regard.record import Layer, Record, Run, Tokens
from regard.record import measures as m
from regard.record.map import Map
from tests.record.measures_cases import CASES, WORDS, N, case, each_library, each_tiling
from tests.record.test_measures_flow import vars_of

library, tiles = each_library, each_tiling  # fixtures, by the names that tests ask for them


def by_loops(dense, texts, offset=0):
    """Every score by its definition; a row that sees nothing takes no part."""
    found = []
    for weights, seeing in zip(dense.weights, dense.seeing, strict=True):
        sums = {"previous_token": [], "self_token": [], "next_token": [], "duplicate_token": [], "induction": []}
        for row in np.flatnonzero(seeing):
            place = row + offset
            for name, step in (("previous_token", -1), ("self_token", 0), ("next_token", 1)):
                if 0 <= place + step < weights.shape[-1]:
                    sums[name].append(weights[row, place + step])
            earlier = [key for key in range(place) if texts[key] == texts[place]]
            if earlier:
                sums["duplicate_token"].append(sum(weights[row, key] for key in earlier))
                sums["induction"].append(sum(weights[row, key + 1] for key in earlier))
        own = weights[seeing]
        far = np.abs(np.arange(len(weights))[:, None] + offset - np.arange(weights.shape[-1]))
        numbers = {name: np.mean(part) for name, part in sums.items()}
        first = np.flatnonzero((dense.weights > 0).any(axis=(0, 1)))[0]  # padding before it is seen by nobody
        numbers["sink"] = own[:, first].mean()
        numbers["strongest_key"] = own.mean(0).max()
        numbers["entropy"] = -(own * np.log(np.where(own > 0, own, 1))).sum(-1).mean()
        numbers["distance"] = (weights * far).sum(-1)[seeing].mean()
        found.append(numbers)
    return {name: np.asarray([numbers[name] for numbers in found]) for name in found[0]}


@pytest.mark.parametrize("name", CASES)
def test_scores_are_their_definitions(library, name, tiles):
    record, dense = case(name, library, layers=2)
    table = m.head_table(record)
    assert table.columns == m.COLUMNS
    expected = [by_loops(layer, WORDS) for layer in dense]
    for column in expected[0]:
        exact = np.concatenate([layer[column] for layer in expected])
        np.testing.assert_allclose(table[column], exact, atol=1e-4, err_msg=column)
        np.testing.assert_allclose(getattr(m, column)(record)[column], exact, atol=1e-4)
    output = np.concatenate(
        [np.sum((layer.weights @ layer.values) * layer.gradients, axis=(-1, -2)) for layer in dense]
    )
    np.testing.assert_allclose(table["importance"], np.abs(output), atol=1e-4)
    assert np.isnan(table["retrieval"]).all()  # nothing was written here


@pytest.mark.parametrize("seed", range(6))
def test_repeats_in_random_texts(library, seed, tiles):
    rng = np.random.default_rng(seed)
    texts = [str(number) for number in rng.integers(0, rng.integers(1, 12), size=N)]  # one token only, now and then
    record, (dense,) = case("grouped", library, seed=seed, texts=texts)
    exact = by_loops(dense, texts)
    for column in ("duplicate_token", "induction"):
        np.testing.assert_allclose(m.head_table(record, [column])[column], exact[column], atol=1e-5)


def test_queries_that_stand_late_among_the_keys(library):
    """The last 9 tokens alone, as behind a cache: row 0 stands at place 14."""
    record, (dense,) = case("causal", library)
    (layer,) = record.layers
    late = Map(queries=layer.map.queries[:, 14:], keys=layer.map.keys, scale=0.7, mask=masks.causal(), offset=14)
    part = Layer(**{**vars_of(layer), "maps": (late,), "queries": (Tokens.of(WORDS[14:]),)})
    dense.weights, dense.seeing = dense.weights[:, 14:], dense.seeing[:, 14:]
    exact = by_loops(dense, WORDS, offset=14)
    table = m.head_table(part)
    for column in exact:
        np.testing.assert_allclose(table[column], exact[column], atol=1e-4, err_msg=column)


def one_hot(targets, size, library=np.asarray):
    """Queries and keys whose weights are all on one key a row: row i on targets[i]."""
    keys = np.eye(size, dtype="f")
    return library(keys[None, targets] * 100), library(keys[None])


def record_of(targets, texts, *, kind="decoder", generated=None, keys=None, library=np.asarray):
    size = len(keys or texts)
    queries, tall = one_hot(targets, size, library)
    rows = Tokens(tuple(texts), (True,) * len(texts), None, generated)
    cols = rows if keys is None else Tokens.of(keys)
    layer = Layer(
        name="made", kind=kind, index=0, maps=(Map(queries=queries[:, : len(texts)], keys=tall, scale=1.0),),
        queries=(rows,), keys=(cols,), head_numbers=(7,),
    )  # fmt: skip
    return Record([Run(layers=(layer,))])


def test_heads_made_to_do_one_thing_score_one(library):
    texts = list("abcdabcd")
    for score, targets in (
        (m.previous_token, [0, 0, 1, 2, 3, 4, 5, 6]),
        (m.self_token, range(8)),
        (m.next_token, [1, 2, 3, 4, 5, 6, 7, 7]),
        (m.duplicate_token, [0, 0, 0, 0, 0, 1, 2, 3]),
        (m.induction, [0, 0, 0, 0, 1, 2, 3, 4]),
        (m.sink, [0] * 8),
        (m.strongest_key, [5] * 8),
    ):
        (found,) = score(record_of(list(targets), texts, library=library)).best()
        assert found.name == ("decoder", 0, 7)
        np.testing.assert_allclose(found.value, 1.0, atol=1e-6)


class TestRetrieval:
    """Read: "x y z w"; written: "y z q". Row 3 writes y, row 4 writes z, row 5 writes q."""

    TEXTS = tuple("xyzwyzq")

    def test_copies_of_what_was_written(self, library):
        record = record_of([0, 0, 0, 1, 2, 0, 0], self.TEXTS, generated=4, library=library)
        np.testing.assert_allclose(m.retrieval(record).values, [[2 / 3]])
        np.testing.assert_allclose(m.head_table(record)["retrieval"], [2 / 3])
        np.testing.assert_allclose(m.retrieval(record, slice(1, 3)).values, [[1.0]])
        np.testing.assert_allclose(m.retrieval(record, slice(0, 3)).values, [[2 / 3]])
        np.testing.assert_allclose(m.retrieval(record, slice(0, 1)).values, [[0.0]])
        np.testing.assert_allclose(m.retrieval(record, generated=5).values, [[1 / 2]])

    def test_looking_at_the_token_one_late_is_not_copying(self):
        record = record_of([0, 0, 0, 0, 1, 2, 0], self.TEXTS, generated=4)  # the row of y looks at y, as its input
        np.testing.assert_allclose(m.retrieval(record).values, [[0.0]])

    def test_what_the_model_wrote_itself_is_no_source(self):
        record = record_of([0, 0, 0, 0, 4, 4, 4], list("xyzwyyy"), generated=4)
        np.testing.assert_allclose(m.retrieval(record).values, [[0.0]])

    def test_from_another_text(self):
        record = record_of([2, 0, 1, 1], list("sabc"), keys=list("bca"), kind="cross", generated=1)
        np.testing.assert_allclose(m.retrieval(record).values, [[1.0]])

    def test_errors(self):
        with pytest.raises(OptionError, match="nothing here is marked as written by the model; give generated="):
            m.retrieval(record_of([0] * 7, self.TEXTS))
        with pytest.raises(
            OptionError, match=r"from 9 on are those the model wrote, and there are 7; it must be 1 to 6"
        ):
            m.retrieval(record_of([0] * 7, self.TEXTS), generated=9)
        with pytest.raises(OptionError, match="has none of the 7 keys"):
            m.retrieval(record_of([0] * 7, self.TEXTS, generated=4), slice(3, 3))


class TestTable:
    def test_best_and_grid(self):
        record, _ = case("grouped", np.asarray, layers=3)
        table = m.head_table(record, ["sink", "entropy"])
        assert table.columns == ("sink", "entropy")
        assert (table.values.shape, table.layers[:5], table.heads[:5]) == ((12, 2), (0, 0, 0, 0, 1), (0, 1, 2, 3, 0))
        first, second = table.best("sink", 2)
        assert (first.value, second.value) == tuple(sorted(table["sink"])[:-3:-1])
        assert table.best("entropy", 1, lowest=True)[0].value == table["entropy"].min()
        np.testing.assert_array_equal(table.grid("sink"), table["sink"].reshape(3, 4))
        with pytest.raises(OptionError, match="the columns are sink, entropy; say which one"):
            table.best()
        with pytest.raises(OptionError, match="no column 'snik'; the columns are sink, entropy"):
            table["snik"]
        with pytest.raises(OptionError, match=r"columns are \['snik'\]; choose some of entropy, "):
            m.head_table(record, ["snik"])

    def test_layers_with_fewer_heads_and_of_other_kinds(self):
        few, _ = case("causal", np.asarray)
        many, _ = case("grouped", np.asarray, kind="cross")
        record = Record([Run(layers=(*few.layers, *many.layers))])
        grid = m.head_table(record).grid("self_token")
        assert np.isnan(grid).tolist() == [[False] * 3 + [True], [True] * 4]
        assert len(m.self_token(record).best()) == 3
        assert not np.isnan(m.head_table(record)["entropy"]).any()

    def test_of_another_text_of_the_batch(self):
        one, _ = case("causal", np.asarray, seed=1)
        two, _ = case("causal", np.asarray, seed=2)
        both = {
            name: (*getattr(one.layers[0], name), *getattr(two.layers[0], name)) for name in ("maps", "queries", "keys")
        }
        batch = Record([Run(layers=(Layer(**{**vars_of(one.layers[0]), **both}),))])
        np.testing.assert_array_equal(m.sink(batch.item(1)).values, m.sink(two).values)
        mean = (m.importance(one).values + m.importance(two).values) / 2
        np.testing.assert_allclose(m.importance(batch).values, mean)


class TestErrors:
    def test_one_token(self):
        record = record_of([0], ["a"])
        with pytest.raises(OptionError, match="1 × 1, queries × keys, and no query has a key at -1 from its own place"):
            m.previous_token(record)
        with pytest.raises(OptionError, match="none of the 1 tokens in layer 0 came before"):
            m.induction(record)
        table = m.head_table(record)
        assert {name for name in table.columns if not np.isnan(table[name])} == {
            "entropy", "distance", "sink", "strongest_key", "self_token",
        }  # fmt: skip

    def test_no_repeats_and_no_texts(self):
        with pytest.raises(OptionError, match=r"none of the 3 tokens .* take a text that repeats"):
            m.duplicate_token(record_of([0, 0, 0], list("abc")))
        with pytest.raises(OptionError, match=r"have no texts; give them with record\.labelled"):
            m.induction(record_of([0, 0, 0], [""] * 3))
        record = record_of([0, 0, 0], list("abc"))
        short = Layer(**{**vars_of(record.layers[0]), "queries": (Tokens.of("ab"),)})
        with pytest.raises(OptionError, match=r"3 × 3, queries × keys, and the tokens are 2 and 3"):
            m.induction(short)

    def test_cross_attention_has_no_neighbours(self):
        record = record_of([0, 0], list("ab"), keys=list("aa"), kind="cross")
        with pytest.raises(OptionError, match="cross-attention: its keys are another text"):
            m.previous_token(record)
        with pytest.raises(OptionError, match="cross-attention"):
            m.duplicate_token(record)

    def test_no_gradients(self):
        with pytest.raises(OptionError, match=r"not kept for layer 0 \(made\).*gradients=True"):
            m.importance(record_of([0, 0], list("ab")))

    def test_nothing_at_all(self):
        empty = Map(queries=np.zeros((1, 0, 4), "f"), keys=np.zeros((1, 0, 4), "f"), scale=1.0)
        none = (Tokens.of([]),)
        layer = Layer(name="l", kind="encoder", index=0, maps=(empty,), queries=none, keys=none, head_numbers=(0,))
        with pytest.raises(OptionError, match="there is nothing in it"):
            m.entropy(layer)
        assert np.isnan(m.head_table(layer, ["sink", "self_token", "induction"]).values).all()


@pytest.mark.parametrize("name", ["given", "bias", "padded in front", "sinks"])
def test_a_record_out_of_a_file_scores_the_same(tmp_path, name):
    record, _ = case(name, np.asarray, layers=2)
    record.save(tmp_path / "run.regard")
    opened = regard.open(tmp_path / "run.regard")
    np.testing.assert_allclose(m.head_table(opened).values, m.head_table(record).values, atol=1e-6)


@pytest.mark.parametrize("texts", [["a"] * 8192, [str(place * place % 1009) for place in range(8192)]])
def test_a_large_map_is_not_held(monkeypatch, texts):
    monkeypatch.setattr(threads, "cores", lambda: 2)
    size, rng = len(texts), np.random.default_rng(0)
    queries, keys = (rng.normal(size=(1, size, 8)).astype("f") for _ in range(2))
    made = Map(queries=queries, keys=keys, scale=0.3, mask=masks.causal())
    tokens = (Tokens.of(texts),)
    layer = Layer(name="l", kind="decoder", index=0, maps=(made,), queries=tokens, keys=tokens, head_numbers=(0,))
    tracemalloc.start()
    m.head_table(layer)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size**2 * 4 / 8
