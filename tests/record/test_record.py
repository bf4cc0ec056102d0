"""The record itself: its runs, its texts, its layers by kind, names of one's own, means, and how it shows itself."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

from regard.errors import OptionError, RegardError
from regard.formula import masks
from regard.record import Layer, Mean, Record, Run, Tokens
from regard.record.map import Map
from tests import reference

N, M, D = 6, 4, 5  # tokens of the encoder, of the decoder; width
SOURCE, TARGET = Tokens.of("abcdef"), Tokens.of("wxyz")


def layer(index=0, kind="encoder", *, heads=(0, 1, 2), texts=1, seed=0):
    """A layer with random weights. heads: their numbers in the model"""
    rng = np.random.default_rng((seed, index))
    rows, cols = {"encoder": (SOURCE, SOURCE), "decoder": (TARGET, TARGET), "cross": (TARGET, SOURCE)}[kind]
    maps = tuple(
        Map(
            queries=rng.normal(size=(len(heads), len(rows), D)), keys=rng.normal(size=(len(heads), len(cols), D)),
            scale=0.8, mask=masks.causal() if kind == "decoder" else None,
        )
        for _ in range(texts)
    )  # fmt: skip
    return Layer(
        name=f"{kind}.{index}", kind=kind, index=index, maps=maps, queries=(rows,) * texts, keys=(cols,) * texts,
        head_numbers=heads,
    )  # fmt: skip


def record(*layers, model="by hand"):
    return Record([Run(layers=layers, model=model)])


def dense(made, text=0):
    own = made.maps[text]
    allowed = None if own.mask is None else np.tri(*own.shape[1:], dtype=bool)
    return reference.weights(own.queries, own.keys, scale=own.scale, allowed=allowed)


def both():
    """An encoder and a decoder, numbered as in a model: through all its layers."""
    return record(layer(0), layer(1), layer(2, "decoder"), layer(3, "cross"), layer(4, "decoder"), layer(5, "cross"))


# ---- runs


def test_no_run():
    empty = Record([])
    assert empty.runs == ()
    assert repr(empty) == "Record(nothing yet)"
    for ask in (lambda: empty.run, lambda: empty.layers, lambda: empty.item(0), empty.mean):
        with pytest.raises(RegardError, match="the record is empty: no attention ran while the model was watched"):
            ask()


def test_one_run():
    one = record(layer(0), layer(1), model="bert")
    assert one.runs == (one,)
    assert one.run.layers is one.layers
    assert (one.model, one.items, one.tokens) == ("bert", 1, tuple("abcdef"))
    assert repr(one) == "Record(bert, 2 layers)"


def test_two_runs():
    runs = [Run(layers=(layer(0),), model="first"), Run(layers=(layer(0), layer(1)), model="second")]
    two = Record(runs)
    assert [own.run for own in two.runs] == runs
    assert [own.model for own in two.runs] == ["first", "second"]
    assert repr(two) == "Record(2 runs)"
    for ask in (lambda: two.layers, lambda: two.model, lambda: two.item(0), two.mean):
        with pytest.raises(RegardError, match=r"ran 2 times.*; choose one: record\.runs\[0\] … record\.runs\[1\]"):
            ask()


class Coming:
    """Runs that are still going on."""

    def __init__(self):
        self.over, self.found = False, []

    def runs(self):
        return list(self.found)


def test_runs_that_are_still_going_on():
    source = Coming()
    growing = Record(source)
    assert repr(growing) == "Record(nothing yet)"
    source.found.append(Run(layers=(layer(0),), model="bert"))
    assert repr(growing) == "Record(bert, 1 layers)"
    source.found.append(Run(layers=(layer(0),), model="bert"))
    assert len(growing.runs) == 2


def test_what_the_runs_came_from_is_let_go_once_it_is_over():
    source = Coming()
    source.found.append(Run(layers=(layer(0),)))
    growing, watched = Record(source), weakref.ref(source)
    source.over = True
    assert len(growing.layers) == 1
    del source
    gc.collect()
    assert watched() is None
    assert len(growing.layers) == 1


# ---- texts of a batch


def test_the_texts_of_a_batch():
    batch = record(layer(0, texts=3), layer(1, texts=3))
    assert batch.items == 3
    assert repr(batch) == "Record(by hand, 2 layers, 3 texts)"
    for text in range(3):
        own = batch.item(text)
        assert own.items == 1
        for found, whole in zip(own.layers, batch.layers, strict=True):
            np.testing.assert_allclose(found.weights(), dense(whole, text), atol=1e-12)
            np.testing.assert_allclose(whole.weights(item=text), dense(whole, text), atol=1e-12)
            np.testing.assert_allclose(found.heads[1].weights(), dense(whole, text)[1], atol=1e-12)
            assert found.map is whole.maps[text]


def test_texts_are_counted_from_the_end_too():
    batch = record(layer(0, texts=3))
    assert batch.item(-1).layers[0] is batch.item(2).layers[0]
    assert batch.item(-3).layers[0] is batch.item(0).layers[0]


def test_a_batch_of_one_text_is_that_text():
    one = record(layer(0))
    assert one.item(0).layers[0] is one.layers[0]


@pytest.mark.parametrize("item", [3, -4])
def test_a_text_that_is_not_there(item):
    batch = record(layer(0, texts=3))
    for ask in (lambda: batch.item(item), lambda: batch.layers[0].weights(item=item)):
        with pytest.raises(OptionError, match=f"item {item} of 3; choose 0 to 2"):
            ask()


# ---- layers


def test_layers_of_a_kind():
    whole = both()
    assert [own.index for own in whole.of_kind("encoder")] == [0, 1]
    assert [own.index for own in whole.of_kind("decoder")] == [2, 4]
    assert [own.index for own in whole.of_kind("cross")] == [3, 5]
    assert record(layer(0)).of_kind("cross") == ()


def test_layers_and_heads_say_who_they_are():
    own = layer(3, "cross", heads=(1, 4))
    assert repr(own) == "Layer(3 cross.3, cross, 2 heads, 4 × 6)"
    assert repr(own.heads[1]) == "Head(4 of cross.3, 4 × 6)"
    assert [head.index for head in own.heads] == [1, 4]
    assert repr(record(own, model="")) == "Record(a model, 1 layers)"


# ---- names of one's own


def test_tokens_of_ones_own():
    plain = record(layer(0), layer(1))
    named = plain.labelled(["one", "two", "three", "four", "five", "six"])
    assert named.tokens == ("one", "two", "three", "four", "five", "six")
    for found, own in zip(named.layers, plain.layers, strict=True):
        assert found.keys[0].words == named.tokens
        assert found.map is own.map  # what is known of it stays known
    assert plain.tokens == tuple("abcdef")


def test_tokens_with_pieces_of_words():
    pieces = Tokens((" un", "do", " it", " now", "here", "."), (True, False, True, True, False, True))
    (found,) = record(layer(0)).labelled(pieces).layers
    assert found.queries == found.keys == (pieces,)
    assert found.queries[0].words == ("undo", "it", "nowhere", ".")


def test_tokens_for_layers_of_one_kind():
    named = both().labelled("1234", "ABCDEF", kind="cross")
    for own in named.of_kind("cross"):
        assert (own.queries[0].texts, own.keys[0].texts) == (tuple("1234"), tuple("ABCDEF"))
    assert {own.queries[0] for own in named.of_kind("encoder")} == {SOURCE}
    assert {own.keys[0] for own in named.of_kind("decoder")} == {TARGET}


def test_tokens_are_those_of_the_first_text():
    batch = record(layer(0, texts=2))
    named = batch.labelled("ABCDEF")
    assert named.items == 1
    assert named.layers[0].map is batch.layers[0].maps[0]


@pytest.mark.parametrize(("queries", "keys"), [("12345", None), ("123456", "12345"), ("1234567", "123456"), ("", None)])
def test_as_many_tokens_as_the_map_has(queries, keys):
    sizes = f"{len(queries)} and {len(queries if keys is None else keys)} tokens"
    with pytest.raises(OptionError, match=f"layer 7 is 6 × 6, queries × keys, and there are {sizes} for them"):
        record(layer(7)).labelled(queries, keys)


def test_one_list_of_tokens_is_not_enough_for_cross_attention():
    with pytest.raises(OptionError, match="layer 3 is 4 × 6, queries × keys, and there are 4 and 4 tokens"):
        both().labelled("1234", kind="cross")
    with pytest.raises(OptionError, match="layer 2 is 4 × 4, queries × keys, and there are 6 and 6 tokens"):
        both().labelled("123456")


# ---- means


def test_the_mean_of_all_heads():
    layers = layer(0), layer(1, heads=(0, 1))  # each head counts once, whatever its layer has
    mean = record(*layers).mean()
    assert isinstance(mean, Mean)
    assert mean.shape == (N, N)
    np.testing.assert_allclose(mean.weights(), np.concatenate([dense(own) for own in layers]).mean(0), atol=1e-12)


def test_layers_and_heads_are_numbered_as_in_the_model():
    """Of a model with more layers and heads, two layers were watched, and two heads of each."""
    layers = layer(1, heads=(0, 2)), layer(3, heads=(0, 2))
    part = record(*layers)
    np.testing.assert_allclose(part.mean(layers=[3]).weights(), dense(layers[1]).mean(0), atol=1e-12)
    np.testing.assert_allclose(part.mean(heads=[2]).weights(), (dense(layers[0])[1] + dense(layers[1])[1]) / 2)
    np.testing.assert_allclose(part.mean([3], [2]).weights(), dense(layers[1])[1])
    chosen = part.mean(np.array([3, 1]), np.array([2])).chosen
    assert [(head.layer.index, head.index) for head in chosen] == [(3, 2), (1, 2)]


def test_heads_that_come_one_by_one_serve_every_layer():
    chosen = record(layer(0), layer(1)).mean(layers=iter([0, 1]), heads=iter([2, 0])).chosen
    assert [(head.layer.index, head.index) for head in chosen] == [(0, 2), (0, 0), (1, 2), (1, 0)]


def test_the_mean_of_a_kind():
    whole = both()
    np.testing.assert_allclose(
        whole.mean(kind="cross").weights(), np.concatenate([dense(whole.layers[place]) for place in (3, 5)]).mean(0)
    )
    np.testing.assert_allclose(whole.mean(layers=[4], kind="decoder").weights(), dense(whole.layers[4]).mean(0))


def test_the_mean_of_one_text_of_a_batch():
    batch = record(layer(0, texts=2))
    np.testing.assert_allclose(batch.item(1).mean().weights(), dense(batch.layers[0], 1).mean(0))


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"layers": [2]}, r"there is no layer 2 here; there are 1, 3\."),
        ({"layers": [1, 0]}, r"there is no layer 0 here; there are 1, 3\."),
        ({"layers": [-1]}, r"there is no layer -1 here; there are 1, 3\."),
        ({"heads": [1]}, r"there is no head 1 here; there are 0, 2\."),
        ({"layers": [1], "kind": "cross"}, r"there is no layer 1 here; there are none\."),
        ({"layers": []}, "no heads are chosen; a mean needs at least one"),
        ({"heads": []}, "no heads are chosen; a mean needs at least one"),
        ({"kind": "cross"}, "no heads are chosen; a mean needs at least one"),
    ],
)
def test_a_mean_of_what_is_not_there(choice, message):
    with pytest.raises(OptionError, match=message):
        record(layer(1, heads=(0, 2)), layer(3, heads=(0, 2))).mean(**choice)


def test_maps_of_different_shapes_have_no_mean():
    with pytest.raises(OptionError, match=r"different shapes have no mean: \[\(4, 4\), \(4, 6\), \(6, 6\)\]\. Choose"):
        both().mean()
    with pytest.raises(OptionError, match=r"\[\(4, 6\), \(6, 6\)\]"):
        both().mean(layers=[1, 3])


# ---- pictures and files


def images(figure):
    return [np.asarray(axes.images[0].get_array()) for axes in figure.axes if axes.images]


def test_plot(tmp_path):
    pytest.importorskip("matplotlib")
    layers = layer(1, heads=(0, 2)), layer(3, heads=(0, 2))
    part = record(*layers)
    (found,) = images(part.plot(tmp_path / "head.png", layer=3, head=2))
    np.testing.assert_allclose(found, dense(layers[1])[1], atol=1e-12)
    assert (tmp_path / "head.png").read_bytes().startswith(b"\x89PNG")
    assert len(images(part.plot(layer=1))) >= 2  # one for each head
    assert images(part.plot())


def test_words_of_a_plot():
    pytest.importorskip("matplotlib")
    pieces = Tokens((" un", "do", " it", " now", "here", "."), (True, False, True, True, False, True))
    (found,) = images(record(layer(0)).labelled(pieces).plot(layer=0, head=1, words=True))
    assert found.shape == (4, 4)


def test_a_record_that_was_saved_is_the_same(tmp_path):
    from regard.record.file import open as opened

    own = replace(layer(3, heads=(0, 2)), name="kept")
    record(own, model="bert").save(tmp_path / "one.regard")
    again = opened(tmp_path / "one.regard")
    assert repr(again) == "Record(bert, 1 layers)"
    assert repr(again.layers[0]) == repr(own)
    np.testing.assert_allclose(again.mean(layers=[3], heads=[2]).weights(), dense(own)[1], atol=1e-6)
