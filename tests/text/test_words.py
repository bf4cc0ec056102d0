import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text import split


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我 喜欢 学习 AI 技术", ["我", "喜欢", "学习", "AI", "技术"]),
        ("the cat\tsat\non  the mat", ["the", "cat", "sat", "on", "the", "mat"]),
        ("我喜欢学习AI技术", ["我", "喜", "欢", "学", "习", "AI", "技", "术"]),
        ("  我爱你\n", ["我", "爱", "你"]),
        ("共3.14个，GPT-4！", ["共", "3.14", "个", "，", "GPT-4", "！"]),
        ("ＡＩ技术２０２５年", ["ＡＩ", "技", "术", "２０２５", "年"]),
        ("すごいカメラ", ["す", "ご", "い", "カ", "メ", "ラ"]),
        ("か\u3099き", ["か\u3099", "き"]),  # が in two signs
        ("𠮷野家", ["𠮷", "野", "家"]),
        ("我👨‍👩‍👧你", ["我", "👨‍👩‍👧", "你"]),
        ("我\u3000喜欢", ["我", "喜欢"]),  # an ideographic space is a space
        ("한국어", ["한국어"]),  # Korean is written with spaces
        ("don't", ["don't"]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_words(text, words):
    assert split(text) == words


@given(st.text())
def test_no_sign_is_lost(text):
    words = split(text)
    assert "".join(words) == "".join(text.split())
    assert all(words)
