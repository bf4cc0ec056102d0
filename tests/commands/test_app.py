"""What the command does where something outside of it fails: an output that is closed, a stray file."""

import errno
import os
import subprocess
import sys

import pytest

from regard.commands import app

CALL = f"{sys.executable} -m regard fill 'The cat [MASK] on the mat.'"


def shell(line):
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(os.name == "nt", reason="there is no sh")
class TestOutput:
    @pytest.mark.parametrize("end", [">&-", "--json >&-", "--see >&-", ">&- 2>&-"])
    def test_closed(self, end):
        pytest.importorskip("torch")
        pytest.importorskip("tokenizers")
        assert shell(f"{CALL} {end}") == (0, "", "")

    def test_closed_both_where_it_is_refused(self):
        assert shell(f"{sys.executable} -m regard see '' >&- 2>&-") == (2, "", "")


class TestStrayErrors:
    @pytest.mark.parametrize(
        ("error", "says"),
        [
            (OSError(errno.ENOENT, "No such file or directory", "/a/b"), "regard: /a/b: No such file or directory.\n"),
            (OSError(errno.ENOSPC, "No space left on device", "/a/b"), "regard: /a/b: No space left on device.\n"),
            (OSError(errno.EMFILE, "Too many open files"), "regard: [Errno 24] Too many open files\n"),
            (OSError("the hub is away"), "regard: the hub is away\n"),
        ],
    )
    def test_told_as_they_are(self, run, monkeypatch, error, says):
        def fails(*_, **__):
            raise error

        monkeypatch.setattr(app, "app", fails)
        assert run("see", "a") == (1, "", says)
