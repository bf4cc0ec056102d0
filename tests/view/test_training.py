"""A training as it is shown: lines, and the curve at the end."""

import io
import math
from itertools import pairwise

import pytest
from rich.console import Console

from regard.view.loss_curve import MOST, Series, drawn
from regard.view.training import TrainingView

FALLING = [(step, 2 + 6 * math.exp(-step / 200)) for step in range(10, 1001, 10)]


def trained(*, terminal, encoding="utf-8"):
    """What is written in a training of 100 steps."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    view = TrainingView(Console(file=file, force_terminal=terminal, width=80, _environ={}))
    view.begin({"step": 0, "steps": 100, "folder": "runs"})
    for step in range(10, 101, 10):
        view.step({"step": step, "epoch": 0, "loss": 5 - step / 25, "tokens_per_second": 12345.6})
        if step % 50 == 0:
            view.evaluated({"step": step, "loss": 6 - step / 25, "accuracy": step / 200, "best": step == 50})
    view.end({"step": 100, "best": 1.0, "stopped": ""})
    return raw.getvalue().decode(encoding)


class TestView:
    def test_a_line_for_each_evaluation_and_nothing_else_without_a_terminal(self):
        assert trained(terminal=False).splitlines() == [
            "step 50  held-out loss 4.0000  accuracy 0.25  best",
            "step 100  held-out loss 2.0000  accuracy 0.5",
        ]

    def test_what_best_goes_by_where_it_is_not_the_loss(self):
        entry = {"step": 5, "loss": 1.0, "accuracy": 0.5, "best": True}
        for goal, end in (("loss", "accuracy 0.5  best"), ("accuracy", "accuracy 0.5  best accuracy")):
            file = io.StringIO()
            view = TrainingView(Console(file=file))
            view.begin({"step": 0, "steps": 10, "goal": goal})
            view.evaluated(entry)
            assert file.getvalue().rstrip("\n").endswith(end)

    def test_a_line_now_and_then_without_a_terminal(self):
        file, seconds = io.StringIO(), iter(range(0, 1000, 10))
        view = TrainingView(Console(file=file), clock=lambda: next(seconds))
        view.begin({"step": 40, "steps": 2000})
        for step in (41, 42, 43):
            view.step({"step": step, "loss": 2.5, "tokens_per_second": 100.0})
        assert file.getvalue().splitlines() == [
            "going on after step 40 of 2,000", "step 43 of 2,000  loss 2.500  100 tokens/s"
        ]  # fmt: skip

    def test_a_terminal_has_a_bar_and_the_curve(self):
        out = trained(terminal=True)
        assert "12,346 tokens/s" in out
        assert "loss 1.000" in out
        assert "training loss" in out
        assert "●" in out

    def test_a_terminal_without_unicode(self):
        out = trained(terminal=True, encoding="ascii")
        assert out.isascii()
        assert "o held-out loss" in out

    def test_a_loss_that_is_no_number_is_no_point(self):
        view = TrainingView(Console(file=io.StringIO(), force_terminal=True))
        view.begin({"step": 0, "steps": None})
        view.step({"step": 1, "loss": math.nan})
        view.evaluated({"step": 1, "loss": math.inf})
        view.end({"step": 1})
        view.stop()

    def test_names_cannot_act_on_the_terminal(self):
        file = io.StringIO()
        TrainingView(Console(file=file)).evaluated({"step": 1, "\x1b[2Jx": 1.0})
        assert "\x1b" not in file.getvalue()


class TestCurve:
    @pytest.mark.parametrize("unicode", [True, False])
    @pytest.mark.parametrize(("width", "height"), [(24, 3), (80, 12)])
    def test_it_fits(self, unicode, width, height):
        lines = [line.plain for line in drawn(FALLING, FALLING[::10], width=width, height=height, unicode=unicode)]
        assert len(lines) == height + 2
        assert all(len(line) == width for line in lines[: height + 1])
        assert all(line.isascii() for line in lines) != unicode

    def test_it_falls_as_the_losses_do(self):
        lines = [line.plain for line in drawn(FALLING, [], width=60, height=10, unicode=False)]
        rows = [[column for column, sign in enumerate(line) if sign == "." and column > 5] for line in lines[:10]]
        found = [row for row in rows if row]
        assert rows[0][0] == 6  # the highest is the first one: beside the edge
        assert rows[-1][-1] == 59  # and the lowest the last
        assert all(max(above) <= min(below) + 1 for above, below in pairwise(found))
        assert lines[0].startswith("7.71")
        assert lines[9].startswith("2.04")
        assert lines[10].endswith("step 1,000")

    @pytest.mark.parametrize("points", [[(1, 2.0)], [(1, 2.0), (5, 2.0)], [(3, 1.0), (3, 2.0)]])
    def test_points_without_extent(self, points):
        assert any("." in line.plain for line in drawn(points, [], width=40, height=4, unicode=False)[:4])

    def test_nothing_to_draw(self):
        assert drawn([], [], width=80, height=4, unicode=True) == []
        assert drawn(FALLING, [], width=20, height=4, unicode=True) == []


def test_a_long_training_keeps_few_points_that_mean_the_same():
    series = Series()
    for step in range(5 * MOST):
        series.add(step, float(step))
    assert MOST // 2 <= len(series.points) < MOST
    assert all(step == loss for step, loss in series.points)
    assert series.points == sorted(series.points)
    gaps = {later[0] - earlier[0] for earlier, later in pairwise(series.points)}
    assert gaps == {8.0}
