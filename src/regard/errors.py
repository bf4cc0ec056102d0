"""What can go wrong, in the user's words."""


class RegardError(Exception):
    """The base of every error that Regard raises on purpose."""


class ShapeError(RegardError, ValueError):
    """Arrays whose axes do not fit together."""


class DtypeError(RegardError, TypeError):
    """Something of the wrong kind: a list for an array, numbers where booleans were meant."""


class OptionError(RegardError, ValueError):
    """An option whose value makes no sense."""


class UnknownWord(RegardError, LookupError):
    """A word that a vocabulary does not have."""


class FileError(RegardError, OSError):
    """A file that is missing, damaged or not of the kind it should be."""


class MissingExtra(RegardError, ImportError):
    """A part of Regard whose libraries are not installed."""


class WatchError(RegardError, RuntimeError):
    """A model whose attention cannot be seen, or not all of it."""


class NotANumber(RegardError, ArithmeticError):
    """NaN where a model should have given numbers."""
