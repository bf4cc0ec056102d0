"""A shuffle of 0..n-1 that is computed place by place and never held: a keyed Feistel network."""

from collections.abc import Sequence

import numpy as np

from ..errors import OptionError

ROUNDS = 8
ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Permutation:
    """What number stands at each place of a shuffled 0..n-1.   `Permutation(n, (seed, epoch)).of(np.arange(100))`

    A number is two digits, left and right, of bases that multiply to n or a little more. A round adds to one digit
    what a hash makes of the other, which can be taken back, so no two numbers meet. What lands at n or beyond is sent
    through again until it does not: the way leads back to where it began, which is below n.
    """

    def __init__(self, n: int, key: Sequence[int]) -> None:
        if n < 1 or n > 2**62:
            raise OptionError(f"n is {n}; it must be 1 or more, and 2**62 at most.")
        if any(part < 0 for part in key):
            raise OptionError(f"the key is {tuple(key)}; its numbers, such as a seed, must be 0 or more.")
        self.n = n
        left = int(np.ceil(np.sqrt(n)))
        self._left, self._right = np.uint64(left), np.uint64(-(-n // left))
        # The same numbers on every machine and with every version: SeedSequence promises it, a Generator does not.
        self._keys = np.random.SeedSequence(list(key)).generate_state(ROUNDS, np.uint64)

    def of(self, places: np.ndarray) -> np.ndarray:
        """The numbers at these places.   (B,) -> (B,), int64"""
        places = np.atleast_1d(np.asarray(places, dtype=np.int64))
        if places.size and (places.min() < 0 or places.max() >= self.n):
            raise OptionError(f"places are {places.min()} to {places.max()}; there are 0 to {self.n - 1}.")
        found = self._mixed(places.astype(np.uint64))
        while (beyond := found >= self.n).any():
            found[beyond] = self._mixed(found[beyond])
        return found.astype(np.int64)

    def _mixed(self, numbers: np.ndarray) -> np.ndarray:
        left: np.ndarray = numbers // self._right
        right: np.ndarray = numbers % self._right
        for first, second in self._keys.reshape(-1, 2):
            left = (left + _hash(right, first) % self._left) % self._left
            right = (right + _hash(left, second) % self._right) % self._right
        return np.asarray(left * self._right + right)


def _hash(numbers: np.ndarray, key: np.uint64) -> np.ndarray:
    """Every bit of a number, and of the key, in every bit of the result (the mixing of SplitMix64)."""
    mixed = numbers * ODD[0] + key
    mixed = (mixed ^ (mixed >> np.uint64(30))) * ODD[1]
    mixed = (mixed ^ (mixed >> np.uint64(27))) * ODD[2]
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
