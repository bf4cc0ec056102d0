"""The card of a text encoder: README.md in its folder, every number of it measured by the recipe."""

import json
import math
from pathlib import Path
from typing import Any

import heads
from safetensors import safe_open
from scores import SHARE, Score

BEST = 4  # heads named for each measure

TEXT = """# The encoder that ships with Regard

It reads English and guesses masked words: {parameters:,} numbers, {depth} layers of {heads} heads, each {head} wide,
built of Regard's own layers (`regard.model.TextEncoder`) and small enough to be looked at whole. Width {width},
`{activation}` of {hidden}, `{norm}` norms before each part, rotary positions, one matrix for embedding and output.
Its {vocabulary:,} pieces are a byte-level BPE, so every text has pieces; languages other than English it can take
apart, but has hardly seen. It was made to show attention, not to know much: its only book was WikiText-2.

```python
import torch
from regard import models
from regard.model.text_encoder import TextEncoder
from regard.text.bpe import Tokenizer

folder = models.folder("encoder")
tokenizer, model = Tokenizer.load(folder), TextEncoder.load(folder)
text = tokenizer.encode("She opened the [MASK] and walked into the room.")
logits = model(torch.tensor([text.ids]))[0, text.ids.index(tokenizer.mask)]
print([tokenizer.piece(int(number)) for number in logits.topk(5).indices])
```

| file | what it is |
|---|---|
| `model.safetensors` | the weights, float16; `load` makes float32 of them |
| `config.json` | the shape |
| `tokenizer.json` | the pieces, as Hugging Face `tokenizers` writes them |
| `training.json` | the plan of the run, its curve, the machine |
| `measured.json` | what is told below, and every head's figures |

## Data and licence

WikiText-2, raw (Merity et al. 2016): articles of English Wikipedia, by its authors, under the Creative Commons
Attribution-ShareAlike licence, CC BY-SA 3.0. Headings were left out and the corpus's marks (` @-@ `, spaces before
commas) undone, so that it reads as people write. None of its text is in this package; the pieces of the vocabulary are.

## Scores

{share:.0%} of the pieces are hidden behind [MASK], in rows of {page} tokens; the same pieces for both guessers. A
perplexity here is per hidden piece of this vocabulary, so it does not compare with published ones per word.

| text | hidden pieces | perplexity | right at the first guess | perplexity by frequency alone | right so |
|---|---|---|---|---|---|
{scores}

Made by `python recipes/encoder.py --data wikitext2 --out encoder{options}`,
and measured anew with `--report`. The validation text chose the best moment of the run; the test text chose nothing.

Training: {training}

## Length

It was trained on single sentences and on pages of {pages} tokens. The validation text in rows of

| tokens | perplexity | right |
|---|---|---|
{lengths}

Twice its longest page still does well, twice that again is too far for its rotary positions. So `longest` in
`config.json` is {longest:,}, and a longer text is refused with the numbers.

## What its heads look at

Mean weight that a token gives, over {rows} rows of {length} tokens of the validation text, nothing hidden; 3.5 is head
5 of layer 3, both counted from 0. Beside it the same shape with weights just drawn. A token that has nowhere to look,
as one whose piece occurs only once in the row, is not counted.

| a token looks at | heads that do so most | untrained: highest head | mean of all heads, trained | untrained |
|---|---|---|---|---|
{looks}
"""


def card(out: Path) -> str:
    """The whole text, from config.json, training.json and measured.json of the folder."""
    shape, facts, measured = (read(out / f"{name}.json") for name in ("config", "training", "measured"))
    both = measured["heads"]
    return TEXT.format(
        **shape, parameters=parameters(out / "model.safetensors"), head=shape["width"] // shape["heads"],
        share=SHARE, page=facts["plan"]["pages"][0], options=options(facts["plan"]), training=training(facts),
        pages=" and ".join(map(str, facts["plan"]["pages"])), rows=heads.ROWS, length=heads.LENGTH,
        scores="\n".join(score_row(name, **scores) for name, scores in measured["scores"].items()),
        lengths="\n".join(length_row(int(length), Score(**one)) for length, one in measured["lengths"].items()),
        looks="\n".join(look_row(name, both["trained"][name], both["untrained"][name]) for name in heads.MEASURES),
    )  # fmt: skip


def parameters(path: Path) -> int:
    """How many numbers a file of weights holds."""
    with safe_open(path, "pt") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 (it is no dict)


def score_row(name: str, model: dict[str, Any], frequency: dict[str, Any]) -> str:
    """One text of the table of scores."""
    guessed, often = Score(**model), Score(**frequency)
    return (
        f"| {name} | {guessed.count:,} | {guessed.perplexity:.2f} | {guessed.accuracy:.1%} "
        f"| {often.perplexity:.0f} | {often.accuracy:.1%} |"
    )


def length_row(length: int, score: Score) -> str:
    """One length of the table of lengths."""
    return f"| {length:,} | {score.perplexity:.2f} | {score.accuracy:.1%} |"


def look_row(name: str, trained: list[list[float]], untrained: list[list[float]]) -> str:
    """One measure of the table of heads."""
    all_heads = [(mean, layer, head) for layer, means in enumerate(trained) for head, mean in enumerate(means)]
    drawn = [mean for means in untrained for mean in means]
    most = ", ".join(f"{layer}.{head} **{mean:.2f}**" for mean, layer, head in sorted(all_heads, reverse=True)[:BEST])
    mean = sum(mean for mean, *_ in all_heads) / len(all_heads)
    return f"| {heads.MEASURES[name]} | {most} | {max(drawn):.2f} | {mean:.3f} | {sum(drawn) / len(drawn):.3f} |"


def options(plan: dict[str, Any]) -> str:
    """The options that make this run, where they are not those it has anyway."""
    length = f" --steps {plan['steps']}" if plan["steps"] else f" --minutes {plan['minutes']:g}"
    return f"{length} --seed {plan['seed']} --dropout {plan['dropout']:g} --rate {plan['rate']:g}"


def training(facts: dict[str, Any]) -> str:
    """How long, on what."""
    run, plan = facts["run"], facts["plan"]
    best = min(run["curve"], key=lambda look: look[2])
    return (
        f"{run['step']:,} batches of about {plan['tokens']:,} tokens in {run['seconds'] / 60:.1f} minutes on one "
        f"{facts['device']} (PyTorch {facts['torch']});\nkept is the model of batch {best[0]:,}."
    )


def read(path: Path) -> dict[str, Any]:
    """A JSON object out of a file."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def write(path: Path, text: str) -> None:
    """A text into a file, under another name first."""
    written = path.with_suffix(".tmp")
    written.write_text(text, encoding="utf-8")
    written.replace(path)
