"""The language model: its options, prompts of differing lengths, and decoding from a cache."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from regard.errors import OptionError, ShapeError
from regard.model import LanguageModel, LanguageModelConfig, LanguageModelStepper
from regard.model.decoding import Limits, Sampling, beam, greedy, sample
from regard.record.watching import watch

V, END = 13, 1
SMALL = LanguageModelConfig(vocabulary=V, width=16, heads=4, key_heads=2, depth=2, hidden=32, dropout=0.0, longest=40)
GPT2 = {"activation": "gelu", "norm": "layer", "bias": True, "positions": "learned", "key_heads": None}
OPTIONS = {"modern": {}, "GPT-2": GPT2, "sinusoidal": {"positions": "sinusoidal", "tied": False}}
PROMPTS = [[3, 4, 5, 6, 7], [8], [9, 2], [4, 4, 4, 4, 4], [5, 6, 7]]
LIMITS = Limits(end=END, longest=10, shortest=1, forbidden=(0,))
DECODES = {
    "greedy": lambda *given: [[one] for one in greedy(*given)],
    "beam": lambda *given: beam(*given, width=3, n_best=2),
    "sample": lambda *given: [[o] for o in sample(*given, Sampling(), generator=torch.Generator().manual_seed(0))],
}


def made(**options):
    """A model whose guesses are far apart, so that decoding takes turns."""
    model = LanguageModel(replace(SMALL, **options)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2:
                weight.mul_(6 if name in ("embedding.weight", "output.weight") else 2)
    return model


class Uncached:
    """state: for each row all tokens so far, read anew and alone at each step."""

    def __init__(self, model):
        self.model = model

    def step(self, tokens, state):
        state = [[*row, token] for row, token in zip(state, tokens.tolist(), strict=True)]
        return torch.cat([self.model(torch.tensor([row]))[:, -1] for row in state]), state

    def reorder(self, state, index):
        return [state[row] for row in index.tolist()]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("decode", DECODES.values(), ids=DECODES)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_prompts_of_any_length_from_a_cache_as_one_by_one_without(options, decode):
    model = made(**options)
    stepper = LanguageModelStepper(model)
    found = decode(stepper, *stepper.begin(PROMPTS), LIMITS)
    before = [prompt[:-1] for prompt in PROMPTS]
    expected = decode(Uncached(model), before, torch.tensor([prompt[-1] for prompt in PROMPTS]), LIMITS)
    assert [[one.tokens for one in row] for row in found] == [[one.tokens for one in row] for row in expected]
    for row, same in zip(found, expected, strict=True):
        assert [one.score for one in row] == pytest.approx([one.score for one in same], abs=1e-5)


def test_prompts_are_read_in_one_forward_without_a_mask_where_they_are_alike():
    model, calls = made(), []
    model.encoder.register_forward_hook(
        lambda module, given, named, out: calls.append((out.shape[1], type(named["mask"]).__name__)), with_kwargs=True
    )
    stepper = LanguageModelStepper(model)
    stepper.begin([[3, 4, 5], [6, 7, 8]])
    stepper.begin([[3, 4, 5], [6]])
    stepper.begin([[3], [4]])
    assert calls == [(2, "Causal"), (2, "Tensor")]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_in_parts_as_at_once(options):
    model, ids = made(**options), torch.randint(0, V, (3, 11))
    cache = model.new_cache()
    with torch.no_grad():
        parts = [model(part, cache) for part in ids.split([4, 1, 6], dim=1)]
        torch.testing.assert_close(torch.cat(parts, dim=1), model(ids))


def test_a_token_does_not_see_what_is_behind_it():
    model, ids = made(), torch.randint(0, V, (2, 8))
    other = torch.cat((ids[:, :5], (ids[:, 5:] + 1) % V), dim=1)
    torch.testing.assert_close(model(ids)[:, :5], model(other)[:, :5])
    assert not torch.allclose(model(ids)[:, 5:], model(other)[:, 5:])


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_saved_and_loaded(tmp_path, options):
    model, ids = made(**options), torch.randint(0, V, (2, 8))
    model.save(tmp_path)
    again = LanguageModel.load(tmp_path)
    assert again.config == model.config
    assert torch.equal(again(ids), model(ids))


def test_hidden_columns_may_be_dropped_at_a_rate_of_their_own():
    shape = {"vocabulary": 11, "width": 8, "heads": 2, "depth": 1, "dropout": 0.2}
    rates = [
        LanguageModel(LanguageModelConfig(**shape, hidden_dropout=rate)).encoder.blocks[0].feed_forward.dropout
        for rate in (None, 0.0, 0.5)
    ]
    assert rates == [0.2, 0.0, 0.5]
    with pytest.raises(OptionError, match=r"hidden_dropout is 1\.5"):
        LanguageModelConfig(**shape, hidden_dropout=1.5)


def test_gpt_2_is_a_choice_of_options():
    with torch.device("meta"):  # only its shape is looked at
        model = LanguageModel(
            LanguageModelConfig(vocabulary=50257, width=768, heads=12, depth=12, longest=1024, **GPT2)
        )
    block = 12 * 768**2 + 13 * 768  # four matrices of attention, eight of feed-forward, their biases and two norms
    assert (
        sum(weight.numel() for weight in model.parameters())
        == (50257 + 1024) * 768 + 12 * block + 2 * 768
        == 124_439_808
    )


def test_it_learns_by_heart():
    model = LanguageModel(LanguageModelConfig(vocabulary=V, width=64, heads=4, depth=2, hidden=128, dropout=0.0))
    texts = torch.cat((torch.randint(2, V, (64, 6)), torch.full((64, 1), END)), dim=1)
    texts[:, :3] = torch.cartesian_prod(*[torch.arange(2, 6)] * 3)  # three tokens say which text it is
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    slower = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, 250)
    for _ in range(250):
        optimizer.zero_grad()
        functional.cross_entropy(model(texts[:, :-1])[:, 2:].flatten(0, 1), texts[:, 3:].flatten()).backward()
        optimizer.step()
        slower.step()
    stepper = LanguageModelStepper(model.eval())
    found = greedy(stepper, *stepper.begin(texts[:, :3].tolist()), Limits(end=END, longest=10))
    right = [one.tokens == tuple(row) for one, row in zip(found, texts[:, 3:-1].tolist(), strict=True)]
    assert sum(right) / len(right) >= 0.99


def test_its_layers_are_seen():
    model = made()
    with watch(model) as record:
        model(torch.tensor([PROMPTS[0]]))
    assert len(record.layers) == 2
    weights = record.layers[1].weights()
    assert weights.shape == (4, 5, 5)
    assert not weights[:, 0, 1:].any()


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_training_is_one_graph(options):
    model, ids = made(**options, depth=1).train(), torch.randint(0, V, (2, 8))
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(model, fullgraph=True, backend="aot_eager")(ids), model(ids))


def test_wrong_input_is_told():
    model = made()
    with pytest.raises(OptionError, match="ids holds 13"):
        model(torch.tensor([[V]]))
    with pytest.raises(ShapeError, match=r"reaches 41 tokens .* at most 40"):
        model(torch.ones(1, 41).long())
    with pytest.raises(OptionError, match="a prompt without tokens"):
        LanguageModelStepper(model).begin([[3], []])
    with pytest.raises(OptionError, match="positions is 'none'"):
        replace(SMALL, positions="none")
