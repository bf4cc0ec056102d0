"""Steppers for the tests, and the same searches the plain way: by hand, one text at a time."""

import itertools
import math

import torch

PLACES = 1009


class History:
    """Logits that depend on the row's key and on every token so far, through nothing but the state.

    state: a number for each row that all its history went into, so a row that is mistaken for another says other words.
    """

    def __init__(self, vocabulary, seed=0, dtype=torch.float32, spread=1.5):
        generator = torch.Generator().manual_seed(seed)
        self.table = (torch.randn(PLACES, vocabulary, generator=generator) * spread).to(dtype)
        self.calls = []  # how many rows each step had

    def step(self, tokens, state):
        self.calls.append(len(tokens))
        state = (state * 31 + tokens + 7) % PLACES
        return self.table[state], state

    def reorder(self, state, index):
        return state[index]

    def log_probabilities(self, key, tokens):
        """Of what comes after the tokens, the start among them."""
        for token in tokens:
            key = (key * 31 + token + 7) % PLACES
        return self.table[key].log_softmax(-1, dtype=torch.float32).tolist()


class Fixed:
    """The same logits at each step, whatever came before: (B, V) in the state itself."""

    def __init__(self, logits):
        self.logits = torch.as_tensor(logits)

    def step(self, tokens, state):
        return self.logits[state], state

    def reorder(self, state, index):
        return state[index]


def keys(batch):
    """The state that a History of this many rows begins from."""
    return torch.arange(batch) * 17 + 3


def every_text(stepper, key, start, limits, penalty):
    """All texts that the limits allow, with their scores: the best first."""
    found = []
    names = [token for token in range(stepper.table.shape[1]) if token not in limits.forbidden and token != limits.end]
    for length in range(limits.longest + 1):
        for text in itertools.product(names, repeat=length):
            total = 0.0
            for place, token in enumerate(text):
                total += stepper.log_probabilities(key, (start, *text[:place]))[token]
            if length == limits.longest:
                found.append((total / penalty(length), text, False))
            elif length >= limits.shortest and limits.end is not None and limits.end not in limits.forbidden:
                total += stepper.log_probabilities(key, (start, *text))[limits.end]
                found.append((total / penalty(length + 1), text, True))
    return sorted(found, key=lambda one: (-one[0], one[1]))


def plain_beam(stepper, key, start, limits, penalty, width, prefix=()):
    """Beam search with lists, that never stops before it must."""
    opened, finished = [(0.0, ())], []
    room = width
    for length in range(1, limits.longest + 1):
        grown = []
        for total, text in opened:
            scores = stepper.log_probabilities(key, (start, *prefix, *text))
            for token, score in enumerate(scores):
                early = token == limits.end and length <= limits.shortest
                if token not in limits.forbidden and not early:
                    grown.append((total + score, (*text, token)))
        opened = []
        for total, text in sorted(grown, key=lambda one: -one[0])[:room]:
            if text[-1] == limits.end:
                finished.append((total / penalty(length), text[:-1], True))
                room -= 1
            elif length == limits.longest:
                finished.append((total / penalty(length), text, False))
            else:
                opened.append((total, text))
    return sorted(finished, key=lambda one: -one[0])


def gnmt(alpha):
    return lambda n: math.pow((5 + n) / 6, alpha)
