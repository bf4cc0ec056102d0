"""What decoding asks of a model: to take one token per row, and to let rows be copied, reordered and dropped."""

# R rows that are decoded at once, V tokens of the vocabulary

from typing import Protocol, TypeVar

from torch import Tensor

State = TypeVar("State")


class Stepper(Protocol[State]):
    """A model as decoding sees it. Its state is any object; what begins it is the model's own affair."""

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """How well each token would come next, and the state after.   (R,) -> (R, V)"""
        ...

    def reorder(self, state: State, index: Tensor) -> State:
        """A state whose row i is what row index[i] was; there may be more rows than before, or fewer.   (R',)

        The old state is not used again, so it may be changed in place.
        """
        ...
