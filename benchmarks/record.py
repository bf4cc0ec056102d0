"""What recording costs, and what asking a record costs: on a GPU, and on a CPU from disk.

python benchmarks/record.py [--rounds 7]      writes results/record-cuda.md where there is a GPU, else results/record.md
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from measure import interleaved, machine, peak_extra_memory, publish

import regard
from regard.formula import masks
from regard.record import Layer, Record, Run, Tokens
from regard.record.map import Map

LENGTHS = (8192, 32768, 65536)
EAGER_UP_TO = 32768
LARGE = {  # a Llama of 1B parameters
    "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
    "intermediate_size": 8192, "vocab_size": 128256,
}  # fmt: skip
SMALL = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "intermediate_size": 128, "vocab_size": 1000,
}  # fmt: skip


def llama(length: int, small: bool):
    """A Llama of 1B parameters, random weights, bfloat16, its attention left as it is loaded."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(**(SMALL if small else LARGE), max_position_embeddings=length, rope_theta=500000.0)
    torch.manual_seed(0)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        return LlamaForCausalLM(config).to(torch.bfloat16).eval()


def forward(model, ids, **options):
    with torch.no_grad():
        return model(ids, use_cache=False, logits_to_keep=1, **options)


def watched(model, ids):
    with regard.watch(model) as record:
        out = forward(model, ids)
    return out, record


def seconds(call) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    kept = call()
    torch.cuda.synchronize()
    taken = time.perf_counter() - start
    del kept
    return taken


def peak(call) -> int:
    """The most memory that a call held at once, what it returns included."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    kept = call()
    torch.cuda.synchronize()
    found = torch.cuda.max_memory_allocated()
    del kept
    return found


def recording_rows(length: int, rounds: int, small: bool) -> list[list[str]]:
    model = llama(max(length, 8192), small)
    ids = torch.randint(0, 1000, (1, length), device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    calls = {"plain": lambda: forward(model, ids), "watched": lambda: watched(model, ids)}

    def inside() -> float:
        with regard.watch(model):
            return seconds(calls["plain"])

    (one, record), other = watched(model, ids), forward(model, ids)
    assert torch.equal(one.logits, other.logits), "the watched run gave another answer"
    kept = sum(
        tensor.numel() * tensor.element_size()
        for layer in record.layers
        for tensor in (layer.map.queries, layer.map.keys)
    )
    del record, one, other
    timed = {"plain": lambda: seconds(calls["plain"]), "watched": lambda: seconds(calls["watched"]), "inside": inside}
    taken = {name: [] for name in timed}
    for turn in range(-2, rounds * max(1, 32768 // length)):  # short ones oftener; a GPU is not always as fast
        for name in sorted(timed, reverse=bool(turn % 2)):
            found = timed[name]()
            if turn >= 0:
                taken[name].append(found)
    times = {name: statistics.median(found) for name, found in taken.items()}
    peaks = {name: peak(call) for name, call in calls.items()}
    extra = peaks["watched"] - peaks["plain"]
    rows = [
        [f"{length:,}", "plain", f"{times['plain'] * 1e3:.1f} ms", "1", f"{peaks['plain'] / 2**30:.2f} GiB", ""],
        [f"{length:,}", "the forward under `regard.watch`", f"{times['inside'] * 1e3:.1f} ms",
         f"{times['inside'] / times['plain']:.3f}", "", ""],
        [f"{length:,}", "the whole block, its beginning and end included", f"{times['watched'] * 1e3:.1f} ms",
         f"{times['watched'] / times['plain']:.3f}", f"{peaks['watched'] / 2**30:.2f} GiB",
         f"{extra / 2**20:.0f} MiB of {kept / 2**20:.0f} MiB kept ({extra / kept:.3f})"],
    ]  # fmt: skip
    if length <= EAGER_UP_TO:
        rows.append([f"{length:,}", "eager, output_attentions", *eager(model, ids, times["plain"])])
    return rows


def eager(model, ids, plain: float) -> list[str]:
    model.set_attn_implementation("eager")
    try:
        call = lambda: forward(model, ids, output_attentions=True)  # noqa: E731
        first = seconds(call)
        taken = min(first, seconds(call))
        return [f"{taken * 1e3:.1f} ms", f"{taken / plain:.1f}", f"{peak(call) / 2**30:.1f} GiB", ""]
    except torch.OutOfMemoryError:
        return ["out of memory", "", "", ""]
    finally:
        torch.cuda.empty_cache()


def asking_rows() -> list[list[str]]:
    """What a head of a live record answers on the GPU."""
    rows = []
    for length in (16384, 65536):
        torch.manual_seed(0)
        one = record_of(torch.randn(1, length, 64, device="cuda", dtype=torch.bfloat16),
                        torch.randn(1, length, 64, device="cuda", dtype=torch.bfloat16))  # fmt: skip
        for name, ask in ASKED.items():
            rows.append([f"{length:,}", name, f"{asking_seconds(ask, one) * 1e3:.0f} ms"])
    return rows


def asking_seconds(ask, record) -> float:
    """The median of three askings, each of a head that has been asked nothing, after one that does not count."""
    ask(fresh(record))
    return statistics.median(seconds(lambda: ask(fresh(record))) for _ in range(3))


ASKED = {
    "`log_sum_exp()`": lambda head: head.log_sum_exp(),
    "`pooled(512, 512)`": lambda head: head.pooled(512, 512),
    "`entropy()` and `distance()`": lambda head: head.entropy(),
    "`received()`": lambda head: head.received(),
    "`top(8)`": lambda head: head.top(8),
}


def record_of(queries, keys, mask=None):
    length = queries.shape[-2]
    tokens = Tokens.numbered(length)
    made = Map(queries=queries, keys=keys, scale=queries.shape[-1] ** -0.5, mask=mask or masks.causal(0))
    layer = Layer(
        name="head", kind="decoder", index=0, maps=(made,), queries=(tokens,), keys=(tokens,), head_numbers=(0,)
    )
    return Record([Run(layers=(layer,))])


def fresh(record):
    """The first head of a record that has been asked nothing yet."""
    made = record.layers[0].map
    return record_of(made.queries, made.keys, made.mask).layers[0].heads[0]


def tile_rows(rounds: int) -> list[list[str]]:
    """A 256 × 256 tile of a head of 100,000 tokens on disk."""
    rng = np.random.default_rng(0)
    rows = []
    for name, width, dtype in (("float16, width 64", 64, np.float16), ("float32, width 128", 128, np.float32)):
        queries, keys = (rng.standard_normal((1, 100_000, width), dtype=np.float32).astype(dtype) for _ in range(2))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "long.regard"
            start = time.perf_counter()
            record_of(queries, keys).save(path, lse=True)
            saved = time.perf_counter() - start
            start = time.perf_counter()
            head = regard.open(path).layers[0].heads[0]
            opened = time.perf_counter() - start
            taken = []
            for _ in range(rounds * 5):
                row = int(rng.integers(50_000, 99_000))
                col = int(rng.integers(0, row))
                start = time.perf_counter()
                head.weights(rows=slice(row, row + 256), cols=slice(col, col + 256))
                taken.append(time.perf_counter() - start)
            rows.append([name, f"{saved:.1f} s", f"{opened * 1e3:.1f} ms", f"{taken[0] * 1e3:.1f} ms",
                         f"{statistics.median(taken) * 1e3:.2f} ms", f"{sorted(taken)[-2] * 1e3:.1f} ms"])  # fmt: skip
    return rows


def pooled_rows(rounds: int) -> list[list[str]]:
    """`pooled(512, 512)` of 16,384 tokens against Q·Kᵀ alone, done in tiles by PyTorch."""
    rng = np.random.default_rng(0)
    rows = []
    for width in (64, 128):
        query, key = (rng.standard_normal((16384, width), dtype=np.float32) for _ in range(2))
        times = pooled_seconds(query, key, rounds)
        rows += [
            [str(width), POOLED[name], f"{taken:.3f} s", f"{taken / times['bare']:.2f}"]
            for name, taken in times.items()
        ]
    return rows


POOLED = {
    "bare": "Q·Kᵀ alone, tiles of 1024 × 512",
    "torch": "`pooled(512, 512)`, PyTorch",
    "numpy": "the same, NumPy",
    "causal": "the same, PyTorch, causal",
}


def pooled_seconds(query, key, rounds: int) -> dict[str, float]:
    """The median seconds of each line of POOLED, for queries and keys (n, width) of NumPy."""
    length = len(query)
    tensors = torch.from_numpy(query), torch.from_numpy(key)
    everything = masks.ranges(np.zeros(length, dtype=np.int64), np.full(length, length - 1))
    on_torch = record_of(
        tensors[0][None], tensors[1][None], masks.ranges(*map(torch.from_numpy, (everything.first, everything.last)))
    )
    on_numpy = record_of(query[None], key[None], everything)
    causal = record_of(tensors[0][None], tensors[1][None])
    return interleaved(
        rounds, bare=lambda: bare_products(*tensors), torch=lambda: fresh(on_torch).pooled(512, 512),
        numpy=lambda: fresh(on_numpy).pooled(512, 512), causal=lambda: fresh(causal).pooled(512, 512),
    )  # fmt: skip


def bare_products(query, key):
    buffer = torch.empty(1024, 512)
    for row in range(0, len(query), 1024):
        for col in range(0, len(key), 512):
            torch.mm(query[row : row + 1024], key[col : col + 512].T, out=buffer)


def memory_rows() -> list[list[str]]:
    """The most memory that a question takes, beyond the record; the map itself would be 1,024 MiB."""
    prepare = (
        "from record import *\n"
        "torch.manual_seed(0); one = record_of(torch.randn(1, 16384, 64), torch.randn(1, 16384, 64))\n"
        "small = record_of(torch.randn(1, 2048, 64), torch.randn(1, 2048, 64))\n"
        "[ask(fresh(small)) for ask in ASKED.values()]"
    )
    return [[name, f"{peak_extra_memory(prepare, f'ASKED[{name!r}](fresh(one))'):.0f} MiB"] for name in ASKED]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--small", action="store_true", help="a small model and short texts, to try the script")
    options = parser.parse_args()
    if torch.cuda.is_available():
        lengths = (512, 1024) if options.small else LENGTHS
        rows = [row for length in lengths for row in recording_rows(length, options.rounds, options.small)]
        publish(
            "record-cuda", "Recording on a GPU: a Llama of 1B parameters, bfloat16, one forward",
            f"{torch.cuda.get_device_name()}, {machine('torch', 'transformers')}. "
            f"Medians of {options.rounds} rounds, calls in turn.",
            [["tokens", "", "time", "of plain", "peak memory", "above plain"], *rows],
            [["tokens", "asked of one head (width 64, causal, bfloat16)", "time"], *asking_rows()],
        )  # fmt: skip
        return
    publish(
        "record", "Asking a record, on a CPU", machine("numpy", "torch") + f". Medians of {options.rounds} rounds.",
        [["100,000 tokens on disk, causal", "save with lse", "open", "first tile", "tile (median)", "slowest but one"],
         *tile_rows(options.rounds)],
        [["width", "16,384 tokens, one head, float32", "time", "of bare"], *pooled_rows(options.rounds)],
        [["asked of one head of 16,384 tokens, PyTorch, causal", "extra memory"], *memory_rows()],
    )  # fmt: skip


if __name__ == "__main__":
    main()
