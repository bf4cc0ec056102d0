"""A training that is killed with -9 again and again: `python killing.py FOLDER KILLS SEED TASK …`

Each process is a fork of this one, which has torch imported and does nothing with it; it runs `regard train TASK …`.
A kill comes at one of four moments: while a checkpoint is written, while held-out text is measured, when the log has
so many lines more, or after some time. What it hit is printed.
"""

import json
import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path


def started(arguments):
    """A process that trains."""
    child = os.fork()
    if not child:
        from regard.commands import main

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        main(["train", *arguments])  # which leaves
    return child


def last_line(log):
    """The last whole line of the log, and how many there are."""
    lines = log.read_text().splitlines() if log.exists() else []
    try:
        return json.loads(lines[-1]), len(lines)
    except (ValueError, IndexError):
        return {}, len(lines)


def parts(checkpoints):
    """Files of checkpoints that are not whole."""
    found = set()
    for path in checkpoints.glob(".step-*.part/*"):
        with suppress(FileNotFoundError):
            found.add((path, path.stat().st_ino))
    return found


def moments(folder, draw):
    """Functions that say whether the moment has come, by turns."""
    log, checkpoints = folder / "log.jsonl", folder / "checkpoints"

    def in_a_checkpoint(_):
        return bool(parts(checkpoints) - left)

    def in_an_evaluation(_):
        line, _ = last_line(log)
        return line.get("kind") == "step" and line["step"] % 5 == 0

    while True:
        left = parts(checkpoints)  # by a kill; they are not to be taken for new ones
        yield "checkpoint", in_a_checkpoint
        more = draw.randint(1, 6)
        yield "lines", lambda begun, more=more: last_line(log)[1] >= begun + more
        yield "evaluation", in_an_evaluation
        until = time.monotonic() + draw.uniform(0.05, 0.5)
        yield "time", lambda _, until=until: time.monotonic() > until


def killed(folder, arguments, name, has_come):
    """Start a training and kill it at a moment; whether it was still alive then."""
    log = folder / "log.jsonl"
    before = log.stat().st_ino if log.exists() else 0
    child = started(arguments)
    begun = None
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if begun is None and name != "time":
            if log.exists() and log.stat().st_ino != before:  # it is written anew when a run goes on
                begun = last_line(log)[1]
        elif has_come(begun):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return True
        time.sleep(0.0005)
    return False


def main():
    folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    arguments = sys.argv[4:]
    import regard.commands.train
    import regard.training.run  # noqa: F401

    for _, (name, has_come) in zip(range(kills), moments(folder, random.Random(seed)), strict=False):
        if killed(folder, arguments, name, has_come):
            print(name, flush=True)
    _, status = os.waitpid(started(arguments), 0)
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
