"""What memory a training takes, by the size of its corpus: `regard train translation` on synthetic text.

python benchmarks/memory.py [--gigabytes 0.25 2.5] [--steps 20] [--folder /tmp]        writes results/memory.md

The corpus is made for it and removed; besides it the folder takes about as much again for its ids.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from measure import machine, publish

WORDS = 50_000
SETTINGS = {
    "training.tokens": 4096, "data.longest": 64, "model.width": 128, "model.depth": 2, "model.decoder_depth": 1,
    "tokenizer.size": 8000, "training.evaluate_every": 1000, "data.held_out": 0.0001,
}  # fmt: skip


def make_corpus(path: Path, size: int) -> int:
    """Lines of two columns, until there are so many bytes. Words are drawn as words are: few often, most seldom."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(WORDS)]
    weights = [1 / rank for rank in range(1, WORDS + 1)]
    lines = 0
    with path.open("w", encoding="utf-8") as file:
        file.write("source\ttarget\n")
        written = 0
        while written < size:
            drawn = draw.choices(words, weights, k=200_000)
            part = []
            place = 0
            while place < len(drawn) - 60:
                ends = place + draw.randint(4, 30), place + draw.randint(34, 60)
                part.append(f"{' '.join(drawn[place : ends[0]])}\t{' '.join(drawn[ends[0] : ends[1]])}\n")
                place = ends[1]
            written += file.write("".join(part))
            lines += len(part)
    return lines


def train(folder: Path, steps: int) -> tuple[int, float]:
    """The most memory that the command held itself, files mapped by the system not counted, and its seconds."""
    sets = [
        word for name, value in {**SETTINGS, "training.steps": steps}.items() for word in ("--set", f"{name}={value}")
    ]
    command = [sys.executable, "-m", "regard", "train", "translation", "--data", str(folder / "pairs.tsv")]
    began = time.perf_counter()
    process = subprocess.Popen([*command, "--out", str(folder / "out"), *sets])
    peak = 0

    def watch() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, resident(process.pid))
            time.sleep(0.2)

    watcher = threading.Thread(target=watch)
    watcher.start()
    if process.wait():
        raise SystemExit("the training failed; its error stands above.")
    watcher.join()
    return peak, time.perf_counter() - began


def resident(number: int) -> int:
    """The most bytes a process has held so far."""
    try:
        told = Path(f"/proc/{number}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in told.splitlines() if line.startswith("VmHWM")), 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[0.25, 2.5])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    options = parser.parse_args()
    rows = []
    for size in options.gigabytes:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            folder = Path(name)
            lines = make_corpus(folder / "pairs.tsv", int(size * 1e9))
            stored = os.path.getsize(folder / "pairs.tsv")
            peak, seconds = train(folder, options.steps)
        rows.append([f"{stored / 1e9:.2f} GB", f"{lines:,}", f"{peak / 2**20:,.0f} MiB", f"{seconds / 60:.1f} min"])
        print(" | ".join(rows[-1]))
    publish(
        "memory", "Memory of a training, by the size of its corpus",
        f"{machine('torch', 'tokenizers')}. `regard train translation`, from text to {options.steps} steps: the "
        "vocabulary is learned, everything is tokenised, a model trains. The most that the process held at any time.",
        [["corpus", "pairs", "most memory", "time in all"], *rows],
    )  # fmt: skip


if __name__ == "__main__":
    main()
