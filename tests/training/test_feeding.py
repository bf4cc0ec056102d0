"""The feed: what each process gets, whoever reads ahead and however far."""

import itertools
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from regard.text.batches import Place
from regard.training import feeding, tasks
from regard.training.feeding import Draws, Feed, ahead
from regard.training.ranks import Ranks

from .small import ALONE, source

TASK = tasks.LanguageModelling(pad=0)
MASKED = tasks.MaskedModelling(pad=0, first=1, last=2, mask=3, vocabulary=40, share=0.4)


def feed(folder, ranks=ALONE, collate=TASK.collate, **options):
    return Feed(source(folder), collate, ranks, seed=3, sized=["text"], **options)


def first(feed, count=12, place=Place()):  # noqa: B008
    return list(itertools.islice(feed.after(place), count))


def texts(portion):
    """The windows of a portion, whichever part they are in."""
    return sorted(row[row != 0].tolist() for part in portion.parts for row in part.tensors["ids"] if row.any())


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "regard-feed"]


@pytest.mark.parametrize("steps", [1, 2, 100])
def test_how_far_it_reads_ahead_changes_nothing(tmp_path, monkeypatch, steps):
    expected = first(feed(tmp_path / "store"))
    monkeypatch.setattr(feeding, "AHEAD", steps)
    for one, other in zip(first(feed(tmp_path / "store")), expected, strict=True):
        assert one.place == other.place
        assert one.tokens == other.tokens
        assert all(torch.equal(a.tensors["ids"], b.tensors["ids"]) for a, b in zip(one.parts, other.parts, strict=True))


def test_it_goes_on_from_any_place(tmp_path):
    whole = first(feed(tmp_path / "store"), 20)
    assert whole[-1].place.epoch > 0  # through the end of an epoch
    for done in (1, 5, 17):
        rest = first(feed(tmp_path / "store"), 20 - done, whole[done - 1].place)
        assert [texts(portion) for portion in rest] == [texts(portion) for portion in whole[done:]]


@pytest.mark.parametrize(("count", "accumulate"), [(1, 3), (2, 1), (3, 2), (20, 2)])
def test_processes_and_parts_share_a_batch(tmp_path, count, accumulate):
    whole = first(feed(tmp_path / "store"), 6)
    shares = [
        first(feed(tmp_path / "store", Ranks(rank, count, torch.device("cpu")), accumulate=accumulate), 6)
        for rank in range(count)
    ]
    for step, portion in enumerate(whole):
        mine = [share[step] for share in shares]
        assert sorted(itertools.chain(*map(texts, mine))) == texts(portion)
        assert sum(one.tokens for one in mine) == portion.tokens
        parts = min(accumulate, -(-len(portion.numbers) // count))  # and none that nobody has a row of
        assert all(len(one.parts) == parts for one in mine)
        assert {one.place for one in mine} == {portion.place}
        counted = sum(part.counts["tokens"] for one in mine for part in one.parts)
        assert counted == portion.parts[0].counts["tokens"]


def test_the_same_words_are_hidden_however_a_batch_is_divided(tmp_path):
    alone = first(feed(tmp_path / "store", collate=MASKED.collate))
    twos = [
        first(feed(tmp_path / "store", Ranks(rank, 2, torch.device("cpu")), MASKED.collate, accumulate=2))
        for rank in range(2)
    ]
    for step, portion in enumerate(alone):
        assert sorted(texts(twos[0][step]) + texts(twos[1][step])) == texts(portion)


def test_other_words_are_hidden_in_each_epoch():
    numbers = np.array([7, 9])
    drawn = {(epoch, i): Draws(1, epoch, numbers)[i].random() for epoch in range(3) for i in range(2)}
    assert len(set(drawn.values())) == 6
    assert Draws(1, 0, np.array([9]))[0].random() == drawn[0, 1]
    assert Draws(2, 0, numbers)[0].random() != drawn[0, 0]
    assert len(Draws(1, 0, numbers)) == 2


def test_every_example_once(tmp_path):
    store = source(tmp_path / "store")
    read = sorted(row for portion in feed(tmp_path / "store").once() for row in texts(portion))
    assert read == sorted(row["text"][:-1].tolist() for row in store.read(range(60)))


def test_an_error_of_the_thread_arrives():
    def failing():
        yield 1
        raise ValueError("no more")

    items = ahead(failing())
    assert next(items) == 1
    with pytest.raises(ValueError, match="no more"):
        next(items)
    assert not threads()


def test_an_error_of_reading_arrives(tmp_path):
    made = feed(tmp_path / "store")
    (tmp_path / "store" / "ids.bin").unlink()
    with pytest.raises(OSError, match=r"ids\.bin"):
        first(made)


def test_it_reads_no_further_than_it_may():
    made = []

    def counting():
        for number in itertools.count():
            made.append(number)
            yield number

    items = ahead(counting())
    assert [next(items), next(items)] == [0, 1]
    time.sleep(0.3)
    assert len(made) <= 2 + feeding.AHEAD + 1
    items.close()
    assert not threads()


def test_the_thread_ends_when_nobody_asks_any_more():
    for number in ahead(itertools.count()):
        if number == 2:
            break
    assert not threads()


def test_memory_is_pinned_for_a_gpu_alone(tmp_path):
    batch = SimpleNamespace(tensors={}, counts={})
    assert feed(tmp_path / "store")._placed(batch) is batch
