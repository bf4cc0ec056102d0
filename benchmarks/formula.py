"""attend on NumPy against the plain lesson code, and on PyTorch against its own kernel: time and memory.

python benchmarks/formula.py [--rounds 7]      writes results/formula.md
"""

import argparse
import math

import numpy as np
import torch
from measure import interleaved, machine, peak_extra_memory, publish

from regard.formula import attend, masks

HEADS, LENGTH, LONG, WIDTH = 8, 4096, 32768, 64


def lesson(query, key, value):
    """Attention as lessons write it. √d_k of a whole number is a float64 scalar, and so is everything after it."""
    scores = np.matmul(query, np.swapaxes(key, -1, -2)) / np.sqrt(query.shape[-1])
    powers = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return np.matmul(powers / np.sum(powers, axis=-1, keepdims=True), value)


def lesson_float32(query, key, value):
    """The same, careful to stay in float32."""
    scores = np.matmul(query, np.swapaxes(key, -1, -2)) / math.sqrt(query.shape[-1])
    powers = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return np.matmul(powers / np.sum(powers, axis=-1, keepdims=True), value)


def arrays(length=LENGTH):
    rng = np.random.default_rng(0)
    return [rng.standard_normal((HEADS, length, WIDTH), dtype=np.float32) for _ in range(3)]


def extra(call: str, length: int = LENGTH) -> float:
    prepare = (
        "from formula import *\n"
        f"a = arrays({length})\n"
        "t = [torch.from_numpy(x) for x in a]\n"
        "sdpa = torch.nn.functional.scaled_dot_product_attention\n"
        "small = [x[:, :1500] for x in a]; attend(*small); sdpa(*[x[None, :, :64] for x in t])"
    )
    return peak_extra_memory(prepare, call)


def numpy_rows(rounds: int) -> list[list[str]]:
    query, key, value = arrays()
    exact = lesson(*(array[:, :512].astype(np.float64) if array is query else array for array in (query, key, value)))
    assert np.max(np.abs(attend(query, key, value)[:, :512] - exact)) < 1e-5
    seconds = interleaved(
        rounds,
        lesson=lambda: lesson(query, key, value),
        lesson_float32=lambda: lesson_float32(query, key, value),
        attend=lambda: attend(query, key, value),
        causal=lambda: attend(query, key, value, masks.causal()),
    )
    memory = {
        "lesson": extra("lesson(*a)"), "lesson_float32": extra("lesson_float32(*a)"),
        "attend": extra("attend(*a)"), "causal": extra("attend(*a, masks.causal())"),
    }  # fmt: skip
    named = {
        "lesson": "NumPy, lesson code as written", "lesson_float32": "NumPy, lesson code kept in float32",
        "attend": "NumPy, `attend`", "causal": "NumPy, `attend`, causal",
    }  # fmt: skip
    return [
        [
            named[name], f"{LENGTH}", f"{seconds[name]:.3f} s", f"{memory[name]:.0f} MiB",
            f"{seconds['lesson'] / seconds[name]:.2f}× / {seconds['lesson_float32'] / seconds[name]:.2f}×",
            f"1/{memory['lesson'] / memory[name]:.0f} / 1/{memory['lesson_float32'] / memory[name]:.0f}",
        ]
        for name in named
    ]  # fmt: skip


def long_row() -> list[str]:
    query, key, value = arrays(LONG)
    seconds = interleaved(1, attend=lambda: attend(query, key, value))["attend"]
    memory = extra("attend(*a)", LONG)
    return ["NumPy, `attend`", f"{LONG}", f"{seconds:.1f} s", f"{memory:.0f} MiB", "", ""]


def torch_rows(rounds: int) -> list[list[str]]:
    query, key, value = (torch.from_numpy(array) for array in arrays())
    batch = [array[None] for array in (query, key, value)]
    kernel = torch.nn.functional.scaled_dot_product_attention
    seconds = interleaved(
        3 * rounds,
        kernel=lambda: kernel(*batch),
        attend=lambda: attend(query, key, value),
        kernel_causal=lambda: kernel(*batch, is_causal=True),
        causal=lambda: attend(query, key, value, masks.causal()),
    )
    memory = {
        "kernel": extra("sdpa(*[x[None] for x in t])"), "attend": extra("attend(*t)"),
        "kernel_causal": extra("sdpa(*[x[None] for x in t], is_causal=True)"),
        "causal": extra("attend(*t, masks.causal())"),
    }  # fmt: skip
    named = {
        "kernel": ("PyTorch, its own kernel", "kernel"), "attend": ("PyTorch, `attend`", "kernel"),
        "kernel_causal": ("PyTorch, its own kernel, causal", "kernel_causal"),
        "causal": ("PyTorch, `attend`, causal", "kernel_causal"),
    }  # fmt: skip
    return [
        [label, f"{LENGTH}", f"{seconds[name]:.3f} s", f"{memory[name]:.0f} MiB",
         f"{seconds[against] / seconds[name]:.3f}× of its kernel", ""]
        for name, (label, against) in named.items()
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    head = [
        "what",
        "tokens",
        "time",
        "peak extra memory",
        "speed: against lesson / lesson in float32",
        "memory: likewise",
    ]
    rows = [head, *numpy_rows(rounds), long_row(), *torch_rows(rounds)]
    title = f"Attention of {HEADS} heads, width {WIDTH}, float32"
    publish("formula", title, f"Medians of one run, calls in turn. {machine('numpy', 'torch')}.", rows)


if __name__ == "__main__":
    main()
