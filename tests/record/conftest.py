"""What the tests of watching share: models that are quiet, and no thread more than they need."""

import sys

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _quiet_transformers():
    """Its warnings go through its own log, and are about models with random weights."""
    if "transformers" in sys.modules:
        sys.modules["transformers"].logging.set_verbosity(50)
        sys.modules["transformers"].logging.disable_progress_bar()


@pytest.fixture(autouse=True)
def _one_thread():
    """The models here are tiny, and threads that wait for each other are slower than one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
