"""Accuracy and F1 of labels: against numbers worked out on paper."""

import pytest

from regard.errors import OptionError
from regard.training.metrics import OfLabel, agreement

GIVEN = ["a", "a", "a", "b", "b", "c"]
RIGHT = ["a", "a", "b", "b", "c", "a"]


def test_against_numbers_worked_out_on_paper():
    found = agreement(GIVEN, RIGHT)
    assert found.accuracy == pytest.approx(3 / 6)
    assert found.labels == (OfLabel("a", 2, 3, 3), OfLabel("b", 1, 2, 2), OfLabel("c", 0, 1, 1))
    assert [one.f1 for one in found.labels] == pytest.approx([2 / 3, 1 / 2, 0])
    assert found.macro == pytest.approx((2 / 3 + 1 / 2) / 3)
    assert found.micro == pytest.approx(3 / 6)


def test_precision_and_recall_differ():
    a, b = agreement(["a", "a", "a"], ["a", "b", "b"]).labels
    assert (a.precision, a.recall, a.f1) == pytest.approx((1 / 3, 1, 1 / 2))
    assert (b.precision, b.recall, b.f1) == (0, 0, 0)


def test_labels_can_be_named_and_one_that_never_occurs_is_zero():
    found = agreement(["a"], ["a"], labels=("b", "a"))
    assert [one.label for one in found.labels] == ["b", "a"]
    assert (found.accuracy, found.macro) == (1, 0.5)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(OptionError, match="6 labels and 1 references"):
        agreement(GIVEN, ["a"])
    with pytest.raises(OptionError, match="no labels"):
        agreement([], [])
