"""The log: whole lines, no gap and no double after a run that goes on."""

import os
import signal

import pytest

from regard.errors import FileError
from regard.training.log import FILE, Log, read

from .small import Silent, lines, loop, steps


def filled(folder, *numbers):
    log = Log(folder)
    log.begin(0)
    for number in numbers:
        log.add({"kind": "step", "step": number, "loss": 1 / number})
    return log


def test_lines_are_read_as_they_were_written(tmp_path):
    log = filled(tmp_path, 1, 2, 3)
    assert [line["loss"] for line in read(log.path)] == [1, 0.5, 1 / 3]


def test_lines_of_later_steps_go(tmp_path):
    log = filled(tmp_path, 1, 2, 3, 4, 5)
    log.begin(3)
    log.add({"kind": "step", "step": 4, "loss": 0.0})
    assert [line["step"] for line in read(log.path)] == [1, 2, 3, 4]
    assert [line["loss"] for line in read(log.path)] == [1, 0.5, 1 / 3, 0.0]


def test_a_run_that_begins_anew_has_a_log_of_its_own(tmp_path):
    log = filled(tmp_path, 1, 2)
    log.begin(0)
    assert list(read(log.path)) == []


@pytest.mark.parametrize("torn", [1, 10, 30])
def test_a_torn_last_line_is_left_out(tmp_path, torn):
    log = filled(tmp_path, 1, 2, 3)
    log.path.write_bytes(log.path.read_bytes()[:-torn])
    assert [line["step"] for line in read(log.path)] == ([1, 2] if torn > 1 else [1, 2, 3])
    log.begin(2)
    log.add({"kind": "step", "step": 3})
    assert [line["step"] for line in read(log.path)] == [1, 2, 3]


def test_a_last_line_that_only_lacks_its_end_is_whole(tmp_path):
    log = filled(tmp_path, 1, 2)
    log.path.write_bytes(log.path.read_bytes()[:-1])
    log.begin(2)
    log.add({"kind": "step", "step": 3})
    assert [line["step"] for line in read(log.path)] == [1, 2, 3]


def test_blocks_of_nothing_at_the_end_are_left_out(tmp_path):
    """What some file systems leave of a file that was being written when the machine went down."""
    log = filled(tmp_path, 1, 2)
    log.path.write_bytes(log.path.read_bytes() + bytes(100))
    assert [line["step"] for line in read(log.path)] == [1, 2]
    log.path.write_bytes(log.path.read_bytes() + b"\xff\xfe\n")
    assert [line["step"] for line in read(log.path)] == [1, 2]


def test_a_run_that_goes_on_leaves_no_gap_and_no_double(tmp_path):
    loop(tmp_path / "run", steps=10, save_every=4, log_every=3).run()
    assert steps(tmp_path / "run") == [3, 6, 9, 10]
    (tmp_path / "run" / "checkpoints" / "step-000000010" / "state.json").unlink()
    loop(tmp_path / "run", steps=10, save_every=4, log_every=3).run()
    assert steps(tmp_path / "run") == [3, 6, 9, 10]


def test_a_stop_between_two_lines_leaves_no_trace_in_the_log(tmp_path):
    asking = Silent(step=lambda told: os.kill(os.getpid(), signal.SIGTERM) if told["step"] == 5 else None)
    stopped = loop(tmp_path / "run", steps=15, save_every=1000, log_every=5, reporters=[asking])
    stopped.run()
    assert stopped.progress.step == 6  # and steps 7 to 10 are not yet in the mean that line 10 tells
    loop(tmp_path / "run", steps=15, save_every=1000, log_every=5).run()
    loop(tmp_path / "whole", steps=15, save_every=1000, log_every=5).run()
    assert lines(tmp_path / "run") == lines(tmp_path / "whole")


def test_a_log_that_cannot_be_written_is_told(tmp_path):
    log = Log(tmp_path / "nowhere")
    with pytest.raises(FileError, match=rf"{FILE} cannot be written: there is no folder"):
        log.add({"step": 1})


@pytest.mark.parametrize("line", ["{}", "[1]", '{"kind": "step", "step": "x"}', '{"step": 2}'])
def test_what_is_no_line_of_a_log_is_left_out(tmp_path, line):
    log = filled(tmp_path, 1)
    log.path.write_text(f"{line}\n{log.path.read_text()}")
    log.begin(1)
    assert [entry["step"] for entry in read(log.path)] == [1]
