"""The options of a task, checked."""

from ...errors import OptionError


def require_share(name: str, number: float) -> None:
    """From 0 up to, but not including, 1."""
    if not 0 <= number < 1:
        raise OptionError(f"{name} is {number}; it must be a number from 0 up to, but not including, 1.")


def require_not_negative(name: str, number: float) -> None:
    """0 or more."""
    if not 0 <= number < float("inf"):
        raise OptionError(f"{name} is {number}; it must be a number of 0 or more.")
