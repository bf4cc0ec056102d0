"""A folder is one process's at a time, and nobody's when that has gone."""

import subprocess
import sys

import pytest

from regard.errors import FileError
from regard.locking import locked

HOLDING = """
import sys
from pathlib import Path
from regard.locking import locked
with locked(Path(sys.argv[1]), busy="it is taken"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_is_told_and_a_killed_one_leaves_nothing(tmp_path):
    folder = tmp_path / "a" / "b"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(FileError, match="it is taken"), locked(folder, busy="it is taken"):
            pass
        other.kill()
        other.wait()
    with locked(folder, busy="it is taken"):
        assert folder.is_dir()


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="there is a file of that name"), locked(tmp_path / "file", busy=""):
        pass
