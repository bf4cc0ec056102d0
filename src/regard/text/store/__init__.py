"""Examples as ids on disk, tokenised once: a store is built in a stream and read a batch at a time."""

from .store import TokenStore
from .told import Told

__all__ = ["TokenStore", "Told"]
