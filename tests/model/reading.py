"""What the tests of the models that read share: a small shape, and a plain loop that trains."""

import torch

from regard.model import ReaderConfig

CONFIG = ReaderConfig(vocabulary=24, width=32, heads=4, depth=1, hidden=48, longest=32, dropout=0.0)
PAD = 0


def padded(rows, more=0):
    """Rows of ids side by side and where they are ids, with `more` places of padding than are needed."""
    longest = max(map(len, rows)) + more
    ids = torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])
    return ids, torch.arange(longest) < torch.tensor([[len(row)] for row in rows])


def texts(count, seed=0, first=4):
    """Rows of 3 to 12 ids between 1 and 2, as between [CLS] and [SEP]."""
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 13, (count,), generator=draw).tolist()
    return [[1, *torch.randint(first, CONFIG.vocabulary, (n,), generator=draw).tolist(), 2] for n in lengths]


def train(model, loss, *, steps=150, rate=3e-3):
    """Plain AdamW on one batch; the model comes out ready to be asked."""
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=rate, weight_decay=0.0)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return model.eval()
