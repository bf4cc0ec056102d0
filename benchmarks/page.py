"""The page against BertViz's in the same Chromium: bytes, seconds to make, seconds to the first picture.

python benchmarks/page.py [--rounds 5]      writes results/page.md

BertViz is measured where it is (pip install ipython; pip install --no-deps bertviz==1.4.1) and where npm is.
"""

import argparse
import re
import statistics
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import browsing
import measure
import numpy as np
import peer
import torch
from measure import interleaved, machine, publish

import regard
from regard.formula import masks
from regard.record import Layer, Record, Run, Tokens
from regard.record.map import Map

LENGTHS = (64, 128, 512)
LARGEST_PEER = 128  # beyond, BertViz's page is made once, where there is memory
MEMORY = 12  # GiB; making it at 512 tokens takes 10
LIMIT = 120.0  # seconds that a page gets for its first picture
SLOW = 15.0  # what takes longer is measured once
WORDS = """
the of and to in is that it was for on are as with his they at be this from have or by one had not but what all were
when we there can an your which their said if do will each about how up out them then she many some so these would
other into has more her two like him see time could no make than first been its who now people my made over did down
only way find use may water long little very after words called just where most know
##s ##ing ##ed ##er ##ly ##tion ##al , . ; ! ?
""".split()  # noqa: SIM905


class Tokenizer:
    """Gives numbers of a vocabulary words and pieces, as BERT's does."""

    def convert_ids_to_tokens(self, ids):
        return [WORDS[number % len(WORDS)] for number in ids]


def bert(attention: str, small: bool):
    """BERT-base with random weights, wide enough that its heads are as sharp as trained ones."""
    from transformers import BertConfig, BertModel

    size = {"num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 2} if small else {}
    torch.manual_seed(0)
    return BertModel._from_config(BertConfig(initializer_range=0.05, **size), attn_implementation=attention).eval()


class Maker:
    """Makes either page of a text of so many tokens, and knows where it lies."""

    def __init__(self, folder: Path, small: bool) -> None:
        self.folder, self.fast, self.eager = folder, bert("sdpa", small), bert("eager", small)

    def ours(self, length: int) -> Path:
        path = self.folder / f"regard-{length}.html"
        with torch.no_grad(), regard.watch(self.fast, tokenizer=Tokenizer()) as record:
            self.fast(text(length))
        record.page(path)
        return path

    def theirs(self, view: str, length: int) -> Path:
        path = self.folder / f"{view}-{length}.html"
        ids = text(length)
        peer.page(view, self.eager, ids, Tokenizer().convert_ids_to_tokens(ids[0].tolist()), path)
        return path


def text(length: int) -> torch.Tensor:
    return torch.randint(1000, 20000, (1, length), generator=torch.Generator().manual_seed(0))


@dataclass(frozen=True)
class Measured:
    """What became of one page."""

    bytes: float
    made: float | None  # seconds; None where the page was not made and its size is foretold
    shown: float | None  # seconds to the first picture; None where there was none within the limit


def measured(maker: Maker, length: int, rounds: int) -> dict[str, Measured]:
    """The pages of one text: BertViz's two views where it is installed, and ours."""
    calls = {view: partial(maker.theirs, view, length) for view in (() if peer.missing() else peer.VIEWS)}
    calls["regard"] = partial(maker.ours, length)
    if length > LARGEST_PEER:
        calls = {"regard": calls["regard"]}
    made = interleaved(min(rounds, 3), **calls)
    paths = {name: call() for name, call in calls.items()}
    sizes = {name: path.stat().st_size for name, path in paths.items()}
    for view in calls.keys() - {"regard"}:
        peer.take_offline(paths[view], maker.folder)
    shown = first_pictures(paths, rounds)
    for view in calls.keys() - {"regard"}:
        paths[view].unlink()
    return {name: Measured(sizes[name], made[name], shown[name]) for name in calls}


def measured_once(maker: Maker, length: int, bytes_per_weight: float) -> Measured:
    """BertViz's page where it takes gigabytes: made once, or its size foretold when the memory does not suffice."""
    config = maker.eager.config
    foretold = bytes_per_weight * config.num_hidden_layers * config.num_attention_heads * length**2
    if free_memory() < MEMORY:
        return Measured(foretold, None, None)
    start = time.perf_counter()
    path = maker.theirs("head_view", length)
    made = time.perf_counter() - start
    written = path.stat().st_size
    peer.take_offline(path, maker.folder)
    shown = first_picture("head_view", path)
    path.unlink()
    return Measured(written, made, shown)


def free_memory() -> float:
    """GiB that a program could have now, what the system keeps of files included."""
    found = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="utf-8"))
    return int(found[1]) / 2**20 if found else 0.0


def first_pictures(paths: dict[str, Path], rounds: int) -> dict[str, float | None]:
    """Median seconds to each page's first picture, taken in turn; None for one that had none within the limit."""
    first = {name: first_picture(name, path) for name, path in paths.items()}
    taken = {name: [seconds] for name, seconds in first.items() if seconds is None or seconds > SLOW}
    again = {name: path for name, path in paths.items() if name not in taken}
    with browsing.started() as browser:
        for turn in range(rounds + 1):
            for name, path in again.items():
                with browsing.Window(browser, path, PICTURES[name]) as window:
                    seconds = window.painted()
                if turn:  # a browser that has just started is slow
                    taken.setdefault(name, []).append(seconds)
    return {name: None if None in taken[name] else statistics.median(taken[name]) for name in paths}


PICTURES = {"head_view": browsing.BERTVIZ, "model_view": browsing.BERTVIZ, "regard": browsing.OURS}


def first_picture(name: str, path: Path) -> float | None:
    """Seconds until a fresh browser has painted a page; None when it does not within the limit, or gives up."""
    from playwright.sync_api import Error

    try:
        with browsing.started() as browser, browsing.Window(browser, path, PICTURES[name], LIMIT) as window:
            taken = window.painted()
            window.check()
            return taken
    except Error:
        return None


def in_hand(path: Path, rounds: int) -> list[str]:
    """How soon the page answers a hand, and how smoothly it follows one."""
    with browsing.started() as browser:
        answers, rates = [], []
        for _ in range(rounds):
            with browsing.Window(browser, path, browsing.OURS) as window:
                window.painted()
                answers.append(window.answered())
                window.check()
                rates.append(window.frames_per_second())
    middle, slowest = (statistics.median(rate) for rate in zip(*rates, strict=True))
    return [f"{statistics.median(answers):.2f} s", f"{middle:.0f}", f"{slowest:.0f}"]


def long_text(folder: Path, length: int, rounds: int) -> list[str]:
    """One head of a long text in one file: made, opened, zoomed to single cells."""
    rng = np.random.default_rng(0)
    queries, keys = (rng.standard_normal((1, length, 64), dtype=np.float32).astype(np.float16) for _ in range(2))
    names = Tokens.of(Tokenizer().convert_ids_to_tokens(rng.integers(0, 20000, length).tolist()))
    head = Map(queries=queries, keys=keys, scale=1 / 8, mask=masks.causal(0))
    layer = Layer(
        name="head", kind="decoder", index=0, maps=(head,), queries=(names,), keys=(names,), head_numbers=(0,)
    )
    record = Record([Run(layers=(layer,))])
    path = folder / "long.html"
    start = time.perf_counter()
    record.page(path)
    made = time.perf_counter() - start
    pictures, cells = [], []
    with browsing.started() as browser:
        for _ in range(rounds):
            with browsing.Window(browser, path, browsing.OURS) as window:
                pictures.append(window.painted())
                cells.append(window.jumped(f"at={length * 0.3:.0f},{length * 0.6:.0f},24"))  # cells of 24 pixels
                window.check()
    return [
        f"{length:,}", size(path.stat().st_size), f"{made:.1f} s", told(statistics.median(pictures)),
        told(statistics.median(cells)),
    ]  # fmt: skip


NAMES = {"head_view": "BertViz, head view", "model_view": "BertViz, model view", "regard": "Regard"}


def rows_of(length: int, pages: dict[str, Measured]) -> list[list[str]]:
    """A line of the table for each page; ours is compared to the smaller and to the faster of BertViz's."""
    theirs = [page for name, page in pages.items() if name != "regard"]
    least = min((page.bytes for page in theirs), default=None)
    soonest = min((page.shown for page in theirs if page.shown is not None), default=None)
    rows = []
    for name, page in pages.items():
        ours = name == "regard"
        rows.append([
            f"{length:,}", NAMES[name], size(page.bytes) + ("" if page.made else ", foretold"),
            share(page.bytes, least) if ours else "", f"{page.made:.2f} s" if page.made else "not tried",
            (told(page.shown) if page.made else "not tried"), share(page.shown, soonest) if ours else "",
        ])  # fmt: skip
    return rows


def size(count: float) -> str:
    return f"{count / 1e6:,.1f} MB"


def told(taken: float | None) -> str:
    return f"none within {LIMIT:.0f} s" if taken is None else f"{taken:.2f} s"


def share(ours: float | None, theirs: float | None) -> str:
    if not ours or not theirs:
        return ""
    return f"1/{theirs / ours:.1f}" if ours < theirs else f"{ours / theirs:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="a small model and short texts, to try the script")
    options = parser.parse_args()
    lengths = (16, 32, 64) if options.small else LENGTHS
    if options.small:
        measure.RESULTS = Path(tempfile.mkdtemp())  # a trial is not published
    with tempfile.TemporaryDirectory() as folder:
        maker = Maker(Path(folder), options.small)
        if reason := peer.missing():
            print(f"BertViz is not measured: {reason}")
        else:
            peer.scripts(maker.folder)
        rows: list[list[str]] = []
        bytes_per_weight = None
        for length in lengths:
            pages = measured(maker, length, options.rounds)
            if "head_view" in pages:
                weights = maker.eager.config.num_hidden_layers * maker.eager.config.num_attention_heads * length**2
                bytes_per_weight = pages["head_view"].bytes / weights
            elif bytes_per_weight:
                pages = {"head_view": measured_once(maker, length, bytes_per_weight), **pages}
            rows += rows_of(length, pages)
        hand = in_hand(maker.folder / f"regard-{lengths[-1]}.html", options.rounds)
        long = long_text(maker.folder, 5_000 if options.small else 100_000, options.rounds)
    publish(
        "page", "The page, and BertViz's, in the same Chromium",
        f"{machine('torch', 'transformers', 'bertviz', 'playwright')}; no GPU. BERT-base shape, random weights, "
        f"all 144 heads. Medians of {options.rounds} rounds, pages in turn; what took longer than {SLOW:.0f} s "
        "was taken once. First picture: from the start of the navigation to the frame after the one that holds it. "
        "BertViz's three scripts lie on the disk instead of a CDN.",
        [["tokens", "page", "bytes", "of BertViz", "made in", "first picture", "of the faster BertViz"], *rows],
        [["tokens, 144 heads", "answers a hand after", "frames per second, zoomed and dragged", "19 of 20 are faster"],
         [f"{lengths[-1]:,}", *hand]],
        [["tokens, one head, one file", "bytes", "made in", "first picture", "a jump to single cells, exact"], long],
    )  # fmt: skip


if __name__ == "__main__":
    main()
