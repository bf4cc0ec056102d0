"""What `regard serve` takes for a whole model of 100,000 tokens on disk: time and memory, over HTTP.

python benchmarks/serve.py [--layers 16] [--folder FOLDER]      writes results/serve.md; needs 8 GB of disk, twice
"""

import argparse
import http.client
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from measure import machine, publish

from regard.formula import masks
from regard.record import Layer, Record, Run, Tokens
from regard.record.map import Map

TOKENS, HEADS, KEY_HEADS, WIDTH = 100_000, 32, 8, 64
PARALLEL = 200
START = (
    "import regard; from regard.view.serve import serve, server_of; import sys; "
    "serve(server_of(regard.open(sys.argv[1]), title='benchmark', port=0), browser=False)"
)


def make(path: Path, tokens: int, layers: int) -> None:
    """A record like that of a Llama of 1B parameters, float16, without log-sum-exps: made up, layer by layer."""
    rng = np.random.default_rng(0)
    shapes = {"queries": (HEADS, tokens, WIDTH), "keys": (KEY_HEADS, tokens, WIDTH)}
    noise = {name: rng.standard_normal(shape, dtype=np.float32).astype(np.float16) for name, shape in shapes.items()}
    side = Tokens.numbered(tokens)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = []
        for index in range(layers):
            arrays = {}
            for name, shape in shapes.items():
                arrays[name] = np.memmap(Path(folder) / f"{name}{index}", np.float16, "w+", shape=shape)
                arrays[name][:] = np.roll(noise[name], index * 997, axis=1)
                arrays[name].flush()
            one = Map(**arrays, scale=WIDTH**-0.5, mask=masks.causal(0))
            made.append(
                Layer(name=f"layers.{index}", kind="decoder", index=index, maps=(one,), queries=(side,), keys=(side,),
                      head_numbers=tuple(range(HEADS)))
            )  # fmt: skip
        Record([Run(layers=tuple(made), model="llama")]).save(path, lse=False)


class Served:
    """A server in a process of its own, its memory watched all the while."""

    def __init__(self, path: Path) -> None:
        start = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, str(path)], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL
        )
        self.port = int(re.search(r":(\d+)/", self.process.stdout.readline())[1])
        self.opened = time.perf_counter() - start
        self.peaks = {"VmRSS": 0, "RssAnon": 0, "RssFile": 0}
        self.over = threading.Event()
        self.watcher = threading.Thread(target=self._watch)
        self.watcher.start()

    def _watch(self) -> None:
        while not self.over.wait(0.01):
            status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
            for name in self.peaks:
                found = re.search(name + r":\s+(\d+)", status)
                self.peaks[name] = max(self.peaks[name], int(found[1]) / 1024 if found else 0)

    def take_peaks(self) -> str:
        """The most memory since it was last asked."""
        told = f"{self.peaks['VmRSS']:.0f} MiB ({self.peaks['RssAnon']:.0f} own)"
        self.peaks = dict.fromkeys(self.peaks, 0)
        return told

    def ask(self, address: str, **query) -> tuple[float, int, str | None]:
        """Seconds, status, and the step that was used."""
        start = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", f"/{address}?" + "&".join(f"{name}={value}" for name, value in query.items()))
        response = connection.getresponse()
        response.read()
        connection.close()
        return time.perf_counter() - start, response.status, response.headers["X-Regard-Step"]

    def close(self) -> None:
        self.over.set()
        self.watcher.join()
        self.process.terminate()
        self.process.wait()


def whole(tokens: int, **more):
    return {"rows": f"0:{tokens}", "cols": f"0:{tokens}", "height": 512, "width": 512, **more}


def part(rng, tokens: int, size: int, **more):
    row = int(rng.integers(tokens // 2, tokens - size))
    col = int(rng.integers(0, row - size))
    return {"rows": f"{row}:{row + size}", "cols": f"{col}:{col + size}", "height": 256, "width": 256, **more}


def measured(path: Path, tokens: int, layers: int, rounds: int) -> list[list[str]]:
    rng = np.random.default_rng(1)
    server = Served(path)
    rows: list[list[str]] = []

    def told(name: str, asked: list[tuple[float, int, str | None]]) -> None:
        assert all(status == 200 for _, status, _ in asked), asked
        times = [seconds for seconds, _, _ in asked]
        steps = "–".join(sorted({step or "" for _, _, step in asked}, key=int)) if asked[0][2] else ""
        rows.append(
            [name, f"{statistics.median(times) * 1e3:.0f} ms", f"{max(times) * 1e3:.0f} ms", steps, server.take_peaks()]
        )

    try:
        rows.append(
            ["start, until the address is printed", f"{server.opened * 1e3:.0f} ms", "", "", server.take_peaks()]
        )
        told("description", [server.ask("description", record=0)])
        places = iter([(layer, head) for head in range(0, HEADS, 5) for layer in range(layers)] * 99)

        def fresh():
            layer, head = next(places)
            return {"record": 0, "layer": layer, "head": head}

        told(
            "the whole map, 512 × 512, of a head nobody has asked",
            [server.ask("tile", **fresh(), **whole(tokens)) for _ in range(rounds)],
        )
        told(
            "256 × 256 tokens, of a head nobody has asked",
            [server.ask("tile", **fresh(), **part(rng, tokens, 256)) for _ in range(rounds)],
        )
        same = fresh()
        server.ask("tile", **same, **whole(tokens))
        told(
            "the same, of the head that is looked at",
            [server.ask("tile", **same, **part(rng, tokens, 256)) for _ in range(rounds)],
        )
        known = part(rng, tokens, 256)
        server.ask("tile", **same, **known)
        told(
            "the same rows, other columns",
            [
                server.ask("tile", **same, **{**known, "cols": f"{place}:{place + 256}"})
                for place in range(0, 1000 * rounds, 1000)
            ],
        )
        told(
            "10,000 × 10,000 tokens in 256 × 256",
            [server.ask("tile", **same, **part(rng, tokens, 10_000)) for _ in range(rounds)],
        )
        told("the whole map, refined", [server.ask("tile", **same, **whole(tokens, step=81))])
        with ThreadPoolExecutor(1) as pool:
            finest = pool.submit(server.ask, "tile", **same, **whole(tokens, step=27))
            time.sleep(0.1)
            zoomed = []
            while not finest.done() and len(zoomed) < rounds:
                zoomed.append(server.ask("tile", **same, **part(rng, tokens, 256)))
            told("256 × 256 tokens of it, while the whole map is refined", zoomed)
            finest.result()
        told("the whole map, as fine as it gets at once", [server.ask("tile", **same, **whole(tokens, step=1))])
        told("one row", [server.ask("row", **same, rows=place) for place in range(tokens // 2, tokens // 2 + rounds)])
        told(
            "thumbnails of the 32 heads of a layer",
            [server.ask("thumbnails", record=0, layer=layers - 1)],
        )
        start = time.perf_counter()
        with ThreadPoolExecutor(PARALLEL) as pool:
            asked = list(
                pool.map(
                    lambda _: server.ask("tile", **fresh(), **part(np.random.default_rng(), tokens, 256)),
                    range(PARALLEL),
                )
            )
        told(f"{PARALLEL} tiles at once, of all heads: all of them in {time.perf_counter() - start:.1f} s", asked)
    finally:
        server.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where the record is made, and kept for another time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        path = (options.folder or Path(temporary)) / f"serve-{options.tokens}-{options.layers}.regard"
        if not path.exists():
            make(path, options.tokens, options.layers)
        rows = measured(path, options.tokens, options.layers, options.rounds)
        size = path.stat().st_size / 2**30
    publish(
        "serve", f"`regard serve`: a record of {options.tokens:,} tokens, {options.layers} layers × {HEADS} heads",
        f"{machine('numpy')}. {size:.1f} GiB on disk, float16, {KEY_HEADS} key heads, causal, no log-sum-exps stored. "
        f"Medians of {options.rounds}; the page asks over HTTP, and so does this.",
        [["asked", "median", "longest", "one row in", "memory, peak"], *rows],
    )  # fmt: skip


if __name__ == "__main__":
    main()
