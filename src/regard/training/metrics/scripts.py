"""Which script texts are mostly written in, so far as it matters to where their words end."""

import re
from collections.abc import Iterable

HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
KANA = re.compile("[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9d]")
JAPANESE = 0.05  # hardly any Japanese text has less of its signs in kana, and Chinese has none


def is_chinese(texts: Iterable[str]) -> bool:
    """Whether most letters are Chinese characters, and next to none kana."""
    han, kana, letters = _counted(texts)
    return han > letters / 2 and kana < JAPANESE * letters


def is_japanese(texts: Iterable[str]) -> bool:
    """Whether most letters are Chinese characters or kana, and some kana."""
    han, kana, letters = _counted(texts)
    return han + kana > letters / 2 and kana >= JAPANESE * letters


def _counted(texts: Iterable[str]) -> tuple[int, int, int]:
    han = kana = letters = 0
    for text in texts:
        han += len(HAN.findall(text))
        kana += len(KANA.findall(text))
        letters += sum(map(str.isalpha, text))
    return han, kana, letters
