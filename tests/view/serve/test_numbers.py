"""What a server answers, against the dense map in float64."""

import os
from itertools import pairwise

import numpy as np
import pytest

import regard
from regard.formula import masks
from regard.view.serve import work
from tests.view.serve.served import HOSTILE, dense, record, serving, tokens

SIZE = 40


@pytest.fixture(scope="module", params=["memory", "disk", "disk, with sums"])
def served(request, tmp_path_factory):
    one = record(SIZE)
    if request.param != "memory":
        path = tmp_path_factory.mktemp("served") / "one.regard"
        one.save(path, lse=request.param == "disk, with sums")
        one = regard.open(path)
    with serving(one) as client:
        yield client, one


def units_of(size, unit):
    return list(range(size + 1)) if unit == "token" else tokens(size).word_edges


def cells_of(weights, unit, rows, cols, height, width):
    """The contract, word for word: the mean over the units of a cell of mean over query tokens, sum over key tokens."""
    row_units, col_units = (units_of(size, unit) for size in weights.shape)
    by_unit = np.array(
        [[weights[a:b, c:d].sum(1).mean() for c, d in pairwise(col_units)] for a, b in pairwise(row_units)]
    )
    edges = [
        [span[0] + (span[1] - span[0]) * cell // cells for cell in range(cells + 1)]
        for span, cells in ((rows, height), (cols, width))
    ]
    return np.array([[by_unit[a:b, c:d].mean() for c, d in pairwise(edges[1])] for a, b in pairwise(edges[0])])


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize(
    ("rows", "cols", "height", "width"),
    [((0, None), (0, None), 7, 5), ((3, 17), (2, 11), 4, 9), ((5, 6), (3, 4), 1, 1), ((2, 15), (0, None), 13, 3)],
)
def test_a_tile(served, unit, rows, cols, height, width):
    client, one = served
    count = len(units_of(SIZE, unit)) - 1
    rows, cols = ((first, count if last is None else last) for first, last in (rows, cols))
    for layer, head in ((0, 0), (1, 3)):
        reply = client.tile(
            layer=layer,
            head=head,
            unit=unit,
            rows=f"{rows[0]}:{rows[1]}",
            cols=f"{cols[0]}:{cols[1]}",
            height=height,
            width=width,
            step=1,
        )
        expected = cells_of(dense(one, layer, head), unit, rows, cols, height, width)
        assert reply.headers["X-Regard-Step"] == "1"
        np.testing.assert_allclose(reply.numbers.reshape(height, width), expected, rtol=2e-5, atol=2e-7)


def test_a_row_is_the_mean_of_some(served):
    client, one = served
    for asked, rows in (("7", [7]), ("1,5,6,39", [1, 5, 6, 39]), ("2,4:7", [2, 4, 5, 6])):
        reply = client.ask("/row", record=0, layer=1, head=2, rows=asked)
        np.testing.assert_allclose(reply.numbers, dense(one, 1, 2)[rows].mean(0), rtol=2e-5, atol=2e-7)


def test_a_column_is_the_sum_of_some(served):
    client, one = served
    for asked, cols in (("7", [7]), ("0,5,6,39", [0, 5, 6, 39])):
        reply = client.ask("/column", record=0, layer=1, head=2, cols=asked)
        np.testing.assert_allclose(reply.numbers, dense(one, 1, 2)[:, cols].sum(1), rtol=2e-5, atol=2e-7)
        part = client.ask("/column", record=0, layer=1, head=2, cols=asked, rows="9:20")
        np.testing.assert_allclose(part.numbers, reply.numbers[9:20], rtol=1e-6)


def test_a_rectangle(served):
    client, one = served
    reply = client.ask("/rectangle", record=0, layer=0, head=1, rows="3:9", cols="0:8")
    np.testing.assert_allclose(reply.numbers.reshape(6, 8), dense(one, 0, 1)[3:9, :8], rtol=2e-5, atol=2e-7)


def test_thumbnails_and_scores(served):
    client, one = served
    reply = client.ask("/thumbnails", record=0, layer=1)
    assert reply.headers["X-Regard-Shape"] == f"4,{SIZE},{SIZE}"
    np.testing.assert_allclose(reply.numbers.reshape(4, SIZE, SIZE)[2], dense(one, 1, 2), rtol=2e-5, atol=2e-7)
    scores = client.ask("/scores", record=0, layer=1).json
    weights = dense(one, 1, 2)
    assert scores["step"] == 1
    assert scores["entropy"][2] == pytest.approx(
        -(weights * np.log(np.where(weights > 0, weights, 1))).sum(1).mean(), rel=1e-4
    )
    assert scores["sink"][2] == pytest.approx(weights[:, 0].mean(), rel=1e-4)
    assert set(scores) == {"entropy", "distance", "sink", "induction", "previous_token", "step"}


def test_the_description_has_every_token_whatever_it_says(served):
    client, _ = served
    reply = client.ask("/description", record=0)
    told = reply.json
    assert (told["source"], told["record"], told["runs_text"], told["title"]) == ("served", 0, False, "by hand")
    assert told["tokens"][0]["texts"][: len(HOSTILE)] == list(HOSTILE)
    assert [layer["id"] for layer in told["layers"]] == [0, 1]
    assert reply.body.isascii()


def test_every_text_of_a_batch_has_layers_of_its_own():
    one, other = record(12), record(20)
    both = regard.record.Record([one.run, other.run])
    with serving(both) as client:
        assert [text["layers"] for text in client.ask("/description", record=0).json["texts"]] == [[0, 1], [2, 3]]
        reply = client.ask("/rectangle", record=0, layer=3, head=1, rows="0:20", cols="0:20")
        np.testing.assert_allclose(reply.numbers.reshape(20, 20), dense(other, 1, 1), rtol=2e-5, atol=2e-7)


def test_queries_and_keys_of_different_length():
    one = record(10, keys=25)
    with serving(one) as client:
        reply = client.tile(rows="0:10", cols="0:25", height=10, width=25, step=1)
        np.testing.assert_allclose(reply.numbers.reshape(10, 25), dense(one, 0, 0), rtol=2e-5, atol=2e-7)


# ---- long maps: some of the rows


@pytest.fixture
def little_work(monkeypatch):
    """A server that has time for 30 rows of 600 keys at first, and for 250 of them at most."""
    monkeypatch.setattr(work, "FIRST", 30 * 600 * 8)
    monkeypatch.setattr(work, "MOST", 250 * 600 * 8)


@pytest.fixture
def long(tmp_path):
    record(600, layers=1, mask=masks.causal()).save(tmp_path / "long.regard", lse=False)
    one = regard.open(tmp_path / "long.regard")
    with serving(one) as client:
        yield client, dense(one, 0, 0)


@pytest.mark.usefixtures("little_work")
def test_a_long_map_is_guessed_from_some_rows_and_refined(long):
    client, weights = long
    steps = []
    for asked in (0, 6, 1):
        reply = client.tile(rows="0:600", cols="0:600", height=10, width=10, step=asked)
        step = int(reply.headers["X-Regard-Step"])
        steps.append(step)
        rows = np.arange(step // 2, 600, step)
        expected = [
            [weights[rows[rows // 60 == cell]][:, 60 * col : 60 * col + 60].mean() for col in range(10)]
            for cell in range(10)
        ]
        np.testing.assert_allclose(reply.numbers.reshape(10, 10), expected, rtol=2e-5, atol=2e-7)
    assert steps == [27, 3, 3]  # 22 rows of 600, 200 of them; all 600 would be too many


@pytest.mark.usefixtures("little_work")
def test_a_part_of_a_long_map_is_exact(long):
    client, weights = long
    reply = client.tile(rows="300:550", cols="100:200", height=25, width=10, step=1)
    assert reply.headers["X-Regard-Step"] == "1"
    np.testing.assert_allclose(
        reply.numbers.reshape(25, 10),
        weights[300:550, 100:200].reshape(25, 10, 10, 10).mean((1, 3)),
        rtol=2e-5,
        atol=2e-7,
    )


@pytest.mark.usefixtures("little_work")
def test_more_cells_than_rows_that_are_looked_at_show_the_nearest(long):
    client, weights = long
    reply = client.tile(rows="0:600", cols="0:600", height=600, width=1, step=0)
    rows = np.arange(13, 600, 27)
    nearest = rows[np.abs(np.arange(600)[:, None] - rows).argmin(1)]
    np.testing.assert_allclose(reply.numbers, weights[nearest].mean(1), rtol=1e-5)


@pytest.mark.usefixtures("little_work")
def test_a_column_of_a_long_map_comes_in_parts(long):
    client, weights = long
    asked = {"record": 0, "layer": 0, "head": 0, "cols": "0"}
    reply = client.ask("/column", **asked)
    assert reply.status == 400
    assert "250 at a time" in reply.error
    parts = [client.ask("/column", **asked, rows=f"{first}:{first + 200}").numbers for first in (0, 200, 400)]
    np.testing.assert_allclose(np.concatenate(parts), weights[:, 0], rtol=2e-5, atol=2e-7)
    assert client.ask("/column", **asked).status == 200  # all rows are known now


def test_rows_of_a_coarse_step_are_among_those_of_a_finer_one():
    for rows in (range(0, 1000), range(123, 777)):
        chosen = [set(work.chosen_rows(rows, 3**power)) for power in range(6)]
        assert chosen[0] == set(rows)
        assert all(coarse and coarse < fine for fine, coarse in pairwise(chosen))


def test_thumbnails_of_a_long_map_are_guessed(tmp_path):
    record(2200, layers=1, heads=2).save(tmp_path / "long.regard", lse=False)
    with serving(regard.open(tmp_path / "long.regard")) as client:
        reply = client.ask("/thumbnails", record=0, layer=0)
        assert reply.headers["X-Regard-Shape"] == "2,48,48"
        assert int(reply.headers["X-Regard-Step"]) > 1
        assert client.ask("/scores", record=0, layer=0).json["step"] > 1


def test_a_file_that_was_cut_short_is_refused_not_read(tmp_path):
    file = tmp_path / "a.regard"
    record(400).save(file)
    with serving(regard.open(file)) as client:
        assert client.ask("/rectangle", record=0, layer=0, head=0, rows="0:2", cols="0:2").status == 200
        os.truncate(file, 5000)
        reply = client.ask("/rectangle", record=0, layer=1, head=3, rows="0:400", cols="0:400")
        assert reply.status == 409
        assert "cut short" in reply.error
        assert client.ask("/description", record=0).status == 200
