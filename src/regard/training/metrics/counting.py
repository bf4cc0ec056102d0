"""Two lists that are to be compared, checked: as many of the one as of the other, and not none."""

from collections.abc import Sequence
from typing import Any

from ...errors import OptionError


def require_pairs(given: Sequence[Any], references: Sequence[Any], what: str) -> None:
    """One reference for each of what was given, and one at least. what: "hypotheses", for the message."""
    if isinstance(given, str) or isinstance(references, str):
        raise OptionError(f"{what} and references are lists of texts, one for each example; a single text is no list.")
    if len(given) != len(references):
        raise OptionError(
            f"there are {len(given)} {what} and {len(references)} references; each must have its reference."
        )
    if not given:
        raise OptionError(f"there are no {what}, so there is nothing to measure.")
