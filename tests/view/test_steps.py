import re

import numpy as np
import pytest

from regard.explain import explain
from regard.text.vectors import draw
from regard.view.steps import render

from .test_terminal import coloured, lines_of, printed
from .tokens import ALL, cells

WORDS = ["我", "喜欢", "学习", "AI", "技术"]


def steps_of(words=WORDS, **options):
    return explain(words, draw(words, 4), **options)


def chapter(output, heading):
    """The lines under a heading."""
    lines = lines_of(output)
    start = next(place for place, line in enumerate(lines) if heading in line)
    end = next((place for place in range(start + 1, len(lines)) if line_opens(lines[place])), len(lines))
    return lines[start + 1 : end]


def line_opens(line):
    return re.match(r"\d  .*──", line) is not None


def test_two_screens():
    assert len(lines_of(printed(render(steps_of()), width=100))) <= 90


def test_all_steps_are_there_in_order():
    headings = [line for line in lines_of(printed(render(steps_of(mask="causal")))) if line_opens(line)]
    assert [heading[0] for heading in headings] == list("12345678")
    words = ("vector", "query", "meets", "ahead", "Softmax", "weights", "mixed", "looks at whom")
    assert all(word in heading for word, heading in zip(words, headings, strict=True))


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_the_worked_row_can_be_followed(mask):
    steps = steps_of(mask=mask)
    rows = [line for line in chapter(printed(render(steps)), "Softmax") if " = " in line]
    assert len(rows) == 5
    for key, line in enumerate(rows):
        terms, rest = line.split(" = ")
        numbers = [float(number) for number in rest.replace("-inf", "nan").split()]
        signed = [float(term.replace(" ", "")) for term in re.findall(r"[-+]? ?\d+\.\d\d", terms)]
        assert np.allclose(signed, steps.Q[0, 2] * steps.K[0, key], atol=0.0051)
        assert sum(signed) == pytest.approx(steps.products[0, 2, key], abs=0.021)
        expected = [steps.products[0, 2, key], steps.scaled[0, 2, key]]
        expected += [steps.masked[0, 2, key] if key <= 2 else np.nan] if mask == "causal" else []
        expected += [steps.powers()[2, key], steps.weights[0, 2, key]]
        assert np.allclose(numbers, expected, atol=0.0051, equal_nan=True)


def test_tables_show_the_steps():
    steps = steps_of()
    shown = chapter(printed(render(steps)), "meets")
    rows = [
        [float(number) for number in re.findall(r"-?\d\.\d\d", line)] for line in shown if line.startswith(tuple(WORDS))
    ]
    assert np.allclose(np.array(rows)[:, :5], steps.products[0], atol=0.0051)
    assert np.allclose(np.array(rows)[:, 5:], steps.scaled[0], atol=0.0051)


def test_heads():
    output = printed(render(steps_of(heads=2)), width=140)
    titles = " ".join(chapter(output, "The weights:"))
    assert "head 1" in titles
    assert "head 2" in titles
    joined = "\n".join(chapter(output, "joined"))
    assert "W_O" in joined
    assert "output = joined" in joined
    assert "mean of the 2 heads" in output


def test_many_heads_are_cut():
    output = printed(render(steps_of(heads=9, d_k=1)))
    assert "first 4 of 9 heads" in output
    assert "head 4" in output
    assert "head 5" not in output


@pytest.mark.parametrize("size", [1, 2, 13, 200])
def test_any_number_of_words(size):
    words = [f"word{place}" for place in range(size)]
    lines = lines_of(printed(render(steps_of(words))))
    assert len(lines) < 180
    assert any("more row" in line for line in lines) == (size > 12)


@pytest.mark.parametrize("show", [printed, coloured])
@pytest.mark.parametrize("width", [30, 80, 100, 140])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_nothing_runs_over_the_edge(show, width, mask):
    for words in (WORDS, ALL):
        output = show(render(steps_of(words, mask=mask, heads=2), "folder/file\x1b[1m.txt"), width=width)
        assert max(map(cells, lines_of(output))) <= width
        assert "\x1b[1m.txt" not in output


def test_the_words_of_a_sentence_cannot_be_markup():
    assert "“[bold]”" in printed(render(steps_of(["[bold]"])))


def test_large_and_wide_vectors():
    vectors = np.random.default_rng(0).normal(size=(3, 300)) * 1e6
    lines = lines_of(printed(render(explain(["a", "b", "c"], vectors), "large.txt"), width=80))
    assert "300 numbers a word, from large.txt." in lines
    assert any("more columns" in line for line in lines)
    assert max(map(cells, lines)) <= 80
