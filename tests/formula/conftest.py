"""The array libraries that the formula is tried on."""

import array_api_strict
import jax
import jax.numpy
import numpy as np
import pytest
import torch

LIBRARIES = {
    "numpy": np.asarray,
    "torch": lambda array: torch.tensor(np.asarray(array)),
    "jax": jax.numpy.asarray,
    "strict": array_api_strict.asarray,
}


@pytest.fixture(params=LIBRARIES, scope="session")
def library(request):
    """Makes an array of one library from anything NumPy takes."""
    return LIBRARIES[request.param]


@pytest.fixture
def rng():
    return np.random.default_rng(20)
