"""BLEU and chrF: by sacrebleu, with words told as the script asks."""

import math

import pytest

from regard.errors import OptionError
from regard.training.metrics import bleu, chrf


def test_the_same_text_is_perfect():
    texts = ["The cat sat on the mat.", "A dog came in late."]
    assert bleu(texts, texts).score == pytest.approx(100)
    assert chrf(texts, texts).score == pytest.approx(100)


def test_bleu_is_what_is_computed_by_hand():
    # 6 words of 7 are shared, 5 pairs of 6, 4 of 5, 3 of 4; both are equally long.
    found = bleu(["the quick brown fox jumps up high"], ["the quick brown fox jumps up there"])
    expected = 100 * math.exp(sum(map(math.log, (6 / 7, 5 / 6, 4 / 5, 3 / 4))) / 4)
    assert found.score == pytest.approx(expected)


def test_a_short_translation_is_punished():
    found = bleu(["the quick brown fox"], ["the quick brown fox jumps up"])
    assert found.score == pytest.approx(100 * math.exp(1 - 6 / 4))


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("我喜欢学习人工智能技术。", "zh"),
        ("我用 PyTorch 写了一个很小的翻译模型给大家看。", "zh"),
        ("私は機械翻訳が好きです。", "char"),
        ("I like machine translation.", "13a"),
        ("The word 猫 means cat.", "13a"),
        ("12 + 7 = 19", "13a"),
        ("", "13a"),
    ],
)
def test_words_are_told_as_the_script_of_the_references_asks(reference, name):
    found = bleu([reference], [reference])
    assert f"tok:{name}" in found.signature
    assert "version:" in found.signature


def test_chinese_is_compared_by_the_character():
    assert bleu(["我喜欢学习人工智能"], ["我喜欢学习人工智慧"]).score > 70
    assert bleu(["我喜欢学习人工智能"], ["我喜欢学习人工智慧"], tokenize="13a").score < 1


def test_a_name_can_be_given():
    assert "tok:char" in bleu(["abc"], ["abc"], tokenize="char").signature


def test_an_empty_translation_is_worth_nothing():
    assert bleu([""], ["the cat sat on the mat"]).score == 0
    assert chrf([""], ["the cat sat on the mat"]).score == 0


@pytest.mark.parametrize("measure", [bleu, chrf])
def test_what_cannot_be_compared_is_refused(measure):
    with pytest.raises(OptionError, match="2 hypotheses and 1 references"):
        measure(["a", "b"], ["a"])
    with pytest.raises(OptionError, match="no hypotheses"):
        measure([], [])
    with pytest.raises(OptionError, match="a single text is no list"):
        measure("abc", ["a", "b", "c"])
