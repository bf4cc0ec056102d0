"""Windows of a stream: each once an epoch, cut elsewhere each time, resumed as if never left."""

import json
import tracemalloc
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import OptionError
from regard.text.batches import Place
from regard.text.store import TokenStore
from regard.text.windows import Windows

TOTAL, LENGTH = 1003, 10


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The numbers from 0 on, in documents of 1 to 7 ids: what stands at a place is the place."""
    documents = np.split(np.arange(TOTAL), np.cumsum(np.arange(300) % 7 + 1)[:250])
    examples = ({"text": ids.tolist()} for ids in documents if len(ids))
    return TokenStore.build(tmp_path_factory.mktemp("stream"), examples, ("text",), vocabulary=TOTAL)


def windows(store, **changes):
    return Windows(store, **{"length": LENGTH, "tokens": 45, "seed": 0, **changes})


def epoch_of(source, epoch):
    return list(islice(source.after(Place(epoch)), source.steps(epoch)))


def test_a_window_is_its_place_and_what_follows(store):
    (first, last) = windows(store).read([7, 992])
    assert first["text"].tolist() == list(range(7, 18))
    assert last["text"].tolist() == list(range(992, 1003))


def test_an_epoch_has_each_window_once(store):
    source = windows(store)
    for epoch in range(12):
        found = epoch_of(source, epoch)
        assert {len(numbers) for _, numbers in found[:-1]} == {4}, "45 tokens are 4 windows of 10"
        starts = np.sort(np.concatenate([numbers for _, numbers in found]))
        assert np.array_equal(np.diff(starts), np.full(len(starts) - 1, LENGTH)), "one id is in two windows, no more"
        assert 0 <= starts[0] < LENGTH
        assert TOTAL - LENGTH <= starts[-1] + LENGTH + 1 <= TOTAL
        assert found[-1][0] == Place(epoch + 1, 0, 0)


def test_epochs_are_cut_elsewhere(store):
    source = windows(store)
    offsets = [min(number for _, numbers in epoch_of(source, epoch) for number in numbers) for epoch in range(12)]
    assert len(set(offsets)) > 4


def test_a_seed_is_an_order(store):
    def order(seed):
        return [numbers.tolist() for _, numbers in epoch_of(windows(store, seed=seed), 0)]

    assert order(3) == order(3)
    assert order(3) != order(4)
    assert order(3) != sorted(order(3))


def test_resumed_at_every_place(store):
    run = list(islice(windows(store).after(Place()), 60))
    places = [Place(), *(place for place, _ in run)]
    for step in range(55):
        place = Place(*json.loads(json.dumps(places[step])))
        later = list(islice(windows(store).after(place), 5))
        assert [behind for behind, _ in later] == places[step + 1 : step + 6]
        for (_, found), (_, expected) in zip(later, run[step:], strict=False):
            assert np.array_equal(found, expected)


@given(length=st.integers(1, 1200), tokens=st.integers(0, 3000))
def test_once_guesses_each_token_once(store, length, tokens):
    source = windows(store, length=length, tokens=length + tokens)
    labels = [example["text"][1:] for numbers in source.once() for example in source.read(numbers)]
    assert np.concatenate(labels).tolist() == list(range(1, TOTAL))
    assert all(len(ids) == length for ids in labels[:-1])


def test_one_window_and_no_more(store):
    source = windows(store, length=TOTAL - 1, tokens=TOTAL)
    for _, numbers in islice(source.after(Place()), 3):
        assert numbers.tolist() == [0]


def test_a_stream_that_is_too_short(store):
    source = windows(store, length=TOTAL, tokens=TOTAL)
    for call in (source.steps, lambda: source.after(Place())):
        with pytest.raises(OptionError, match=r"the stream has 1,003 tokens; a window of 1,003 .* takes 1,004"):
            call()
    assert len(list(source.once())) == 1, "for measuring it is enough"


def test_what_makes_no_sense(store, tmp_path):
    for length, tokens in ((0, 5), (10, 9)):
        with pytest.raises(OptionError, match=f"length is {length} and tokens {tokens}"):
            windows(store, length=length, tokens=tokens)
    with pytest.raises(OptionError, match="seed is -1"):
        windows(store, seed=-1)
    with pytest.raises(OptionError, match="no place of this source: it has 1 pool, with 25 batches"):
        windows(store).after(Place(0, 1, 0))
    with pytest.raises(OptionError, match="no place of this source"):
        windows(store).after(Place(0, 0, 26))
    with pytest.raises(OptionError, match="windows at 0 to 1003; the stream has 1,003 tokens"):
        windows(store).read([0, TOTAL])
    pairs = TokenStore.build(tmp_path, [{"text": [1], "label": [0]}], ("text", "label"), vocabulary=5)
    with pytest.raises(OptionError, match=r"the store has \('text', 'label'\); .* must have 'text' alone"):
        windows(pairs)


def test_memory_is_that_of_a_batch(tmp_path):
    """Five million ids, 10 MB on disk: an order and batches of them are had in less than 1 MB."""
    ids = list(range(1000)) * 100
    store = TokenStore.build(tmp_path, ({"text": ids} for _ in range(50)), ("text",), vocabulary=1000)
    source = Windows(store, length=128, tokens=4096, seed=0)
    tracemalloc.start()
    try:
        for _, numbers in islice(source.after(Place()), 100):
            assert len(source.read(numbers)) == 32
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert store.total("text") == 5_000_000
    assert peak < 1_000_000
