"""Articles → batches of token ids without padding, some of their pieces hidden."""

# B rows, N tokens of a row, K hidden ones, T tokens of a corpus, S sentences

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from wikitext import Article

from regard.text.bpe import Tokenizer

SHORTEST, LONGEST_SENTENCE = 4, 62  # pieces of a sentence that is a row by itself


@dataclass(frozen=True)
class Corpus:
    """All pieces one after the other, and where sentences begin."""

    ids: Tensor  # (T,)
    starts: Tensor  # (S,)
    lengths: Tensor  # (S,) pieces of each sentence
    rooms: Tensor  # (S,) pieces from its start to the end of its article

    @classmethod
    def of(cls, articles: Iterable[Article], tokenizer: Tokenizer, device: torch.device) -> "Corpus":
        """Sentences in pieces, paragraphs a new line apart."""
        new_line = tokenizer.encode("\n", ends=False).ids
        ids: list[int] = []
        starts, lengths, rooms = [], [], []
        for article in articles:
            first = len(starts)
            for paragraph in article:
                for sentence in paragraph:
                    pieces = tokenizer.encode(sentence, ends=False).ids
                    starts.append(len(ids))
                    lengths.append(len(pieces))
                    ids += pieces
                ids += new_line
            rooms += [len(ids) - start for start in starts[first:]]
        return cls(torch.tensor(ids, device=device), *map(torch.tensor, (starts, lengths, rooms)))


@dataclass(frozen=True)
class Hidden:
    """A batch to learn from: what the model sees, and what stood at the places it is asked about."""

    ids: Tensor  # (B, N)
    places: Tensor  # (B, K)
    answers: Tensor  # (B, K)


class Rows:
    """Draws batches of about `tokens` tokens: pages of the articles, and sentences by themselves.

    A page begins with a sentence and stays inside its article. The sentences of a batch are equally long, so nothing
    is ever padded. People write single sentences, so the model must have seen some.
    """

    def __init__(self, corpus: Corpus, tokenizer: Tokenizer, *, tokens: int, pages: tuple[int, ...], seed: int) -> None:
        self.corpus, self.tokenizer, self.tokens, self.pages = corpus, tokenizer, tokens, pages
        self.generator = torch.Generator().manual_seed(seed)
        self._begins = {page: corpus.starts[corpus.rooms >= page - 2] for page in pages}
        self._sentences = [corpus.starts[corpus.lengths == length] for length in range(LONGEST_SENTENCE + 1)]
        amounts = [len(starts) * length * (length >= SHORTEST) for length, starts in enumerate(self._sentences)]
        self._amounts = torch.tensor(amounts, dtype=torch.float64)

    def draw(self) -> Tensor:
        """(B, N)"""
        kind = self._below(len(self.pages) + 1)
        if kind < len(self.pages):
            length, starts = self.pages[kind] - 2, self._begins[self.pages[kind]]
        else:
            length = int(torch.multinomial(self._amounts, 1, generator=self.generator))
            starts = self._sentences[length]
        rows = max(1, self.tokens // (length + 2))
        chosen = starts[torch.randint(len(starts), (rows,), generator=self.generator)]
        return with_ends(taken(self.corpus.ids, chosen, length), self.tokenizer)

    def _below(self, number: int) -> int:
        return int(torch.randint(number, (), generator=self.generator))


def taken(ids: Tensor, starts: Tensor, length: int) -> Tensor:
    """The pieces from each start on.   (T,), (B,) -> (B, length)"""
    return ids[starts.to(ids.device, non_blocking=True)[:, None] + torch.arange(length, device=ids.device)]


def with_ends(ids: Tensor, tokenizer: Tokenizer) -> Tensor:
    """(B, N − 2) -> (B, N), between [CLS] and [SEP]"""
    first, last = (ids.new_full((len(ids), 1), end) for end in (tokenizer.first, tokenizer.last))
    return torch.cat([first, ids, last], dim=1)


def hide(ids: Tensor, tokenizer: Tokenizer, share: float) -> Hidden:
    """A share of each row becomes [MASK], or in one case of ten any piece, or stays (Devlin et al. 2019).

    The last two keep the model from taking it for granted that a piece it can see needs no thought.
    """
    inside = ids.shape[1] - 2
    count = max(1, round(share * inside))
    places = torch.rand(len(ids), inside, device=ids.device).topk(count).indices + 1
    answers = ids.gather(1, places)
    luck = torch.rand(answers.shape, device=ids.device)
    shown = torch.where(luck < 0.8, tokenizer.mask, answers)
    shown = torch.where(luck >= 0.9, torch.randint_like(answers, tokenizer.size), shown)
    return Hidden(ids.scatter(1, places, shown), places, answers)
