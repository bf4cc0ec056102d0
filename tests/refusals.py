"""What a command says when it refuses."""


def refused(answer, code, *parts):
    """One line on standard error, nothing on standard output, and never a traceback."""
    got, out, err = answer
    assert got == code, err
    assert out == ""
    assert err.startswith("regard: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err
