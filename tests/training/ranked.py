"""Trainings on several processes, one after the other: `torchrun … ranked.py FOLDER PORT …`, a port for each of them.

It reads FOLDER/plan.json: [{"out": …, "run": …, "after": …}, …]. run: a file of settings; after: copy the folder there.
"""

import json
import os
import shutil
import sys
from pathlib import Path

from regard.training.changes import changed, of_file
from regard.training.jobs import JOBS
from regard.training.recipes import TASKS
from regard.training.run import train
from regard.training.shape import settable

TASK = "translation"


def main():
    folder = Path(sys.argv[1])
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "False"  # each training meets by itself
    for plan, port in zip(json.loads((folder / "plan.json").read_text()), sys.argv[2:], strict=True):
        os.environ["MASTER_PORT"] = port
        recipe, model = TASKS[TASK](), settable(JOBS[TASK].Model.Config)
        train(TASK, changed(recipe, of_file(Path(plan["run"]), TASK), model), folder / plan["out"])
        if "after" in plan and os.environ["RANK"] == "0":
            shutil.copytree(folder / plan["out"], folder / plan["after"])


if __name__ == "__main__":
    main()
