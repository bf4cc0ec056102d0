"""How the learning rate goes."""

import math
from itertools import pairwise

import pytest

from regard.errors import OptionError
from regard.training.schedule import rate


def rates(schedule, warmup=10, steps=100, final_share=0.1):
    return [rate(step, schedule=schedule, warmup=warmup, steps=steps, final_share=final_share) for step in range(steps)]


@pytest.mark.parametrize("schedule", ["cosine", "inverse-sqrt", "constant"])
def test_it_rises_evenly_to_the_highest(schedule):
    found = rates(schedule)
    assert found[:10] == pytest.approx([step / 10 for step in range(1, 11)])
    assert max(found) == found[9] == 1


def test_the_cosine_ends_at_its_share():
    found = rates("cosine")
    assert found[-1] == pytest.approx(0.1)
    assert found[54] == pytest.approx(0.55)  # half way
    assert all(later < earlier for earlier, later in pairwise(found[9:]))
    assert rate(500, schedule="cosine", warmup=10, steps=100, final_share=0.1) == pytest.approx(0.1)  # and stays


def test_the_inverse_square_root():
    found = rates("inverse-sqrt")
    assert found[39] == pytest.approx(0.5)
    assert found[89] == pytest.approx(1 / 3)


def test_constant_stays():
    assert set(rates("constant", warmup=0)) == {1.0}


def test_without_a_warm_up_and_with_nothing_else():
    assert rates("cosine", warmup=0, steps=1) == [pytest.approx(0.1)]
    assert rates("cosine", warmup=5, steps=5)[-1] == 1
    assert all(math.isfinite(one) for one in rates("cosine", warmup=200))


def test_another_is_refused():
    with pytest.raises(OptionError, match="schedule is 'linear'; it must be one of cosine"):
        rates("linear")
