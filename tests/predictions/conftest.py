"""What the tests of the predictors share: a tokenizer of a few words, one thread, and a plain loop that trains."""

import pytest
import torch

pytest.importorskip("tokenizers")

from regard.model import ReaderConfig
from regard.text.bpe import Tokenizer

TEXT = "red blue green the a cat dog sat ran on mat house where is needle good bad very not and so it"
WORDS = TEXT.split()


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def tokenizer():
    """Every word of WORDS is one piece of it."""
    return Tokenizer.train([TEXT] * 5, 400)


@pytest.fixture(scope="session")
def shape(tokenizer):
    return ReaderConfig(
        vocabulary=tokenizer.size, width=32, heads=4, depth=1, hidden=48, longest=24, dropout=0.0,
        tokenizer=tokenizer.hash,
    )  # fmt: skip


@pytest.fixture(scope="session")
def other(tokenizer):
    """A tokenizer that is not the models'."""
    return Tokenizer.train(["some other words"], 270)


@pytest.fixture(scope="session")
def train():
    def train(model, loss, steps):
        optimizer = torch.optim.AdamW(model.train().parameters(), lr=3e-3, weight_decay=0.0)
        for _ in range(steps):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
        return model.eval()

    return train
