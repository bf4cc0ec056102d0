"""The translator: its options, its tied matrices, and decoding that keeps each source once."""

import copy
from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from regard.errors import DtypeError, OptionError, ShapeError
from regard.model import Translator, TranslatorConfig, TranslatorStepper
from regard.model.decoding import Limits, Sampling, beam, greedy, sample
from regard.record.watching import watch

V, B, S, PAD, END, START = 13, 7, 9, 0, 1, 2
SMALL = TranslatorConfig(
    vocabulary=V, width=16, heads=4, key_heads=2, depth=2, decoder_depth=2, hidden=32, dropout=0.0, longest=40
)
LIMITS = Limits(end=END, longest=12, shortest=1, forbidden=(PAD,))
OPTIONS = {
    "rotary": {},
    "learned": {"positions": "learned"},
    "vaswani": {"positions": "sinusoidal", "norm_first": False, "key_heads": None},
    "modern": {"norm": "rms", "activation": "swiglu", "bias": False, "decoder_hidden": 8},
    "two vocabularies": {"target_vocabulary": V, "vocabulary": 11},
    "untied": {"tied": False},
}


def made(**options):
    """A model whose guesses are far apart, so that decoding takes turns."""
    model = Translator(replace(SMALL, **options)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2:
                weight.mul_(6 if "embedding" in name or name == "output.weight" else 2)
    return model


def sources(count=B):
    lengths = [S, 4, S, 2, 6, S, 1][:count]
    ids = torch.randint(2, 11, (count, S), generator=torch.Generator().manual_seed(3))
    mask = torch.arange(S) < torch.tensor(lengths)[:, None]
    return ids.masked_fill(~mask, PAD), mask


class Uncached:
    """state: the source, its mask and all tokens so far, read anew at each step and for each beam."""

    def __init__(self, model):
        self.model = model

    def begin(self, source, mask):
        return source, mask, torch.zeros(len(source), 0, dtype=torch.int64)

    def step(self, tokens, state):
        source, mask, ids = state
        ids = torch.cat((ids, tokens[:, None]), dim=1)
        return self.model(source, ids, mask)[:, -1], (source, mask, ids)

    def reorder(self, state, index):
        return tuple(part[index] for part in state)


DECODES = {
    "greedy": lambda *given: [[one] for one in greedy(*given)],
    "beam": lambda *given: beam(*given, width=4, n_best=3),
    "sample": lambda *given: [[o] for o in sample(*given, Sampling(), generator=torch.Generator().manual_seed(0))],
}


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("decode", DECODES.values(), ids=DECODES)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_from_a_cache_that_keeps_each_source_once_as_without_one(options, decode):
    model, start = made(**options), torch.full((B,), START)
    cached, uncached = TranslatorStepper(model), Uncached(model)
    found = decode(cached, cached.begin(*sources()), start, LIMITS)
    expected = decode(uncached, uncached.begin(*sources()), start, LIMITS)
    assert [[one.tokens for one in row] for row in found] == [[one.tokens for one in row] for row in expected]
    for row, same in zip(found, expected, strict=True):
        assert [one.score for one in row] == pytest.approx([one.score for one in same], abs=1e-5)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_a_batch_as_one_by_one(name):
    model, (ids, mask) = made(), sources()
    stepper, longest = TranslatorStepper(model), (12, 3, 9, 5, 12, 7, 2)
    limits = replace(LIMITS, longest=longest)
    together = DECODES[name](stepper, stepper.begin(ids, mask), torch.full((B,), START), limits)
    assert len({len(row[0].tokens) for row in together}) > 2
    for row in range(B):
        source = ids[row : row + 1, : int(mask[row].sum())]
        alone = DECODES[name](
            stepper, stepper.begin(source), torch.tensor([START]), replace(limits, longest=longest[row])
        )
        assert [one.tokens for one in alone[0]] == [one.tokens for one in together[row]]
        assert [one.score for one in alone[0]] == pytest.approx([one.score for one in together[row]], abs=1e-5)


@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_longest_lengths_must_be_as_many_as_rows(name):
    stepper = TranslatorStepper(made())
    with pytest.raises(ShapeError, match="there are 3 longest lengths and 7 rows"):
        DECODES[name](stepper, stepper.begin(*sources()), torch.full((B,), START), replace(LIMITS, longest=(4, 5, 6)))
    with pytest.raises(OptionError, match=r"longest is \(\)"):
        replace(LIMITS, longest=())


def test_a_source_is_kept_once_and_leaves_when_nobody_reads_it():
    model, kept = made(), []
    stepper = TranslatorStepper(model)

    class Seen:
        def step(self, tokens, state):
            logits, state = stepper.step(tokens, state)
            kept.append((len(tokens), len(state.cache.blocks[0].source.kept()[0])))
            return logits, state

        reorder = staticmethod(stepper.reorder)

    beam(Seen(), stepper.begin(*sources()), torch.full((B,), START), replace(LIMITS, longest=(20, 2, 2, 2, 2, 2, 20)))
    assert max(rows for rows, _ in kept) == 4 * B
    assert max(count for _, count in kept) == B
    assert kept[-1][1] == 2


@pytest.mark.usefixtures("float64")
def test_padding_changes_nothing():
    model, (ids, mask) = made(), sources()
    target = torch.randint(2, V, (B, 5))
    padded = model(ids, target, mask)
    for row in range(B):
        alone = model(ids[row : row + 1, : int(mask[row].sum())], target[row : row + 1])
        torch.testing.assert_close(padded[row : row + 1], alone)
    shorter = model(ids, target[:, :3], mask)
    torch.testing.assert_close(padded[:, :3], shorter)  # so a target that is padded behind needs no mask


def test_a_mask_that_hides_nothing_is_none():
    model, (ids, mask) = made(), sources()
    assert model.encode(ids, torch.ones_like(mask)).mask is None
    assert model.encode(ids, mask).mask.shape == (B, 1, 1, S)


def test_matrices_are_shared_where_the_vocabulary_is():
    def matrices(**options):
        model = Translator(replace(SMALL, **options))
        return [name for name, weight in model.named_parameters() if V in weight.shape]

    assert matrices() == ["embedding.weight"]
    assert matrices(vocabulary=11, target_vocabulary=V) == ["target_embedding.weight"]
    assert matrices(tied=False) == ["embedding.weight", "output.weight"]
    assert matrices(vocabulary=11, target_vocabulary=V, tied=False) == ["target_embedding.weight", "output.weight"]


@pytest.mark.parametrize("depth", [2, 24])
def test_a_deep_encoder_begins_as_a_shallow_one(depth):
    model = Translator(replace(SMALL, width=64, key_heads=None, hidden=256, depth=depth))
    x = torch.randn(8, 20, 64)
    with torch.no_grad():
        for block in model.encoder.blocks:
            x = block(x)
    assert 1.0 < float(x.std()) < 1.7  # 1 came in, and all parts together add about as much


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_saved_and_loaded(tmp_path, options):
    model, (ids, mask) = made(**options), sources()
    model.save(tmp_path)
    again = Translator.load(tmp_path)
    assert again.config == model.config
    target = torch.randint(2, 11, (B, 4))
    assert torch.equal(again(ids, target, mask), model(ids, target, mask))


def test_a_copy_and_an_asked_model_can_be_trained():
    model, (ids, mask) = made(), sources()
    with torch.inference_mode():
        before = model(ids, ids, mask)
    for one in (model, copy.deepcopy(model)):
        after = one(ids, ids, mask)
        after.sum().backward()
        assert torch.equal(after, before)
        assert one.embedding.weight.grad is not None
    assert not [name for name in model.state_dict() if "rotary" in name or "angles" in name]


def test_it_learns_to_reverse():
    """64 strings of digits, to be written backwards, by greedy decoding."""
    model = Translator(
        TranslatorConfig(vocabulary=V, width=64, heads=4, depth=2, decoder_depth=1, hidden=128, dropout=0.0, longest=16)
    )
    digits = torch.randint(3, V, (64, 4))
    ends, starts = torch.full((64, 1), END), torch.full((64, 1), START)
    source, target = torch.cat((digits, ends), 1), torch.cat((digits.flip(1), ends), 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    slower = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, 250)
    for _ in range(250):
        logits = model(source, torch.cat((starts, target[:, :-1]), 1))
        optimizer.zero_grad()
        functional.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
        optimizer.step()
        slower.step()
    stepper = TranslatorStepper(model.eval())
    found = greedy(stepper, stepper.begin(source), starts[:, 0], Limits(end=END, longest=10))
    right = [one.tokens == tuple(row) for one, row in zip(found, digits.flip(1).tolist(), strict=True)]
    assert sum(right) / len(right) >= 0.99


def test_three_kinds_of_layers_are_seen():
    model, (ids, mask) = made(), sources()
    with watch(model) as record:
        model(ids, ids[:, :5], mask)
    assert [layer.kind for layer in record.layers] == ["encoder"] * 2 + ["decoder", "cross"] * 2
    assert record.of_kind("cross")[0].weights().shape == (4, 5, S)
    assert record.item(1).of_kind("cross")[0].weights()[..., 4:].max() == 0


def test_greedy_decoding_can_be_watched():
    model, (ids, mask) = made(), sources(2)
    stepper = TranslatorStepper(model)
    with watch(model) as record, torch.no_grad():
        found = greedy(stepper, stepper.begin(ids, mask), torch.full((2,), START), Limits(end=None, longest=4))
    assert len(found[0].tokens) == 4
    assert record.of_kind("cross")[0].weights().shape == (4, 4, S)


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
@pytest.mark.parametrize("options", [OPTIONS["rotary"], OPTIONS["vaswani"]], ids=["rotary", "sinusoidal"])
def test_training_is_one_graph(options):
    model, (ids, mask) = made(**options, depth=1, decoder_depth=1).train(), sources()
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")(ids, ids, mask)
    torch.testing.assert_close(compiled, model(ids, ids, mask))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda model: model(torch.ones(2, 3), torch.ones(2, 3).long()), DtypeError, "source has dtype torch.float32"),
        (lambda model: model(torch.full((2, 3), V), torch.ones(2, 3).long()), OptionError, "source holds 13"),
        (lambda model: model(torch.ones(2, 3).long(), torch.full((2, 3), -1)), OptionError, "target holds -1"),
        (lambda model: model(torch.ones(1, 41).long(), torch.ones(1, 2).long()), ShapeError, "reaches 41 tokens"),
        (lambda model: model(torch.ones(2, 3).long(), torch.ones(1, 3).long()), ShapeError, "first axis, batch"),
        (lambda model: model.encode(torch.ones(2, 3).long(), torch.ones(2, 3)), DtypeError, "boolean"),
        (lambda model: model.encode(torch.ones(2, 3).long(), torch.ones(2, 4).bool()), ShapeError, r"\(2, 4\)"),
    ],
)
def test_wrong_input_is_told(call, error, says):
    with pytest.raises(error, match=says):
        call(Translator(SMALL).eval())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"positions": "absolute"}, "positions is 'absolute'"),
        ({"decoder_depth": 0}, "decoder_depth is 0"),
        ({"target_vocabulary": 0}, "target_vocabulary is 0"),
        ({"target_tokenizer": "ab"}, "a shared vocabulary has one"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"decoder_hidden": 0}, "hidden is 0"),
    ],
)
def test_a_config_is_checked(options, says):
    with pytest.raises(OptionError, match=says):
        replace(SMALL, **options)
