"""A record in a terminal and as JSON: what is chosen, and what is said about it."""

import io
import json

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from regard.errors import OptionError
from regard.record import Tokens
from regard.view import seen

from .records import BEGINS, WORDS, causal, layer, record

N = len(WORDS)
SELF, FIRST, LAST = range(N), [0] * N, [N - 1] * N
BEFORE, AFTER = [max(place - 1, 0) for place in range(N)], [min(place + 1, N - 1) for place in range(N)]
FAR = [5, 6, 5, 6, 2, 1, 2, 3]  # something that only this text can explain
ONE = [4] * N  # all at one


def printed(drawing, width=80):
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    console.print(drawing)
    return console.file.getvalue()


@pytest.fixture
def plain():
    return record(layer([SELF, BEFORE]), layer([FAR, FIRST], index=1))


class TestChoice:
    @pytest.mark.parametrize("dull", [SELF, FIRST, LAST, BEFORE, AFTER, ONE, None])
    def test_the_most_telling_head_looks_elsewhere(self, dull):
        """Not at itself, its neighbours, the ends, nor all at one."""
        found = seen.choose(record(layer([dull, dull]), layer([dull, FAR], index=1)))
        assert found.name == "layer 1 head 1, the most telling one (encoder)"

    def test_marks_in_the_middle_tell_nothing(self):
        words = ("[CLS]", "a", "b", "[SEP]", "c", "d", "[SEP]")
        tokens = Tokens(words, (True,) * 7)
        marks, far = [0, 3, 0, 0, 0, 0, 3], [4, 4, 5, 4, 1, 2, 1]
        assert "head 1" in seen.choose(record(layer([marks, far], keys=tokens))).name

    def test_of_a_long_text_the_last_queries_decide(self, monkeypatch):
        monkeypatch.setattr(seen, "WORTH_WEIGHING", 0)
        early, late = [5, 6, 5, 6, *range(4, N)], [*range(4), 1, 2, 1, 3]
        assert "head 1" in seen.choose(record(layer([early, late]))).name

    def test_of_a_very_long_one_a_layer(self, monkeypatch):
        monkeypatch.setattr(seen, "LONG", N - 1)
        found = seen.choose(record(layer([FAR]), layer([SELF, FAR], index=1)))
        assert found.name == "layer 1 head 1, the most telling one of its layer (encoder)"

    def test_a_translator_shows_its_source(self):
        rows = Tokens.of(["<s>", "le", "chat"])
        cross = layer([[2, 1, 2]], index=1, kind="cross", queries=rows)
        found = seen.choose(record(layer([FAR]), cross))
        assert found.name == "layer 1 head 0, the most telling one (cross)"
        assert found.weights().shape == (3, N)

    def test_one_head_and_the_mean(self, plain):
        np.testing.assert_allclose(seen.choose(plain, 1, 0).weights(), np.eye(N)[FAR], atol=1e-6)
        mean = seen.choose(plain, 0)
        assert mean.name == "the mean of all heads of layer 0 (encoder)"
        np.testing.assert_allclose(mean.weights(), (np.eye(N)[SELF] + np.eye(N)[BEFORE]) / 2, atol=1e-6)

    def test_words(self, plain):
        """What goes to a word is added up, what comes from it is averaged."""
        found = seen.choose(plain, 0, 1, words=True)
        assert found.rows.texts == ("[CLS]", "the", "cats", "sat", "down", ".", "[SEP]")
        expected = np.zeros((7, 7))
        expected[np.arange(7), [0, 0, 1, 2, 3, 4, 5]] = 1
        expected[2] = [0, 0.5, 0.5, 0, 0, 0, 0]  # cat looks at "the", s at cat
        np.testing.assert_allclose(found.weights(), expected, atol=1e-6)
        np.testing.assert_allclose(found.weights(3), expected[:3], atol=1e-6)

    @pytest.mark.parametrize(
        ("layer", "head", "said"),
        [
            (2, None, "no layer 2; the layers are 0 to 1"),
            (-1, 0, "no layer -1"),
            (0, 2, "no head 2; the heads are 0 to 1"),
            (None, 1, "which layer"),
        ],
    )
    def test_what_is_not_there(self, plain, layer, head, said):
        with pytest.raises(OptionError, match=said):
            seen.choose(plain, layer, head)


class TestPair:
    SEGMENTS = (0, 0, 0, 0, 1, 1, 1, 1)

    def tokens(self):
        return Tokens(WORDS, BEGINS, self.SEGMENTS)

    def test_the_first_looks_at_the_second(self):
        found = seen.choose(record(layer([SELF, FAR], keys=self.tokens())), pair=True)
        assert found.name == "layer 0 head 1, the most telling one, from A to B"
        assert (found.rows.texts, found.cols.texts) == (WORDS[:4], WORDS[4:])
        np.testing.assert_allclose(found.weights(), np.eye(N)[FAR][:4, 4:], atol=1e-6)

    def test_where_no_token_sees_a_later_one_the_second_looks_at_the_first(self):
        found = seen.choose(record(causal([[0, 0, 0, 0, 1, 2, 2, 3]], self.tokens())), pair=True, words=True)
        assert found.name.endswith("from B to A")
        assert (found.rows.texts, found.cols.texts) == (("sat", "down", ".", "[SEP]"), ("[CLS]", "the", "cats"))
        np.testing.assert_allclose(found.weights(), np.eye(3)[[1, 2, 2, 2]], atol=1e-6)

    def test_one_text_is_no_pair(self, plain):
        with pytest.raises(OptionError, match="no text 'A'"):
            seen.choose(plain, pair=True)


class TestTerminal:
    def test_what_is_said(self, plain):
        out = printed(seen.render(plain, seen.choose(plain), model="by hand"))
        assert out.startswith("by hand   2 layers of 2 heads, 8 tokens\nshown is   layer 1 head 0, the most telling")
        assert "--layer 0-1 --head 0-1" in out
        assert "regard heads" in out
        assert "it wrote" not in out
        assert "␣cat looks at" in out

    def test_keys_that_are_as_good_as_nothing_are_not_listed(self, plain):
        out = printed(seen.render(plain, seen.choose(plain, 1, 0), model="m"))
        bars = out.partition("looks at")[2]
        assert bars.count("100.0%") == N
        assert bars.count("and 7 others     0.0%") == N
        assert bars.count("0.0%") == 2 * N

    def test_tokens_that_the_model_wrote_are_marked(self):
        tokens = Tokens(("a", " b", " c", "d"), (True, True, True, False), None, generated=2)
        made = record(causal([[0, 0, 1, 2]], tokens))
        out = printed(seen.render(made, seen.choose(made), model="m", wrote=" cd"))
        assert "it wrote    cd\n" in out
        assert "»␣c looks at" in out
        assert "»d looks at" in out
        assert "»a" not in out
        assert "the model wrote it" in out
        assert seen.Side(tokens, words=True).labels == ["a", "b", "»cd"]
        assert seen.Side(tokens).texts == tokens.texts
        assert seen.as_json(made, None, model="m")["layers"][0]["generated"] == 2

    def test_bytes_are_explained(self):
        tokens = Tokens(("⟨e6⟩", "⟨88⟩", "⟨91⟩", "a"), (True, False, False, True))
        made = record(layer([[3, 3, 3, 0]], keys=tokens))
        assert "--words" in printed(seen.render(made, seen.choose(made), model="m"))
        assert "我 looks at" in printed(seen.render(made, seen.choose(made, words=True), model="m"))

    def test_a_translator_counts_both_sides(self):
        rows = Tokens(("<s>", "le"), (True, True), None, generated=1)
        made = record(layer([FAR]), layer([[2, 1]], index=1, kind="cross", queries=rows))
        assert "8 tokens read, 2 written" in printed(seen.render(made, seen.choose(made), model="m"))

    def test_a_long_text_is_listed(self, monkeypatch):
        tokens = Tokens.of([f"w{place}" for place in range(50)])
        made = record(layer([list(range(49, -1, -1))], keys=tokens))
        out = printed(seen.render(made, seen.choose(made), model="m"))
        assert "w39  →  w10  100.0%" in out
        assert "… and 10 more tokens; --plot" in out
        monkeypatch.setattr(seen, "MOST_NUMBERS", 100)
        short = printed(seen.render(made, seen.choose(made), model="m"))
        assert "w39  →  w10  100.0%" in short
        assert "more columns" not in short

    @pytest.mark.parametrize("width", [40, 80, 120])
    def test_columns_stay_straight(self, width):
        texts = ("[CLS]", "我", "喜欢", "👨‍👩‍👧", "مرحبا", "\x1b[2J", "e\u0301", "\ud800")
        tokens = Tokens.of(texts)
        made = record(layer([FAR], keys=tokens))
        out = printed(seen.render(made, seen.choose(made), model="\x1b[31m"), width)
        assert "\x1b" not in out
        lines = out.splitlines()
        assert all(cell_len(line) <= width for line in lines)
        head = next(place for place, line in enumerate(lines) if "我" in line)
        cells = [line for line in lines[head + 1 : head + 1 + N] if "░" in line or "█" in line]
        assert len(cells) == N
        assert len({cell_len(line[: line.index("0.")]) for line in cells if "0." in line}) == 1


class TestJson:
    def test_every_head(self, plain):
        told = json.loads(json.dumps(seen.as_json(plain, None, model="m"), allow_nan=False))
        assert (told["model"], told["wrote"]) == ("m", None)
        assert [one["heads"] for one in told["layers"]] == [[0, 1], [0, 1]]
        assert told["layers"][1]["queries"] == list(WORDS)
        np.testing.assert_allclose(told["layers"][1]["weights"][0], np.eye(N)[FAR], atol=1e-6)

    def test_what_was_chosen(self, plain):
        told = seen.as_json(plain, seen.choose(plain, 1, 0), model="m")
        assert told["shown"] == "layer 1 head 0 (encoder)"
        np.testing.assert_allclose(told["weights"], np.eye(N)[FAR], atol=1e-6)

    def test_too_much_is_refused(self, plain, monkeypatch):
        monkeypatch.setattr(seen, "MOST_NUMBERS", 100)
        with pytest.raises(OptionError, match="256 weights; JSON takes 100 at most"):
            seen.as_json(plain, None, model="m")
        assert len(seen.as_json(plain, seen.choose(plain, 1, 0), model="m")["weights"]) == N
