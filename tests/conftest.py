"""What several folders of tests need."""

import pytest

from regard.commands import main


@pytest.fixture
def run(capfd):
    """Calls a command and gives back (exit code, standard output, standard error), of libraries too."""

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return left.value.code, out, err

    return run
