"""Checkpoints: whole or not there; what is damaged, foreign or has no room is told, and the others stay."""

import json
import resource
from contextlib import contextmanager

import pytest
import torch

from regard.errors import FileError
from regard.training.checkpoints import STATE, Checkpoints

from .small import ALONE, loop, losses, same

STATED = {"progress": {"step": 1}}


def tensors(fill=1.0, size=64):
    return {"weight.a": torch.full((size, size), fill), "exp_avg.a": torch.arange(float(size))}


@pytest.fixture
def checkpoints(tmp_path):
    """Two of them."""
    made = Checkpoints(tmp_path / "checkpoints", ALONE, keep=2)
    for step in (5, 10):
        made.write(step, tensors(step), STATED)
    return made


@contextmanager
def files_of(size):
    """No file may be larger: what a full disk does, for one process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def data_of(checkpoints, step):
    """The largest file, in which the tensors are."""
    return max((checkpoints.folder / f"step-{step:09d}").iterdir(), key=lambda path: path.stat().st_size)


def test_what_was_written_is_read(checkpoints):
    assert checkpoints.steps() == [5, 10]
    found = tensors(0.0)
    checkpoints.read(5, found)
    assert same(found, tensors(5.0))
    assert checkpoints.state(5)["progress"] == STATED["progress"]


def test_the_latest_are_kept(checkpoints):
    for step in (15, 20):
        checkpoints.write(step, tensors(), STATED)
    assert [path.name for path in sorted(checkpoints.folder.iterdir())] == ["step-000000015", "step-000000020"]


def test_one_of_the_same_step_is_replaced(checkpoints):
    checkpoints.write(10, tensors(3.0), STATED)
    found = tensors(0.0)
    checkpoints.state(10)
    checkpoints.read(10, found)
    assert same(found, tensors(3.0))


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_one_bit_that_turned_is_told(checkpoints, place):
    path = data_of(checkpoints, 10)
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match=rf"step-000000010 is damaged.*{path.name} is not as.*goes on from step 5\."):
        checkpoints.state(10)
    checkpoints.state(5)


def test_a_file_that_is_short_or_missing_is_told(checkpoints):
    path = data_of(checkpoints, 10)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileError, match="is not as it was written"):
        checkpoints.state(10)
    path.unlink()
    with pytest.raises(FileError, match="is not as it was written"):
        checkpoints.state(10)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"files": 3}', b"{}", b"\xff\xfe"])
def test_a_state_that_is_none_is_told(checkpoints, content):
    (checkpoints.folder / "step-000000010" / STATE).write_bytes(content)
    with pytest.raises(FileError, match=rf"step-000000010 is damaged.*{STATE} cannot be read"):
        checkpoints.state(10)


def test_without_a_state_it_is_no_checkpoint(checkpoints):
    (checkpoints.folder / "step-000000010" / STATE).unlink()
    assert checkpoints.steps() == [5]


def test_folders_of_others_are_left_alone(checkpoints):
    for name in ("step-best", "mine"):
        (checkpoints.folder / name).mkdir()
        (checkpoints.folder / name / STATE).write_text("{}")
    assert checkpoints.steps() == [5, 10]
    for step in (15, 20):
        checkpoints.write(step, tensors(), STATED)
    assert (checkpoints.folder / "step-best" / STATE).exists()


def test_tensors_of_another_model_are_told(checkpoints):
    with pytest.raises(FileError, match=r"step-000000010 is damaged, or no checkpoint of this run"):
        checkpoints.read(10, {**tensors(), "weight.b": torch.zeros(3)})
    with pytest.raises(FileError, match=r"step-000000010 is damaged, or no checkpoint of this run"):
        checkpoints.read(10, tensors(size=32))


def test_what_a_kill_left_is_removed(checkpoints):
    left = checkpoints.folder / ".step-000000012.part"
    left.mkdir()
    (left / "half").write_bytes(b"0")
    checkpoints.write(15, tensors(), STATED)
    assert not left.exists()


@pytest.mark.parametrize("room", [0, 100, 10_000])
def test_a_disk_without_room(checkpoints, room):
    with (
        files_of(room),
        pytest.raises(FileError, match=r"step-000000015 cannot be written: there is no room.*older checkpoints are wh"),
    ):
        checkpoints.write(15, tensors(15.0), STATED)
    assert [path.name for path in sorted(checkpoints.folder.iterdir())] == ["step-000000005", "step-000000010"]
    found = tensors(0.0)
    checkpoints.state(10)
    checkpoints.read(10, found)
    assert same(found, tensors(10.0))


def test_a_folder_that_may_not_be_written_is_told(tmp_path):
    (tmp_path / "checkpoints").write_text("a file")
    with pytest.raises(FileError, match="checkpoints"):
        Checkpoints(tmp_path / "checkpoints", ALONE).write(5, tensors(), STATED)


def test_a_run_goes_on_after_the_disk_was_full(tmp_path):
    made = loop(tmp_path / "run", save_every=4)
    entries = 12_000  # the log has room, a checkpoint has not
    with files_of(entries), pytest.raises(FileError, match=r"step-000000004 cannot be written: there is no room"):
        made.run()
    loop(tmp_path / "run", save_every=4).run()
    loop(tmp_path / "whole", save_every=4).run()
    assert losses(tmp_path / "run") == losses(tmp_path / "whole")


def test_clear(checkpoints):
    checkpoints.clear()
    assert checkpoints.steps() == []


def test_the_state_is_told_in_plain_json(checkpoints):
    state = json.loads((checkpoints.folder / "step-000000010" / STATE).read_text())
    assert state["step"] == 10
    assert all(len(digest) == 64 for digest in state["files"].values())
