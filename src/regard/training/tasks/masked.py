"""Masked language modelling: hidden pieces from those around them, and whether one part follows another (BERT)."""

# B windows, N tokens, M hidden tokens, E width

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...errors import OptionError
from ...text.batches import Place
from ...text.permutation import Permutation
from ...text.windows import Windows
from ..objectives import IGNORED, judged, projected_loss, right, smoothed
from .batch import Batch, padded, there_if_padded
from .language_model import encode_texts
from .options import require_share
from .projection import projection

if TYPE_CHECKING:
    from ...text.bpe import Tokenizer

Ids = np.ndarray[Any, np.dtype[np.int64]]

# Of the tokens to be guessed so many are hidden, so many replaced by any other, and the rest left as they are: in real
# texts nothing is hidden, and a model that never saw a whole text would make little of one (Devlin et al. 2019).
HIDDEN, REPLACED = 0.8, 0.1


class Part(NamedTuple):
    """A window as it is shown."""

    ids: Ids
    places: Ids  # of the tokens that are to be guessed
    targets: Ids  # what stood there
    segments: Ids
    follows: int  # 1: the second part follows the first; 0: it is from elsewhere


@dataclass(frozen=True, kw_only=True)
class MaskedModelling:
    """What a masked language model learns.

    next_sentence: windows are taken apart in the middle, and every second one, by chance, gets the second half of
    another, which `Paired` reads along with it; whether it did is to be told.
    """

    pad: int
    first: int
    last: int
    mask: int
    vocabulary: int
    share: float = 0.15  # of the tokens that are to be guessed
    next_sentence: bool = False
    longest: int | None = None  # tokens that the model takes: nothing is padded beyond

    fields: ClassVar[tuple[str, ...]] = ("text",)

    def __post_init__(self) -> None:
        require_share("share", self.share)

    @property
    def added(self) -> int:
        """How many tokens more than a window the model is given: the ends, and what parts the halves."""
        return 3 if self.next_sentence else 2

    def encode(self, examples: Iterable[dict[str, str]], tokenizer: "Tokenizer") -> Iterator[dict[str, list[int]]]:
        """Texts with their ends, to be laid one behind the other."""
        return encode_texts(examples, tokenizer)

    def collate(self, examples: Sequence[dict[str, Any]], draws: Sequence[np.random.Generator]) -> Batch:
        """The windows with tokens hidden, which those are, and what stood there."""
        parts = [self._shown(example, draw) for example, draw in zip(examples, draws, strict=True)]
        ids = [part.ids for part in parts]
        tensors = {
            "ids": padded(ids, self.pad, self.longest), **there_if_padded(ids, self.longest),
            "places": padded([part.places for part in parts], 0),
            "targets": padded([part.targets for part in parts], IGNORED),
        }  # fmt: skip
        counts = {"masked": sum(len(part.places) for part in parts)}
        if self.next_sentence:
            tensors["segments"] = padded([part.segments for part in parts], 0, self.longest)
            tensors["follows"] = torch.tensor([part.follows for part in parts] or [IGNORED])
            counts["follows"] = len(parts)
        return Batch(tensors, counts)

    def losses(self, model: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The summed cross-entropy of the hidden tokens, and of what follows."""
        vectors, at_places, targets = _read(model, tensors)
        sums = {"masked": projected_loss(at_places, *projection(model), targets)}
        if self.next_sentence:
            sums["follows"] = smoothed(model.follows(vectors), tensors["follows"])
        return sums

    def measures(self, model: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The same, and how many were right."""
        vectors, at_places, targets = _read(model, tensors)
        loss, found = judged(at_places, *projection(model), targets)
        sums = {"masked/loss": loss, "masked/right": found}
        if self.next_sentence:
            said = model.follows(vectors)
            sums["follows/loss"] = smoothed(said, tensors["follows"])
            sums["follows/right"] = right(said, tensors["follows"])
        return sums

    def _shown(self, example: dict[str, Any], draw: np.random.Generator) -> Part:
        window = example["text"][:-1]  # the token behind a window is that of the next
        if not self.next_sentence:
            ids, halves, follows = np.concatenate(([self.first], window, [self.last])), len(window) + 2, 1
        else:
            if "other" not in example:
                raise OptionError("next_sentence needs another window with each one: read them through Paired.")
            half = len(window) // 2
            follows = int(draw.integers(2))
            second = window[half:] if follows else example["other"][half : len(window)]
            first = np.concatenate(([self.first], window[:half], [self.last]))
            ids, halves = np.concatenate((first, second, [self.last])), len(first)
        segments = (np.arange(len(ids)) >= halves).astype(np.int64)
        hidden, places = self._hidden(ids, draw)
        return Part(hidden, places, ids[places], segments, follows)

    def _hidden(self, ids: Ids, draw: np.random.Generator) -> tuple[Ids, Ids]:
        """The ids with some hidden or replaced, and where those are that are to be guessed."""
        own = np.flatnonzero(~np.isin(ids, (self.pad, self.first, self.last, self.mask)))
        count = min(len(own), max(1, round(self.share * len(own))))
        places = np.sort(draw.permutation(own)[:count])
        fate = draw.random(count)
        anything = draw.integers(self.vocabulary, size=count)
        shown = ids.copy()
        shown[places] = np.where(
            fate < HIDDEN, self.mask, np.where(fate < HIDDEN + REPLACED, anything, ids[places])
        )  # fmt: skip
        return shown, places


class Paired:
    """Windows, each with another one from elsewhere in the stream: what `next_sentence` needs.

    Which one it is depends on the place of the window and the seed alone, not on who reads it.
    """

    def __init__(self, windows: Windows, *, total: int, length: int, seed: int) -> None:
        """total: tokens of the stream; length: of a window."""
        if total < 3 * length + 1:
            raise OptionError(
                f"the stream has {total:,} tokens; next_sentence needs three windows of {length:,} at least, so that "
                "there is one from elsewhere. Take more text or shorter windows."
            )
        self._windows, self._length = windows, length
        self._places = total - length  # where a whole window and the token behind it can begin
        self._elsewhere = Permutation(self._places - 2 * length + 1, (seed,))

    def after(self, place: Place) -> Iterator[tuple[Place, Ids]]:
        """As windows have it."""
        return self._windows.after(place)

    def once(self) -> Iterator[Ids]:
        """As windows have it."""
        return self._windows.once()

    def steps(self, epoch: int = 0) -> int:
        """As windows have it."""
        return self._windows.steps(epoch)

    def read(self, numbers: Sequence[int] | Ids) -> list[dict[str, Ids]]:
        """The windows that begin at these places, each with another that does not overlap it."""
        starts = np.asarray(numbers, dtype=np.int64).reshape(-1)
        # A window's length ahead at least, and as much behind when the way leads round over the end of the stream.
        away = self._length + self._elsewhere.of(starts % self._elsewhere.n)
        others = self._windows.read((starts + away) % self._places)
        return [{**own, "other": other["text"]} for own, other in zip(self._windows.read(starts), others, strict=True)]


def _read(model: Any, tensors: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Every vector, those of the tokens that are to be guessed, and what these are.   -> (B, N, E), (B·M, E), (B·M)"""
    vectors = model.vectors(tensors["ids"], tensors.get("mask"), tensors.get("segments"))
    places = tensors["places"][..., None].expand(-1, -1, vectors.shape[-1])
    return vectors, vectors.gather(1, places).flatten(0, 1), tensors["targets"].flatten()
