"""Word alignment out of cross-attention, its file format and its error rate; hand-aligned sentences where they are."""

import lzma
from pathlib import Path

import numpy as np
import pytest

from regard.errors import DtypeError, FileError, OptionError, ShapeError
from regard.formula import masks
from regard.record import Layer, Mean, Record, Run, Tokens
from regard.record.map import Map
from regard.record.measures import alignment, alignment_error_rate, as_pharaoh, from_pharaoh, read_pharaoh
from tests.record.measures_cases import each_library, each_tiling

library, tiles = each_library, each_tiling  # fixtures, by the names that tests ask for them
GOLD = Path(__file__).parents[3] / "shared" / "data" / "word-align"


def with_weights(*tables, rows, cols, library=np.asarray):
    """A cross-attention layer that has these very weights, a head for each table: log w as the product of q and k."""
    logs = np.log(np.maximum(np.asarray(tables, dtype=np.float64), 1e-30)).astype("f")
    keys = np.broadcast_to(np.eye(logs.shape[-1], dtype="f"), (len(tables), *(logs.shape[-1],) * 2))
    made = Map(queries=library(logs), keys=library(keys.copy()), scale=1.0)
    return Layer(
        name="cross", kind="cross", index=0, maps=(made,), queries=(rows,), keys=(cols,),
        head_numbers=tuple(range(len(tables))),
    )  # fmt: skip


def tokens(text):
    """Pieces with a blank before the first one of each word: "▁a ▁b c" has two words."""
    pieces = text.split()
    return Tokens(tuple(piece.replace("▁", " ") for piece in pieces), tuple(piece.startswith("▁") for piece in pieces))


TABLE = [
    [0.6, 0.3, 0.1],
    [0.5, 0.4, 0.1],
    [0.1, 0.5, 0.4],
    [0.1, 0.0, 0.9],
]


class TestAlignment:
    def test_the_three_ways(self, library, tiles):
        layer = with_weights(TABLE, rows=Tokens.of("wxyz"), cols=Tokens.of("abc"), library=library)
        for subject in (layer, layer.heads[0], Mean(layer.heads)):
            assert alignment(subject) == {(0, 0), (0, 1), (1, 2), (2, 3)}
            assert alignment(subject, "mutual") == {(0, 0), (1, 2), (2, 3)}
            # What the keys receive is 1.3, 1.2 and 1.5.
            assert alignment(subject, "share", share=0.3) == {(0, 0), (0, 1), (1, 1), (1, 2), (2, 3)}
            assert alignment(subject, "share", share=0.26) == {(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3)}

    @pytest.mark.parametrize("seed", range(3))
    def test_random_pieces_against_dense_words(self, library, tiles, seed):
        rng = np.random.default_rng(seed)
        tables = rng.dirichlet(np.full(9, 0.3), size=(2, 11))
        begins = [[bool(place == 0 or rng.random() < 0.6) for place in range(size)] for size in (11, 9)]
        rows, cols = (Tokens(tuple(f"t{place}" for place in range(len(own))), tuple(own)) for own in begins)
        layer = with_weights(*tables, rows=rows, cols=cols, library=library)
        words = np.add.reduceat(tables.mean(0), np.flatnonzero(begins[1]), axis=1)
        words = (
            np.add.reduceat(words, np.flatnonzero(begins[0]), axis=0)
            / np.diff([*np.flatnonzero(begins[0]), 11])[:, None]
        )
        strongest = {(int(np.argmax(row)), place) for place, row in enumerate(words)}
        assert alignment(layer) == strongest
        assert alignment(layer, "mutual") == {(i, j) for i, j in strongest if np.argmax(words[:, i]) == j}
        shares = np.minimum(words / words.sum(1, keepdims=True), words / words.sum(0))
        assert alignment(layer, "share", share=0.2) == {(int(i), int(j)) for j, i in np.argwhere(shares >= 0.2)}

    def test_pieces_become_words(self):
        """Source "ab c", target "x yz": "b" alone is weaker than "c" for x, "ab" is stronger."""
        layer = with_weights(
            [[0.3, 0.3, 0.4], [0.1, 0.0, 0.9], [0.5, 0.3, 0.2]], rows=tokens("▁x ▁y z"), cols=tokens("▁a b ▁c")
        )
        assert alignment(layer) == {(0, 0), (1, 1)}  # yz: ab 0.45, c 0.55

    def test_marks_take_no_part(self):
        """</s> has most of the attention; the sentences stand between the marks."""
        table = np.asarray([[0, 0, 1.0], [0.2, 0.1, 0.7], [0.1, 0.2, 0.7]])
        layer = with_weights(table, rows=Tokens.of(["<s>", "x", "y"]), cols=Tokens.of(["a", "b", "</s>"]))
        assert alignment(layer) == {(2, 0), (2, 1), (2, 2)}
        assert alignment(layer, rows=slice(1, None), cols=slice(0, 2)) == {(0, 0), (1, 1)}

    def test_the_row_that_predicts_a_word_is_the_one_before(self):
        table = np.eye(3)[[0, 1, 2, 2]]  # <s> looks at a and so writes x, whose row looks at b and writes y, …
        layer = with_weights(table, rows=Tokens.of(["<s>", "x", "y", "z"]), cols=Tokens.of("abc"))
        assert alignment(layer, predicting=True, rows=slice(1, None)) == {(0, 0), (1, 1), (2, 2)}
        assert alignment(layer, rows=slice(1, None)) == {(1, 0), (2, 1), (2, 2)}
        with pytest.raises(OptionError, match=r"begin behind it: rows=slice\(1, None\)"):
            alignment(layer, predicting=True)

    def test_a_row_that_sees_nothing_has_no_link(self):
        layer = with_weights(TABLE[:2], rows=Tokens.of("xy"), cols=Tokens.of("abc"))
        seen = Map(
            queries=layer.map.queries, keys=layer.map.keys, scale=1.0, mask=masks.given(np.asarray([[True], [False]]))
        )
        hidden = Layer(
            name="c", kind="cross", index=0, maps=(seen,), queries=layer.queries, keys=layer.keys, head_numbers=(0,)
        )
        assert alignment(hidden) == alignment(hidden, "mutual") == {(0, 0)}
        assert alignment(hidden, "share") == {(0, 0), (1, 0)}  # of its two target words, row 0 has all there is

    def test_errors(self):
        layer = with_weights(TABLE, rows=Tokens.of("wxyz"), cols=Tokens.of("abc"))
        with pytest.raises(OptionError, match=r'way is \'argmax\'; it is "strongest", "mutual" or "share"'):
            alignment(layer, "argmax")
        with pytest.raises(OptionError, match="share is 0; it must be above 0"):
            alignment(layer, "share", share=0)
        with pytest.raises(OptionError, match=r"rows .* have none of the 4 tokens"):
            alignment(layer, rows=slice(2, 2))
        with pytest.raises(OptionError, match="there are 4 tokens without texts for 4 rows"):
            alignment(with_weights(TABLE, rows=Tokens.of([""] * 4), cols=Tokens.of("abc")))
        with pytest.raises(OptionError, match="there are 2 tokens for 3 cols"):
            alignment(with_weights(TABLE, rows=Tokens.of("wxyz"), cols=Tokens.of("ab")))
        with pytest.raises(DtypeError, match="and this is a Record"):
            alignment(Record([Run(layers=(layer,))]))


class TestErrorRate:
    def test_by_hand(self):
        sure, possible = {(0, 0), (1, 1)}, {(0, 0), (1, 1), (2, 1)}
        assert alignment_error_rate({(0, 0), (1, 1)}, sure, possible) == 0
        assert alignment_error_rate({(0, 0), (1, 1), (2, 1)}, sure, possible) == 0
        assert alignment_error_rate({(0, 0), (2, 1)}, sure, possible) == 1 - (1 + 2) / (2 + 2)
        assert alignment_error_rate({(5, 5)}, sure, possible) == 1
        assert alignment_error_rate({(0, 0), (2, 1)}, sure) == 1 - (1 + 1) / (2 + 2)
        assert alignment_error_rate(set(), set()) == 0
        assert alignment_error_rate({(0, 0)}, {(0, 0)}, {(5, 5)}) == 0  # what is sure is possible, said or not

    def test_many_pairs_are_counted_together(self):
        found, sure = [{(0, 0)}, {(0, 0), (1, 0), (2, 0)}], [{(0, 0)}, {(0, 1)}]
        assert alignment_error_rate(found, sure) == 1 - (1 + 1) / (4 + 2)
        with pytest.raises(ShapeError, match="found has 2, sure has 1, possible has 1"):
            alignment_error_rate(found, sure[:1])


class TestPharaoh:
    def test_there_and_back(self):
        gold = from_pharaoh("0-0 1p2 3?4 2-1\n")
        assert gold.sure == {(0, 0), (2, 1)}
        assert gold.possible == {(0, 0), (2, 1), (1, 2), (3, 4)}
        assert as_pharaoh(gold.sure) == "0-0 2-1"
        assert from_pharaoh("1-1 2p3", first=1) == ({(0, 0)}, {(0, 0), (1, 2)})

    def test_files(self, tmp_path):
        path = tmp_path / "gold.txt"
        path.write_text("0-0 1-1\n\n2p3\n", encoding="utf-8")
        assert read_pharaoh(path) == [({(0, 0), (1, 1)}, {(0, 0), (1, 1)}), (set(), set()), (set(), {(2, 3)})]

    @pytest.mark.parametrize(
        ("text", "first", "message"),
        [
            (b"0-0\n1-2 3~4\n", 0, r'gold\.txt, line 2: "3~4" is no link; a link is "0-1"'),
            (b"1-1\n\n0-3\n", 1, r'gold\.txt, line 3: "0-3" has a word 0, and words are counted from 1 here'),
            (b"\xff\xfe\x00", 0, r"gold\.txt is not text"),
        ],
    )
    def test_errors_name_the_line(self, tmp_path, text, first, message):
        (tmp_path / "gold.txt").write_bytes(text)
        with pytest.raises(FileError, match=message):
            read_pharaoh(tmp_path / "gold.txt", first=first)

    def test_other_errors(self, tmp_path):
        with pytest.raises(FileError, match=r"none\.txt cannot be read: No such file"):
            read_pharaoh(tmp_path / "none.txt")
        with pytest.raises(OptionError, match="first is 2"):
            from_pharaoh("0-0", first=2)


@pytest.mark.skipif(not GOLD.exists(), reason="the hand-aligned sentences are not here")
@pytest.mark.parametrize(("name", "rate"), [("zhen", 13.3), ("enfr", 4.1), ("roen", 20.7), ("jaen", 37.4)])
def test_a_known_aligner_has_its_known_error_rate(name, rate):
    """The links of a published aligner on hand-aligned pairs, whose error rate is known."""
    with lzma.open(GOLD / f"{name}.tsv.xz", "rt", encoding="utf-8") as lines:
        pairs = [line.rstrip("\n").split("\t") for line in list(lines)[1:]]
    gold = [from_pharaoh(pair[2], first=1) for pair in pairs]
    found = [from_pharaoh(pair[3]).sure for pair in pairs]
    error = alignment_error_rate(found, [pair.sure for pair in gold], [pair.possible for pair in gold])
    assert round(100 * error, 1) == rate
