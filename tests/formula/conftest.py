"""The array libraries that the formula is tried on: those that are here, on the CPU and on a GPU if there is one."""

import array_api_strict
import jax
import jax.numpy
import numpy as np
import pytest
import torch

from regard.formula import attention, fused, tiled

LIBRARIES = {
    "numpy": np.asarray,
    "torch": lambda array: torch.tensor(np.asarray(array)),
    "jax": jax.numpy.asarray,
    "strict": array_api_strict.asarray,
}

if torch.cuda.is_available():
    LIBRARIES["torch-cuda"] = lambda array: torch.tensor(np.asarray(array), device="cuda")
    try:
        import cupy
    except ImportError:
        pass
    else:
        LIBRARIES["cupy"] = cupy.asarray


def numbers(array):
    """An array of any library and device, as NumPy's."""
    if isinstance(array, torch.Tensor):
        return array.detach().cpu().numpy()
    return array.get() if hasattr(array, "get") else np.asarray(array)


@pytest.fixture(params=LIBRARIES, scope="session")
def library(request):
    """Makes an array of one library from anything NumPy takes."""
    return LIBRARIES[request.param]


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture
def small_tiles(monkeypatch):
    """Every problem goes through many small tiles, however small it is."""
    shrink(monkeypatch)


def shrink(patch):
    patch.setattr(attention, "WORTH_HOLDING", 0)
    patch.setattr(tiled, "ROWS", 9)
    patch.setattr(tiled, "COLS", 7)
    patch.setattr(tiled, "TOGETHER", 500)
    patch.setattr(fused, "attend", lambda problem, value: None)
