"""What all tests of training have in common."""

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Models as small as those of these tests are slower on several, and no sums are then taken in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
