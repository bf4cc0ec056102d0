"""Batches of like length: within their limit, each example once, and resumed at any place as if never left."""

import json
from itertools import islice

import numpy as np
import pytest

from regard.errors import OptionError
from regard.text import batches
from regard.text.batches import Bucketed, Place
from regard.text.store import TokenStore

TOKENS = 400


def store_of(folder, count, seed=0):
    """Pairs of sentences as they are: log-normal lengths, 20 tokens or so, a target about as long as its source."""
    draw = np.random.default_rng(seed)
    sources = np.clip(draw.lognormal(3.0, 0.6, count), 1, 250).astype(int)
    targets = np.clip(sources * draw.lognormal(0.1, 0.25, count), 1, 250).astype(int)
    ids = list(range(250))
    examples = ({"source": ids[:a], "target": ids[:b]} for a, b in zip(sources.tolist(), targets.tolist(), strict=True))
    return TokenStore.build(folder, examples, ("source", "target"), vocabulary=250)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return store_of(tmp_path_factory.mktemp("pairs"), 2500)


@pytest.fixture(autouse=True)
def small_pools(monkeypatch):
    monkeypatch.setattr(batches, "POOL", 1000)


def cost(store, numbers):
    return len(numbers) * store.sizes(numbers).max(axis=0).sum()


def epochs(source, count):
    """The batches of some epochs, and the place before each one and behind the last."""
    steps = sum(source.steps(epoch) for epoch in range(count))
    found = list(islice(source.after(Place()), steps))
    return [numbers.tolist() for _, numbers in found], [Place(), *(place for place, _ in found)]


def test_resumed_at_every_place(store):
    source = Bucketed(store, tokens=TOKENS, seed=1)
    found, places = epochs(source, 2)
    assert places[-1] == Place(2, 0, 0)
    assert {place.pool for place in places} == {0, 1, 2}
    for step in range(len(found) - 5):
        place = Place(*json.loads(json.dumps(places[step])))
        later = list(islice(Bucketed(store, tokens=TOKENS, seed=1).after(place), 5))
        assert [numbers.tolist() for _, numbers in later] == found[step : step + 5]
        assert [behind for behind, _ in later] == places[step + 1 : step + 6]


def test_an_epoch_has_each_example_once_and_in_its_own_order(store):
    source = Bucketed(store, tokens=TOKENS, seed=1)
    found, _ = epochs(source, 2)
    first, second = found[: source.steps(0)], found[source.steps(0) :]
    for epoch in (first, second):
        assert sorted(number for numbers in epoch for number in numbers) == list(range(len(store)))
    assert first != second
    assert set(map(tuple, first)) != set(map(tuple, second)), "not the same batches in another order"


def test_a_seed_is_an_order(store):
    def order(seed):
        return [numbers.tolist() for _, numbers in islice(Bucketed(store, tokens=TOKENS, seed=seed).after(Place()), 50)]

    assert order(3) == order(3)
    assert order(3) != order(4)


def test_the_limit_is_kept_and_used(store):
    source = Bucketed(store, tokens=TOKENS, seed=0)
    costs = [cost(store, numbers) for _, numbers in islice(source.after(Place()), source.steps())]
    assert max(costs) <= TOKENS
    assert np.median(costs) > 0.9 * TOKENS


def test_an_example_that_is_longer_than_a_batch_is_one_by_itself(store):
    source = Bucketed(store, tokens=100, seed=0)
    long = [numbers for _, numbers in islice(source.after(Place()), source.steps()) if cost(store, numbers) > 100]
    assert {len(numbers) for numbers in long} == {1}
    assert len(long) == (store.sizes(range(len(store))).sum(axis=1) > 100).sum()


def test_lengths_in_an_epoch_come_mixed(store):
    source = Bucketed(store, tokens=TOKENS, seed=0)
    lengths = [store.lengths(numbers, "source").max() for _, numbers in islice(source.after(Place()), source.steps())]
    assert abs(np.corrcoef(lengths[:-1], lengths[1:])[0, 1]) < 0.2


def test_once_is_every_example_within_the_limit(store):
    found = list(Bucketed(store, tokens=2000, seed=0).once())
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(len(store)))
    assert max(cost(store, numbers) for numbers in found) <= 2000


@pytest.mark.parametrize(("fields", "most"), [(("source", "target"), 0.06), (("source",), 0.02)])
def test_little_of_a_batch_is_padding(tmp_path, monkeypatch, fields, most):
    """60,000 pairs of log-normal lengths: under 6% of a batch is padding, under 2% of one of single texts."""
    monkeypatch.undo()
    store = store_of(tmp_path, 60_000)
    source = Bucketed(store, tokens=8192, seed=0, fields=fields)
    columns = [store.fields.index(name) for name in fields]
    real = padded = 0
    for numbers in source.once():
        sizes = store.sizes(numbers)[:, columns]
        real += sizes.sum()
        padded += len(numbers) * sizes.max(axis=0).sum()
    assert 1 - real / padded < most
    assert padded / source.steps() > 0.97 * 8192, "and the batches are full"


def test_examples_are_read(store):
    numbers = next(Bucketed(store, tokens=TOKENS, seed=0).once())
    read = Bucketed(store, tokens=TOKENS, seed=0).read(numbers)
    assert [len(example["target"]) for example in read] == store.lengths(numbers, "target").tolist()


def test_what_makes_no_sense(store):
    with pytest.raises(OptionError, match="tokens is 0"):
        Bucketed(store, tokens=0, seed=0)
    with pytest.raises(OptionError, match="seed is -1"):
        Bucketed(store, tokens=10, seed=-1)
    with pytest.raises(OptionError, match=r"fields is \('text',\); it must be one or more of \('source', 'target'\)"):
        Bucketed(store, tokens=10, seed=0, fields=("text",))
    source = Bucketed(store, tokens=TOKENS, seed=0)
    with pytest.raises(OptionError, match=r"pool=3.* is no place of this source: it has 3 pools"):
        source.after(Place(0, 3, 0))
    with pytest.raises(OptionError, match="there is no batch 9999 in epoch 0, pool 0"):
        next(source.after(Place(0, 0, 9999)))
