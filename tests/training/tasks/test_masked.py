"""Masked language modelling: what is hidden, what follows, and the losses of a real text encoder."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from regard.errors import OptionError
from regard.model import TextEncoder, TextEncoderConfig
from regard.text.store import TokenStore
from regard.text.windows import Windows
from regard.training.objectives import IGNORED
from regard.training.tasks import MaskedModelling, Paired

from . import cases

V, PAD, FIRST, LAST, MASK = 40, 0, 1, 2, 3


def task(**changes):
    return MaskedModelling(**{"pad": PAD, "first": FIRST, "last": LAST, "mask": MASK, "vocabulary": V, **changes})


def model(next_sentence=False):
    torch.manual_seed(0)
    config = TextEncoderConfig(
        vocabulary=V, width=16, heads=2, depth=1, hidden=16, dropout=0.0, longest=32,
        segments=2 if next_sentence else 0, next_sentence=next_sentence,
    )  # fmt: skip
    return TextEncoder(config).double()


@pytest.fixture
def examples():
    generator = np.random.default_rng(0)
    return [{"text": text, "other": generator.integers(4, V, len(text))} for text in cases.rows(generator, 5, 6, 20, V)]


def test_the_ends_stand_around_a_window_and_are_never_hidden(examples):
    batch = task(share=0.9).collate(examples, cases.draws(5))
    for row, ids in enumerate(batch.tensors["ids"]):
        size = len(examples[row]["text"]) - 1
        assert (int(ids[0]), int(ids[size + 1])) == (FIRST, LAST)
        assert (ids[size + 2 :] == PAD).all()
        assert int(batch.tensors["mask"][row].sum()) == size + 2


def test_targets_are_what_stood_at_the_places(examples):
    batch = task().collate(examples, cases.draws(5))
    tensors = batch.tensors
    assert batch.counts == {"masked": int((tensors["targets"] != IGNORED).sum())}
    for row, example in enumerate(examples):
        kept = tensors["targets"][row] != IGNORED
        places = tensors["places"][row][kept]
        assert len(places) == max(1, round(0.15 * (len(example["text"]) - 1)))
        assert tensors["targets"][row][kept].tolist() == [example["text"][int(place) - 1] for place in places]
        elsewhere = np.delete(np.arange(1, len(example["text"])), places.numpy() - 1)
        assert tensors["ids"][row][elsewhere].tolist() == example["text"][elsewhere - 1].tolist()


def test_of_what_is_to_be_guessed_eight_in_ten_are_hidden_and_one_replaced():
    window = np.full(20_001, 7)
    tensors = task(share=0.5).collate([{"text": window}], cases.draws(1)).tensors
    shown = tensors["ids"][0][tensors["places"][0]]
    assert tensors["places"].shape == (1, 10_000)
    hidden, kept = float((shown == MASK).double().mean()), float((shown == 7).double().mean())
    # Every V-th replacement is the mask itself, and every V-th the token that stood there.
    assert hidden == pytest.approx(0.8 + 0.1 / V, abs=0.01)
    assert kept == pytest.approx(0.1 + 0.1 / V, abs=0.01)


def test_special_pieces_within_a_window_are_not_to_be_guessed():
    window = np.array([5, LAST, LAST, LAST, LAST, LAST, 6])
    tensors = task(share=0.5).collate([{"text": window}], cases.draws(1)).tensors
    assert tensors["targets"][0][tensors["targets"][0] != IGNORED].tolist() == [5]
    nothing = task().collate([{"text": np.array([LAST, LAST])}], cases.draws(1))
    assert nothing.counts == {"masked": 0}


def test_an_example_is_shown_the_same_in_whatever_company(examples):
    made = cases.draws(5)
    whole = task(next_sentence=True).collate(examples, cases.draws(5)).tensors
    for row in range(5):
        alone = task(next_sentence=True).collate(examples[row : row + 1], made[row : row + 1]).tensors
        for name, tensor in alone.items():
            width = tensor.shape[-1] if tensor.ndim == 2 else 1
            assert torch.equal(tensor[0].reshape(-1), whole[name][row].reshape(-1)[:width]), name
    other = task(next_sentence=True).collate(examples, cases.draws(5, epoch=1)).tensors
    assert not torch.equal(whole["ids"], other["ids"])


def test_halves_follow_each_other_or_come_from_elsewhere():
    window, other = np.arange(10, 19), np.arange(20, 29)
    drawn = [task(next_sentence=True, share=0.0).collate([{"text": window, "other": other}], [draw]).tensors
             for draw in cases.draws(40)]  # fmt: skip
    assert {int(tensors["follows"][0]) for tensors in drawn} == {0, 1}
    for tensors in drawn:
        ids, places = tensors["ids"][0], tensors["places"][0]
        second = [14, 15, 16, 17] if tensors["follows"][0] else [24, 25, 26, 27]
        expected = torch.tensor([FIRST, 10, 11, 12, 13, LAST, *second, LAST])
        expected[places[0]] = ids[places[0]]
        assert torch.equal(ids[:11], expected)
        assert tensors["segments"][0][:11].tolist() == [0] * 6 + [1] * 5
    assert task(next_sentence=True).added == 11 - 8
    assert task().added == 2


def test_without_another_window_it_is_said_what_is_missing():
    with pytest.raises(OptionError, match="Paired"):
        task(next_sentence=True).collate([{"text": np.arange(4, 9)}], cases.draws(1))


@pytest.mark.parametrize("next_sentence", [False, True])
def test_the_losses_are_those_of_the_formula(examples, next_sentence):
    reader, ours = model(next_sentence), task(next_sentence=next_sentence)
    tensors = ours.collate(examples, cases.draws(5)).tensors
    expected = likely = follow = followed = 0
    for row in range(5):
        size = int(tensors["mask"][row].sum())
        segments = tensors["segments"][row : row + 1, :size] if next_sentence else None
        vectors = reader.vectors(tensors["ids"][row : row + 1, :size], None, segments)
        kept = tensors["targets"][row] != IGNORED
        targets, logits = tensors["targets"][row][kept], reader.guess(vectors)[0, tensors["places"][row][kept]]
        expected += functional.cross_entropy(logits, targets, reduction="sum")
        likely += int((logits.argmax(-1) == targets).sum())
        if next_sentence:
            said = reader.follows(vectors)[0]
            follow += functional.cross_entropy(said, tensors["follows"][row])
            followed += int(said.argmax() == tensors["follows"][row])
    losses, measured = ours.losses(reader, tensors), ours.measures(reader, tensors)
    torch.testing.assert_close(losses["masked"], expected)
    torch.testing.assert_close(measured["masked/loss"], expected)
    assert int(measured["masked/right"]) == likely
    if next_sentence:
        torch.testing.assert_close(losses["follows"], follow)
        torch.testing.assert_close(measured["follows/loss"], follow)
        assert int(measured["follows/right"]) == followed


@pytest.mark.parametrize("next_sentence", [False, True])
def test_shares_of_a_batch_are_the_whole(examples, next_sentence):
    cases.assert_shares_are_the_whole(task(next_sentence=next_sentence), model(next_sentence), examples)
    cases.assert_nothing_is_learned_from_nothing(task(next_sentence=next_sentence), model(next_sentence))


def stream(folder, total, length):
    """A stream of text in which each token says where it stands."""
    ids = list(range(total))
    store = TokenStore.build(
        folder, [{"text": ids[: total // 2]}, {"text": ids[total // 2 :]}], ("text",), vocabulary=total, longest=None,
        description={},
    )  # fmt: skip
    windows = Windows(store, length=length, tokens=4 * length, seed=0)
    return windows, Paired(windows, total=total, length=length, seed=0)


@pytest.mark.parametrize("total", [16, 17, 23, 200])
def test_the_other_window_never_overlaps(tmp_path, total):
    windows, paired = stream(tmp_path / "store", total, 5)
    for numbers in paired.once():
        alone = windows.read(numbers)
        for own, example in zip(alone, paired.read(numbers), strict=True):
            assert np.array_equal(own["text"], example["text"])
            assert len(example["other"]) == 6
            assert not set(example["text"][:-1]) & set(example["other"][:-1])


def test_the_other_window_depends_on_the_place_alone(tmp_path):
    _, paired = stream(tmp_path / "store", 200, 5)
    numbers = np.array([0, 50, 100, 150])
    whole = paired.read(numbers)
    for row, number in enumerate(numbers):
        assert np.array_equal(paired.read([number])[0]["other"], whole[row]["other"])
    assert len({int(example["other"][0]) for example in whole}) > 1


def test_paired_windows_are_a_source_as_windows_are(tmp_path):
    windows, paired = stream(tmp_path / "store", 200, 5)
    place, numbers = next(paired.after((0, 0, 0)))
    again, expected = next(windows.after((0, 0, 0)))
    assert place == again
    assert np.array_equal(numbers, expected)
    assert paired.steps(1) == windows.steps(1)


def test_a_stream_too_short_for_another_window_is_refused(tmp_path):
    with pytest.raises(OptionError, match=r"15 tokens.*three windows of 5"):
        stream(tmp_path / "store", 15, 5)
