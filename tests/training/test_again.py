"""The run.toml that a training leaves makes it once more: the same log, and the same weights, to the bit."""

import pytest

from regard.commands import main

from .corpora import CORPORA
from .small import lines
from .test_run import ENDINGS

# Every kind of value: texts, shares, lists, and what is drawn by chance.
CHANGES = (
    "width=16", "heads=2", "depth=1", "hidden=32", "dropout=0.2", "size=300", "longest=24", "steps=4", "tokens=200",
    "accumulate=2", "warmup=0.5", "betas=[0.8, 0.95]", "ema=0.5", "seed=7", "evaluate_every=2", "log_every=1",
    "learning_rate=3e-3", "device=cpu",
)  # fmt: skip


def run(*arguments):
    """`regard train …`, which must do well."""
    with pytest.raises(SystemExit) as left:
        main(["train", *map(str, arguments)])
    assert left.value.code == 0


@pytest.mark.parametrize("task", CORPORA)
def test_run_toml_makes_it_once_more(tmp_path, monkeypatch, task):
    name = f"corpus.{ENDINGS.get(task, 'tsv')}"
    CORPORA[task](tmp_path / name, count=80)
    monkeypatch.chdir(tmp_path)  # the data by its short name,
    run(task, "--data", name, "--held-out", "0.2", "--out", "out", *(f"--set={change}" for change in CHANGES))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # and found from anywhere
    run(task, "--config", "../out/run.toml", "--out", "again")
    first, second = tmp_path / "out", tmp_path / "elsewhere" / "again"
    assert len(lines(first)) == 6
    assert lines(second) == lines(first)
    for file in ("model.safetensors", "config.json", "tokenizer.json", "run.toml"):
        assert (second / file).read_bytes() == (first / file).read_bytes()
