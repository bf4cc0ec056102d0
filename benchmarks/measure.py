"""What every benchmark needs: the machine's facts, interleaved timing, peak memory of a fresh process, a table."""

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def machine(*packages: str) -> str:
    """Processor, cores, memory, Python and the versions that matter, in one line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(f"{name} {_version(name)}" for name in packages)
    return (
        f"{_processor()}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}, {versions}"
    )


def interleaved(rounds: int, **calls: Callable[[], object]) -> dict[str, float]:
    """The median seconds of each call, taken in turn, so that a slow moment of the machine meets them all."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def peak_extra_memory(prepare: str, call: str) -> float:
    """MiB by which `call` raised the peak memory of a fresh process over what it had after `prepare`."""
    program = f"""
import re, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
def status(field):
    return int(re.search(field + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
{prepare}
open("/proc/self/clear_refs", "w").write("5")  # the peak is counted from here
before = status("VmRSS")
{call}
print(status("VmHWM") - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def publish(name: str, title: str, facts: str, *tables: list[list[str]]) -> None:
    """Print tables, each with its head first, and keep them in results/, as Markdown."""
    text = "\n\n".join((f"# {title}", facts, *map(_markdown, tables))) + "\n"
    RESULTS.mkdir(exist_ok=True)
    unfinished = RESULTS / f".{name}.md"
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(RESULTS / f"{name}.md")
    print(text)


def _markdown(rows: list[list[str]]) -> str:
    head, *body = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body))


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
