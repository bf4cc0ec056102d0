"""ROUGE by hand: against numbers worked out on paper."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import OptionError
from regard.training.metrics import Rouge, rouge
from regard.training.metrics.rouge import _longest_common, words


def test_against_numbers_worked_out_on_paper():
    # the cat sat on the mat | the cat lay on a mat: the, cat, on, mat; "the cat"; the cat on mat
    found = rouge(["The cat sat on the mat."], ["the cat lay on a mat"])
    assert found.one == pytest.approx(2 * 4 / 12)
    assert found.two == pytest.approx(2 * 1 / 10)
    assert found.longest == pytest.approx(2 * 4 / 12)


def test_a_word_counts_as_often_as_both_have_it():
    assert rouge(["the the the"], ["the cat"]).one == pytest.approx(2 * 1 / 5)


def test_order_matters_to_the_longest_sequence_alone():
    found = rouge(["c b a"], ["a b c"])
    assert found == Rouge(1.0, 0.0, pytest.approx(2 * 1 / 6))


def test_chinese_goes_by_the_character():
    # 我 喜 欢 猫 | 我 喜 欢 狗
    found = rouge(["我喜欢猫。"], ["我喜欢狗！"])
    assert found == Rouge(pytest.approx(6 / 8), pytest.approx(4 / 6), pytest.approx(6 / 8))


def test_words():
    assert words("Hello, World_2! 我用GPT4写 ひらがな don't é") == [
        "hello", "world", "2", "我", "用", "gpt4", "写", "ひ", "ら", "が", "な", "don", "t", "é",
    ]  # fmt: skip


def test_the_mean_is_over_summaries():
    assert rouge(["a", ""], ["a", "a"]) == Rouge(0.5, 0.0, 0.5)


def test_empty_summaries_are_worth_nothing():
    assert rouge([""], ["a b"]) == rouge([""], [""]) == Rouge(0, 0, 0)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(OptionError, match="1 summaries and 3 references"):
        rouge(["a"], ["a", "b", "c"])
    with pytest.raises(OptionError, match="no summaries"):
        rouge([], [])


@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_the_longest_common_sequence_is_that_of_brute_force(one, other):
    def sequences(text):
        return {kept for size in range(len(text) + 1) for kept in itertools.combinations(text, size)}

    assert _longest_common(list(one), list(other)) == max(map(len, sequences(one) & sequences(other)))
