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


def some_mask():
    """One key in ten may not be seen."""
    return torch.rand(LENGTH, LENGTH, generator=torch.Generator().manual_seed(0)) < 0.9


def extra(call: str, length: int = LENGTH) -> float:
    prepare = (
        "from formula import *\n"
        f"a = arrays({length})\n"
        "t = [torch.from_numpy(x) for x in a]\n"
        "sdpa = torch.nn.functional.scaled_dot_product_attention\n"
        "given = some_mask()\n"
        "small = [x[:, :1500] for x in a]; attend(*small); sdpa(*[x[None, :, :64] for x in t])"
    )
    return peak_extra_memory(prepare, call)


def numpy_table(rounds: int) -> list[list[str]]:
    query, key, value = arrays()
    exact = lesson(query[:, :512].astype(np.float64), key, value)
    assert np.max(np.abs(attend(query, key, value)[:, :512] - exact)) < 1e-5
    calls = {"lesson": "lesson(*a)", "float32": "lesson_float32(*a)", "attend": "attend(*a)",
             "causal": "attend(*a, masks.causal())"}  # fmt: skip
    names = {"lesson": "lesson code as written", "float32": "lesson code kept in float32", "attend": "`attend`",
             "causal": "`attend`, causal"}  # fmt: skip
    seconds = interleaved(
        rounds,
        lesson=lambda: lesson(query, key, value),
        float32=lambda: lesson_float32(query, key, value),
        attend=lambda: attend(query, key, value),
        causal=lambda: attend(query, key, value, masks.causal()),
    )
    memory = {name: extra(call) for name, call in calls.items()}
    rows = [["NumPy", "tokens", "time", "against the lesson", "and in float32", "extra memory", "of the lesson's",
             "and in float32"]]  # fmt: skip
    for name, label in names.items():
        faster = (f"{seconds[lessons] / seconds[name]:.1f}× faster" for lessons in ("lesson", "float32"))
        smaller = (f"1/{memory[lessons] / memory[name]:.0f}" for lessons in ("lesson", "float32"))
        ours = name in ("attend", "causal")
        rows.append([
            label, f"{LENGTH:,}", f"{seconds[name]:.3f} s", *(faster if ours else ("", "")),
            f"{memory[name]:,.0f} MiB", *(smaller if ours else ("", "")),
        ])  # fmt: skip
    return [*rows, long_row()]


def long_row() -> list[str]:
    query, key, value = arrays(LONG)
    seconds = interleaved(1, attend=lambda: attend(query, key, value))["attend"]
    return ["`attend`", f"{LONG:,}", f"{seconds:.1f} s", "", "", f"{extra('attend(*a)', LONG):,.0f} MiB", "", ""]


def torch_table(rounds: int) -> list[list[str]]:
    query, key, value = (torch.from_numpy(array) for array in arrays())
    batch = [array[None] for array in (query, key, value)]
    kernel = torch.nn.functional.scaled_dot_product_attention
    given = some_mask()
    rows = [["PyTorch", "tokens", "time", "against the kernel", "extra memory"]]
    for label, options, mask, written_options, written_mask in (
        ("", {}, None, "", "None"),
        (", causal", {"is_causal": True}, masks.causal(), "is_causal=True", "masks.causal()"),
        (", boolean mask", {"attn_mask": given}, given, "attn_mask=given", "given"),
    ):
        seconds = interleaved(
            3 * rounds,
            kernel=lambda options=options: kernel(*batch, **options),
            attend=lambda mask=mask: attend(query, key, value, mask),
        )
        memory = {
            "kernel": extra(f"sdpa(*[x[None] for x in t], {written_options})"),
            "attend": extra(f"attend(*t, {written_mask})"),
        }
        rows += [
            [f"{name}{label}", f"{LENGTH:,}", f"{seconds[which]:.3f} s",
             f"{seconds[which] / seconds['kernel']:.3f} of its time", f"{memory[which]:.0f} MiB"]
            for which, name in (("kernel", "scaled_dot_product_attention"), ("attend", "`attend`"))
        ]  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    title = f"Attention of {HEADS} heads, width {WIDTH}, float32"
    facts = f"Medians of one run, calls in turn. {machine('numpy', 'torch')}."
    publish("formula", title, facts, numpy_table(rounds), torch_table(rounds))


if __name__ == "__main__":
    main()
