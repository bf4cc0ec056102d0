"""How near translations come to references: BLEU and chrF, by sacrebleu, with the signature of how."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import MissingExtra
from .counting import require_pairs
from .scripts import is_chinese, is_japanese


@dataclass(frozen=True)
class Score:
    """A score from 0 to 100, and how it was come by, in the words that sacrebleu has for it."""

    score: float
    signature: str


def bleu(hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str | None = None) -> Score:
    """Up to four words in a row that the references have too (Papineni et al. 2002).

    tokenize: sacrebleu's name for how words are told; unless given, "zh" where most signs of the references are
    Chinese, "char" where they are Japanese, and "13a", its default, otherwise.
    """
    require_pairs(hypotheses, references, "hypotheses")
    return _scored(_metrics().BLEU(tokenize=tokenize or _tokenize(references)), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Up to six characters in a row, which asks for no words (Popović 2015)."""
    require_pairs(hypotheses, references, "hypotheses")
    return _scored(_metrics().CHRF(), hypotheses, references)


def _scored(metric: Any, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    found = metric.corpus_score(list(hypotheses), [list(references)])
    return Score(float(found.score), str(metric.get_signature()))


def _tokenize(references: Sequence[str]) -> str:
    # Sacrebleu's own tokenizer for Japanese needs a dictionary to be installed; characters need nothing.
    if is_japanese(references):
        return "char"
    return "zh" if is_chinese(references) else "13a"


def _metrics() -> Any:
    try:
        from sacrebleu import metrics
    except ImportError as missing:
        raise MissingExtra("BLEU and chrF need sacrebleu: pip install regard[train]") from missing
    return metrics
