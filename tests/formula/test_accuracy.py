"""Against float64: no path of ours is worse than twice PyTorch's own math path on the same numbers."""

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel

from regard.formula import attend, masks
from tests import reference
from tests.formula.conftest import LIBRARIES, numbers

DTYPES = {
    "float32": (torch.float32, np.float32),
    "float16": (torch.float16, np.float16),
    "bfloat16": (torch.bfloat16, ml_dtypes.bfloat16),
}


NAMES = [name for name in LIBRARIES if name != "strict"]  # the standard knows no half precision
EXAMPLES = {"jax": 3}  # it compiles anew for every shape


def converted(tensor, library):
    if library.startswith("torch"):
        return tensor.to(library.removeprefix("torch-") if "-" in library else "cpu")
    name = str(tensor.dtype).removeprefix("torch.")
    return LIBRARIES[library](tensor.to(torch.float32).numpy().astype(DTYPES[name][1]))


def error(answer, exact):
    answer = answer.to(torch.float64) if isinstance(answer, torch.Tensor) else answer
    answer = numbers(answer).astype(np.float64)
    return np.linalg.norm(answer - exact) / max(np.linalg.norm(exact), 1e-300)


@pytest.mark.parametrize("tiles", [False, True], ids=["whole", "tiles"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("library", NAMES)
def test_error_is_at_most_twice_that_of_the_math_path(library, dtype, tiles, request):
    if tiles:
        request.getfixturevalue("small_tiles")

    @settings(max_examples=EXAMPLES.get(library, 25), deadline=None)
    @given(
        seed=st.integers(0, 2**32),
        heads=st.integers(1, 3),
        n_q=st.integers(1, 80),
        n_k=st.integers(1, 80),
        width=st.sampled_from([1, 8, 64]),
        spread=st.floats(0.1, 6),
        is_causal=st.booleans(),
    )
    def check(seed, heads, n_q, n_k, width, spread, is_causal):
        generator = torch.Generator().manual_seed(seed)
        narrow = DTYPES[dtype][0]
        batch = 1 + 512 // n_q  # In a handful of rows either side may be lucky; in 512 none is.
        query, key, value = (
            (torch.randn(batch, heads, n, width, generator=generator) * factor).to(narrow)
            for n, factor in ((n_q, spread), (n_k, spread), (n_k, 1))
        )
        mask = masks.causal() if is_causal and n_q <= n_k else None
        allowed = None if mask is None else mask.dense(n_q, n_k)
        exact = reference.attend(*(array.to(torch.float64).numpy() for array in (query, key, value)), allowed=allowed)
        with sdpa_kernel(SDPBackend.MATH):
            theirs = torch.nn.functional.scaled_dot_product_attention(
                query, key, value, attn_mask=None if allowed is None else torch.tensor(allowed)
            )
        ours = attend(*(converted(array, library) for array in (query, key, value)), mask)
        # Rounding the exact answer to the dtype alone may cost half a unit in the last place: nobody is below that.
        floor = torch.finfo(narrow).eps / 2
        assert error(ours, exact) <= max(2 * error(theirs, exact), 2 * floor)

    check()
