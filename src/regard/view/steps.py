"""The steps of attention in a terminal, as a page to follow with a finger."""

# N words, H heads, A width of a query, key and value of one head (d_k)

import math

import numpy as np
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.style import Style
from rich.text import Text

from ..explain import Numbers, Steps
from .blocks import FAINT, ROW_LABEL, STRONG, Block, Drawing, Paper, beside, grid, left_out
from .labels import label
from .terminal import MOST, figures, render_bars, render_numbers, render_table

__all__ = ["render"]

WIDEST = 100  # cells of a heading or a sentence; longer lines are hard to follow
MAPS = 4  # heads whose weights are drawn
TERMS = 6  # products of a sum that are written out
WORKED_GAP = 2  # cells between the columns of the row that is worked out
HEADING = Style(bold=True, color="cyan")

Chapter = tuple[str, str, *tuple[RenderableType, ...]]  # a heading, what happens, and the numbers


def render(steps: Steps, source: str = "") -> Group:
    """All steps, from the words' vectors to the mixed values. `source`: the file that the vectors came from."""
    chapters = [_vectors(steps, source), _projections(steps), _products(steps)]
    chapters += [_mask(steps)] if steps.mask == "causal" else []
    chapters += [_softmax(steps), _weights(steps), _mixture(steps), _bars(steps)]
    formula = Text("attention(Q, K, V) = softmax(Q·Kᵀ / √d_k) · V", STRONG)
    parts: list[RenderableType] = [Text.assemble(formula, ("   (rounded in print only)", FAINT))]
    for number, (heading, sentence, *drawings) in enumerate(chapters, 1):
        parts += ["", _heading(number, heading), Constrain(Text(sentence), WIDEST), *drawings]
    return Group(*parts)


def _heading(number: int, heading: str) -> Drawing:
    def draw(paper: Paper) -> list[Block]:
        line = f"{number}  {heading} "
        return [[Text.assemble((line, HEADING), ("─" * (min(paper.width, WIDEST) - cell_len(line)), FAINT))]]

    return Drawing(draw)


def _vectors(steps: Steps, source: str) -> Chapter:
    width = steps.vectors.shape[1]
    drawn = f"drawn from seed {steps.seed}; a word has the same ones wherever it stands."
    loaded = f"from {label(source, 40)}."
    sentence = f"{width} {'number' if width == 1 else 'numbers'} a word, {loaded if source else drawn}"
    table = render_numbers(steps.vectors, steps.words, title="X", digits=_decimals(steps.vectors))
    return "Each word is a vector", sentence, table


def _projections(steps: Steps) -> Chapter:
    sentence = (
        "Q = X·W_Q: what a word looks for. K = X·W_K: what it can be found by. V = X·W_V: what it passes on. "
        "A model learns the matrices; here they are drawn from the seed."
    )
    if steps.heads > 1:
        sentence += f" Each of the {steps.heads} heads has matrices of its own; head 1 is followed here."
    matrices = (("W_Q", steps.W_Q), ("W_K", steps.W_K), ("W_V", steps.W_V))
    products = (("Q", steps.Q), ("K", steps.K), ("V", steps.V))
    return (
        "From each vector: a query, a key and a value", sentence,
        beside(*(render_numbers(W[0], title=name, digits=_decimals(W)) for name, W in matrices)), "",
        beside(*(render_numbers(table[0], steps.words, title=f"{name} = X·W_{name}") for name, table in products)), "",
        _sum_of_products(f"The first number of Q for {_word(steps)}", steps.vectors[steps.row], steps.W_Q[0, :, 0]),
    )  # fmt: skip


def _products(steps: Steps) -> Chapter:
    root = f"√{steps.d_k} = {math.sqrt(steps.d_k):.4g}"
    sentence = (
        "The score of a row's query and a column's key: multiplied number by number and added up. A sum of more "
        f"numbers spreads wider; dividing by √d_k = {root} takes that out again."
    )
    tables = ((steps.products, "Q·Kᵀ"), (steps.scaled, f"Q·Kᵀ / {math.sqrt(steps.d_k):.4g}"))
    drawings = (render_numbers(table[0], steps.words, steps.words, title=title) for table, title in tables)
    return "Each query meets each key", sentence, beside(*drawings)


def _mask(steps: Steps) -> Chapter:
    sentence = (
        "Words that come later get −inf for a score, whatever it was: e to the power of −inf is 0, a weight of 0."
    )
    return "No word looks ahead", sentence, render_numbers(steps.masked[0], steps.words, steps.words, title="masked")


def _softmax(steps: Steps) -> Chapter:
    sentence = (
        f"The row of {_word(steps)}, worked out. e to the power of each score s, less the row's largest one: that "
        "changes no weight, and nothing can overflow. Each over their sum is the weight."
    )
    return "Softmax makes weights of scores", sentence, Drawing(lambda paper: [_worked(steps, paper)])


def _weights(steps: Steps) -> Chapter:
    sentence = "A row is how one word shares out its attention; it adds up to 1."
    if steps.heads > MAPS:
        sentence += f" The first {MAPS} of {steps.heads} heads are shown."
    full = float(steps.weights.max())
    titles = [f"head {head + 1}" for head in range(steps.heads)] if steps.heads > 1 else [""]
    maps = (
        render_table(table, steps.words, title=title, full=full)
        for table, title in zip(steps.weights[:MAPS], titles, strict=False)
    )
    return "The weights: the row's word looks at the column's", sentence, beside(*maps)


def _mixture(steps: Steps) -> Chapter:
    sentence = "The values of all words, added up by the row's weights: what each word has taken from the others."
    shares = [(weight, word) for weight, word in zip(steps.weights[0, steps.row], steps.words, strict=True) if weight]
    terms = [f"{weight:.3f}·V({label(word, ROW_LABEL)})" for weight, word in shares]
    example = Text(f"{_word(steps)} = {_elided(terms)}", overflow="fold")
    if steps.W_O is None:
        table = render_numbers(steps.output, steps.words, title="weights · V")
        return "The values, mixed", sentence, table, "", example
    sentence += " The heads' answers, side by side, are brought back to the width of X by one more matrix, W_O."
    tables = beside(
        render_numbers(steps.joined, steps.words, title="joined"),
        render_numbers(steps.W_O, title="W_O", digits=_decimals(steps.W_O)),
        render_numbers(steps.output, steps.words, title="output = joined · W_O"),
    )
    return "The values, mixed and joined", sentence, tables, "", example.append("  (head 1)")


def _bars(steps: Steps) -> Chapter:
    what = "The weights again" if steps.heads == 1 else f"The mean of the {steps.heads} heads"
    return "Who looks at whom", f"{what}, the highest first.", render_bars(steps.weights.mean(axis=0), steps.words)


def _worked(steps: Steps, paper: Paper) -> Block:
    """One row of the scores, from its products to its weights, a line a key."""
    size = min(len(steps.words), MOST)
    columns = _worked_columns(steps, size)
    sides = "l" + "r" * (len(columns) - 1)
    lines = [[*map(Text, line[:-1]), Text(line[-1], STRONG)] for line in zip(*columns, strict=True)]
    lines[0] = [Text(head.plain, FAINT) for head in lines[0]]
    room = paper.width - max(cell_len(line.plain) for line in grid(lines, sides, WORKED_GAP)) - WORKED_GAP
    sums = _aligned_sums(steps.Q[0, steps.row] * steps.K[0, :size], room)
    for line, total in zip(lines, [Text("q · k, number by number", FAINT), *map(Text, sums), Text()], strict=False):
        line.insert(1, total)
    return [*grid(lines, "l" + sides, WORKED_GAP), *left_out(len(steps.words) - size)]


def _worked_columns(steps: Steps, size: int) -> list[list[str]]:
    """The columns of the row that is worked out, its heading on top of each; with sums below where all is shown."""
    row, powers, weights = steps.row, steps.powers()[steps.row], steps.weights[0, steps.row]
    largest = _figures(steps.masked[0, row].max(keepdims=True))[0]
    columns = [
        ["", *(label(word, ROW_LABEL) for word in steps.words[:size])],
        ["q · k", *_figures(steps.products[0, row, :size])],
        [f"/ √{steps.d_k}", *_figures(steps.scaled[0, row, :size])],
        [f"e^(s - {largest})".replace("- -", "+ "), *_figures(powers[:size], 3)],
        [f"/ {powers.sum():.3f}", *_figures(weights[:size], 3)],
    ]
    if steps.mask == "causal":
        columns.insert(3, ["masked", *_figures(steps.masked[0, row, :size])])
    if size < len(steps.words):
        return columns
    sums = [*[""] * (len(columns) - 3), "sum", f"{powers.sum():.3f}", f"{weights.sum():.3f}"]
    return [[*column, total] for column, total in zip(columns, sums, strict=True)]


def _aligned_sums(products: Numbers, room: int) -> list[str]:
    """Each row's products as a sum, as many of them as have room, + below +.   (N, A) -> N lines"""
    texts, width = figures(np.abs(products), 2), products.shape[1]
    size = max(len(text) for row in texts for text in row)
    shown = width if width <= TERMS and width * (size + 3) <= room else min(width, TERMS, room // (size + 3) - 1)
    lines = []
    for row, signs in zip(texts, np.where(products < 0, "-", "+"), strict=True):
        first = f"{signs[0].replace('+', '')}{row[0]}".rjust(size + 1)
        others = [f"{signs[place]} {row[place]:>{size}}" for place in range(1, shown)]
        lines.append(" ".join([first, *others, *([] if shown == width else ["+ …"]), "="]))
    return lines


def _sum_of_products(what: str, one: Numbers, other: Numbers) -> Text:
    first, second = ([f"{number:.{_decimals(numbers)}f}" for number in numbers.tolist()] for numbers in (one, other))
    terms = [f"{a}·({b})" if b.startswith("-") else f"{a}·{b}" for a, b in zip(first, second, strict=True)]
    total = _figures(np.sum(one * other, keepdims=True))[0]
    return Text(f"{what} = {_elided(terms)} = {total}".replace("+ -", "- "), overflow="fold")


def _figures(numbers: Numbers, digits: int = 2) -> list[str]:
    return [text for (text,) in figures(numbers[:, None], digits)]


def _elided(terms: list[str]) -> str:
    return " + ".join(terms if len(terms) <= TERMS else [*terms[: TERMS - 1], "…"])


def _word(steps: Steps) -> str:
    """The word whose row is worked out, in quotation marks: it stands in sentences."""
    return f"“{label(steps.words[steps.row], ROW_LABEL)}”"


def _decimals(numbers: Numbers) -> int:
    """1 where that prints the numbers whole, else 2."""
    return 1 if np.array_equal(np.round(numbers, 1), numbers) else 2
