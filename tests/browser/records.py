"""Records to make pages of, each made once: small models of many families, and texts of all sorts."""

from dataclasses import replace
from functools import cache

import numpy as np
import torch

import regard
from regard.formula import masks, positions
from regard.record import Record, Tokens
from regard.see import load
from tests.view.page.pages import layer_of, map_of, record_of

SENTENCE = "The quick brown foxes jumped unbelievably over the lazy dog, and nobody was astonished."
LONG = 48  # tokens from which queries and keys are smaller than weights


@cache
def built_in() -> Record:
    """A sentence in the model that comes with the package."""
    return load().look(SENTENCE).record


@cache
def family(name: str, *, tokens: int = 9, padding: str = "none", half: bool = False) -> Record:
    """A model of random weights that reads a batch of nine tokens, or one text of more."""
    from tests.record.models import inputs_of, make

    quiet()
    model = make(name, "eager" if name in ("gpt_oss", "gemma2") else "sdpa")
    inputs = inputs_of(name, padding)
    if tokens != 9:
        ids = torch.randint(5, 100, (1, tokens), generator=torch.Generator().manual_seed(2))
        inputs = {side: ids[:, : tokens // 2] if "decoder" in side else ids for side in inputs}
    with torch.no_grad(), regard.watch(model.bfloat16() if half else model) as record:
        model(**inputs)
    return record


@cache
def pair() -> Record:
    """Two sentences in a BERT, the first of four tokens and the second of five."""
    from tests.record.models import inputs_of, make

    quiet()
    model, inputs = make("bert"), inputs_of("bert")
    with torch.no_grad(), regard.watch(model) as record:
        model(input_ids=inputs["input_ids"][:1], token_type_ids=torch.tensor([[0] * 4 + [1] * 5]))
    return record


@cache
def written() -> Record:
    """Nine tokens that a Llama was given, and those that it wrote."""
    from tests.record.models import inputs_of, make

    quiet()
    model = make("llama")
    with regard.watch(model) as record:
        model.generate(input_ids=inputs_of("llama")["input_ids"][:1], max_new_tokens=8, do_sample=False)
    return record


@cache
def pieces(tokens: int = LONG) -> Record:
    """A text whose words have one to three pieces."""
    texts = tuple(f"piece{place}" for place in range(tokens))
    begins = tuple(place % 6 not in (1, 4, 5) for place in range(tokens))
    return family("llama", tokens=tokens).labelled(Tokens(texts, begins))


@cache
def holes() -> Record:
    """A mask whose rows have holes, and a row that sees nothing."""
    allowed = np.random.default_rng(0).random((40, 40)) < 0.5
    allowed[7] = False
    return record_of(layer_of(map_of(mask=masks.given(allowed))), model="holes")


@cache
def alibi() -> Record:
    """A bias that grows with the distance."""
    return record_of(layer_of(map_of(bias=positions.alibi(2), mask=masks.causal())), model="alibi")


@cache
def long_text(tokens: int = 3000) -> Record:
    """A map that is larger than any screen; its overview is in the page."""
    texts = Tokens.of([f"w{place}" for place in range(tokens)])
    found = map_of(heads=1, queries=tokens, keys=tokens, width=4, mask=masks.causal())
    return record_of(layer_of(found, kind="decoder", queries=[texts], keys=[texts]), model="long")


def named(texts: list[str], *, model: str = "named") -> Record:
    """Tokens with texts of one's choice."""
    tokens = Tokens.of(texts)
    found = map_of(queries=len(texts), keys=len(texts))
    record = record_of(layer_of(found, queries=[tokens], keys=[tokens]), model=model)
    return Record([replace(record.run, model=model)])


def quiet() -> None:
    """Transformers warns of random weights through a log of its own."""
    import transformers

    transformers.logging.set_verbosity(50)
    transformers.logging.disable_progress_bar()
