"""Exact match and F1 of answers, normalised as SQuAD has it; Chinese by the character."""

import pytest

from regard.errors import OptionError
from regard.training.metrics import Answers, answers
from regard.training.metrics.spans import normalised, overlap


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The  Cat, the dog!", "cat dog"),
        ("An apple a day", "apple day"),
        ("another theme", "another theme"),
        ("U.S.A.", "usa"),
        ("《红楼梦》。", "红楼梦"),
        ("the", ""),
        ("", ""),
    ],
)
def test_normalised(answer, expected):
    assert normalised(answer) == expected


def test_overlap_is_what_is_computed_by_hand():
    assert overlap("in the big city of London", "London city") == pytest.approx(2 * 2 / (5 + 2))
    assert overlap("dog dog", "dog") == pytest.approx(2 / 3)
    assert overlap("曹雪芹先生", "曹雪芹") == pytest.approx(2 * 3 / 8)
    assert overlap("cat", "dog") == 0


def test_no_answer_is_right_where_there_is_none_and_only_there():
    assert overlap("", "") == 1
    assert overlap("", "cat") == overlap("cat", "") == 0


def test_the_nearest_of_several_counts_and_the_mean_is_over_questions():
    found = answers(["The cat", "a dog barks", ""], [["dog", "cat"], ["dog"], [""]])
    assert found == Answers(pytest.approx(2 / 3), pytest.approx((1 + 2 / 3 + 1) / 3))


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(OptionError, match="1 answers and 2 references"):
        answers(["a"], [["a"], ["b"]])
    with pytest.raises(OptionError, match="no answers"):
        answers([], [])
    with pytest.raises(OptionError, match="question 2 has the references 'b'"):
        answers(["a", "b"], [["a"], "b"])
    with pytest.raises(OptionError, match="question 1 has the references"):
        answers(["a"], [[]])
