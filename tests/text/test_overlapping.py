"""Parts that overlap leave nothing out, and none is there for nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from regard.errors import OptionError
from regard.text.overlapping import begins


@given(some.integers(0, 300), some.integers(1, 50), some.data())
def test_every_short_stretch_is_whole_in_a_part(tokens, room, data):
    overlap = data.draw(some.integers(0, room - 1))
    parts = [(begin, min(begin + room, tokens)) for begin in begins(tokens, room, overlap)]
    assert parts[0][0] == 0
    assert parts[-1][1] == tokens
    for first in range(tokens - overlap):
        assert any(begin <= first and first + overlap < end for begin, end in parts)
    for (begin, _), (_, end) in zip(parts[1:], parts, strict=False):
        assert begin == end - overlap  # the one before it ended before the text did
        assert end < tokens


@pytest.mark.parametrize("overlap", [-1, 4, 5])
def test_parts_that_could_not_move_on_are_refused(overlap):
    with pytest.raises(OptionError, match=f"parts of 4 tokens cannot overlap by {overlap}"):
        list(begins(9, 4, overlap))
