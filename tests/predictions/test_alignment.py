"""Weights between pieces → the words that looked at each other."""

import numpy as np
import pytest

from regard.predictions.alignment import Alignment, Link
from regard.record.tokens import Tokens

SOURCE = Tokens((" the", " c", "at", "[SEP]"), (True, True, False, True))
END = Tokens((" Kat", "ze", "[SEP]"), (True, False, True))
WEIGHTS = np.array([[0.3, 0.2, 0.2, 0.3], [0.1, 0.1, 0.2, 0.6], [0.9, 0.0, 0.1, 0.0]])


def test_pieces_are_put_together_and_the_end_marks_left_out():
    (link,) = Alignment(SOURCE, END, WEIGHTS).links()
    assert link[:2] == ("Katze", "cat")  # 0.4 and 0.3 of its two pieces; no piece alone has as much as " the"
    assert link.weight == pytest.approx(0.35)


def test_the_last_word_of_what_was_stopped_counts():
    stopped = Tokens((" Kat", "ze", " die"), (True, False, True))
    assert Alignment(SOURCE, stopped, WEIGHTS, ended=False).links()[1] == Link("die", "the", 0.9)


def test_nothing_written_looked_at_nothing():
    nothing = Tokens(("[SEP]",), (True,))
    assert Alignment(SOURCE, nothing, WEIGHTS[:1]).links() == ()
