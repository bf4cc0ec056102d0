"""What the tests of the layers share."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """The tensors here are tiny, and threads that wait for each other are slower than one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def float64():
    """Everything in float64, so that two routes differ by rounding alone."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
