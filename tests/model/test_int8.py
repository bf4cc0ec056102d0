"""Translators in 8 bits: near the model they were made of, the same choices, and the same to rounding without them."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from regard.errors import NotANumber, OptionError, ShapeError
from regard.model import Translator, TranslatorConfig, TranslatorStepper
from regard.model.decoding import Limits, beam, greedy
from regard.model.int8 import available, linear, quantised
from regard.model.int8.encoder import TOKENS, pieces

V, S, PAD, END, START = 40, 9, 0, 1, 2
SMALL = TranslatorConfig(vocabulary=V, width=32, heads=4, depth=3, decoder_depth=2, hidden=64, dropout=0.0, longest=80)
OPTIONS = {
    "rotary": {},
    "learned": {"positions": "learned", "activation": "gelu"},
    "vaswani": {"positions": "sinusoidal", "norm_first": False},
    "modern": {"norm": "rms", "activation": "swiglu", "bias": False, "decoder_hidden": 16, "key_heads": 2},
    "two vocabularies": {"target_vocabulary": 33, "key_heads": 1},
    "untied": {"tied": False},
}
needs_kernels = pytest.mark.skipif(not available(), reason="this build of PyTorch has no 8-bit kernels")


@pytest.fixture
def without_kernels(monkeypatch):
    monkeypatch.setattr(linear, "available", lambda: False)


def made(**options):
    """A model whose guesses are far apart, so that decoding takes turns."""
    model = Translator(replace(SMALL, **options)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2:
                weight.mul_(4 if "embedding" in name or name == "output.weight" else 1.5)
            elif "bias" in name:
                weight.normal_(std=0.1)
    return model


def sources():
    lengths = torch.tensor([S, 4, S, 2, 6, S, 1])
    ids = torch.randint(3, 33, (len(lengths), S), generator=torch.Generator().manual_seed(3))
    mask = torch.arange(S) < lengths[:, None]
    return ids.masked_fill(~mask, PAD), mask


@torch.no_grad()
def both(model, mask=True):
    """Logits of the model and of its copy in 8 bits, step by step, while rows are copied, reordered and dropped."""
    ids, padding = sources()
    given = (ids, padding) if mask else (ids,)
    plain, quick = TranslatorStepper(model), quantised(model)
    states = {plain: plain.begin(*given), quick: quick.begin(*given)}
    moves = {1: [0, 0, 1, 2, 2, 2, 3, 4, 5, 6], 3: [0, 0, 2, 1, 4, 6, 6, 7, 8, 9], 5: [9, 1, 0], 6: [2, 2, 1]}
    tokens = torch.full((len(ids),), START)
    for step in range(8):
        found = {}
        for stepper, state in states.items():
            found[stepper], states[stepper] = stepper.step(tokens, state)
        yield found[plain], found[quick]
        tokens = found[plain].argmax(dim=-1)
        if step in moves:
            index = torch.tensor(moves[step])
            states = {stepper: stepper.reorder(state, index) for stepper, state in states.items()}
            tokens = tokens[index]


@needs_kernels
@pytest.mark.parametrize("name", OPTIONS)
def test_logits_are_within_a_few_hundredths(name):
    for plain, quick in both(made(**OPTIONS[name])):
        assert 0 < (quick - plain).norm() / plain.norm() < 0.05


@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("name", OPTIONS)
def test_without_the_kernels_logits_are_the_models(name, mask, without_kernels):
    for plain, quick in both(made(**OPTIONS[name]), mask):
        torch.testing.assert_close(quick, plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", OPTIONS)
def test_without_the_kernels_decoding_is_the_models(name, without_kernels):
    """Longer than the first room, and rows end at differing steps."""
    model = made(**OPTIONS[name])
    plain, quick = TranslatorStepper(model), quantised(model)
    ids, mask = sources()
    start, limits = torch.full((len(ids),), START), Limits(end=END, longest=70, shortest=1)
    for decode in (greedy, lambda *given: [texts[0] for texts in beam(*given, width=3)]):
        found = decode(quick, quick.begin(ids, mask), start, limits)
        wanted = decode(plain, plain.begin(ids, mask), start, limits)
        assert [text.tokens for text in found] == [text.tokens for text in wanted]
        assert [text.score for text in found] == pytest.approx([text.score for text in wanted], rel=1e-4)


@pytest.fixture(scope="module")
def reversing():
    """A model that has learnt to say a text backwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Translator(replace(SMALL, vocabulary=10, width=48, depth=1, decoder_depth=1, hidden=96))
    optimiser, steps = torch.optim.AdamW(model.parameters(), lr=5e-3), 300
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(1, (step + 1) / 40) * (1 - step / steps))
    for _ in range(steps):
        source, mask, target = examples(32)
        begun = torch.cat((torch.full((32, 1), START), target[:, :-1]), dim=1)
        loss = functional.cross_entropy(model(source, begun, mask).flatten(0, 1), target.flatten(), ignore_index=PAD)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    torch.set_num_threads(threads)
    return model.eval()


def examples(count):
    """Texts, where they are texts, and the same backwards."""
    texts = [torch.randint(3, 10, (int(length),)) for length in torch.randint(2, 5, (count,))]
    end = torch.tensor([END])
    ids, backwards = (
        pad_sequence([torch.cat((text, end)) for text in rows], batch_first=True, padding_value=PAD)
        for rows in (texts, [text.flip(0) for text in texts])
    )
    return ids, ids != PAD, backwards


@needs_kernels
def test_a_trained_model_says_the_same_in_8_bits(reversing):
    ids, mask, target = examples(100)
    quick, plain = quantised(reversing), TranslatorStepper(reversing)
    start, limits = torch.full((100,), START), Limits(end=END, longest=10)
    found = [text.tokens for text in greedy(quick, quick.begin(ids, mask), start, limits)]
    assert found == [text.tokens for text in greedy(plain, plain.begin(ids, mask), start, limits)]
    right = [tuple(row[: row.index(END)]) for row in target.tolist()]
    assert sum(one == other for one, other in zip(found, right, strict=True)) >= 95
    by_beam = [texts[0].tokens for texts in beam(quick, quick.begin(ids, mask), start, limits)]
    assert sum(one == other for one, other in zip(by_beam, right, strict=True)) >= 95


def test_pieces_hold_every_token_once():
    mask = torch.rand(100, 200) < torch.rand(100, 1)
    mask[:, 7] = True
    found = list(pieces(mask))
    assert len(found) > 5
    assert torch.equal(torch.cat([piece.tokens for piece in found]).sort().values, mask.flatten().nonzero()[:, 0])
    assert all(len(piece.tokens) <= TOKENS for piece in found)
    assert all(sum(count * length for count, length in piece.runs) == len(piece.tokens) for piece in found)
    assert all(torch.equal(piece.places, piece.tokens % 200) for piece in found)


def test_a_source_longer_than_a_piece_is_read_alone():
    assert [piece.runs for piece in pieces(torch.ones(2, TOKENS + 1, dtype=torch.bool))] == [((1, TOKENS + 1),)] * 2


@pytest.mark.parametrize("name", ["rotary", "vaswani"])
def test_padding_may_be_anywhere(name, without_kernels):
    model = made(**OPTIONS[name])
    ids, _ = sources()
    mask = torch.rand(ids.shape) < 0.6
    mask[:, 4] = True
    quick, plain, tokens = quantised(model), TranslatorStepper(model), torch.full((len(ids),), START)
    with torch.no_grad():
        wanted, _ = plain.step(tokens, plain.begin(ids, mask))
    torch.testing.assert_close(quick.step(tokens, quick.begin(ids, mask))[0], wanted, rtol=1e-4, atol=1e-4)


def test_a_batch_read_in_pieces_is_as_one_by_one(without_kernels):
    model = made(longest=300)
    quick = quantised(model)
    ids = torch.randint(3, V, (12, 250))
    mask = torch.arange(250) < torch.randint(1, 251, (12, 1))
    logits, _ = quick.step(torch.full((12,), START), quick.begin(ids, mask))
    for row in range(12):
        alone, _ = quick.step(torch.tensor([START]), quick.begin(ids[row : row + 1], mask[row : row + 1]))
        torch.testing.assert_close(alone[0], logits[row], rtol=1e-4, atol=1e-4)


def test_the_engine_of_others_is_left_as_it_was():
    before = torch.backends.quantized.engine
    quantised(made())
    assert torch.backends.quantized.engine == before


def test_the_model_is_left_as_it_was():
    model = made()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    quick = quantised(model)
    quick.step(torch.tensor([START]), quick.begin(torch.tensor([[3, 4]])))
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def test_what_cannot_be_is_told():
    with pytest.raises(OptionError, match=r"torch.bfloat16 on cpu; 8 bits are made of float32"):
        quantised(made().bfloat16())
    broken = made()
    broken.encoder.blocks[0].attention.to_key.weight.data[0, 0] = torch.nan
    with pytest.raises(NotANumber, match=r"a matrix \(96, 32\) holds NaN"):
        quantised(broken)
    quick = quantised(made())
    with pytest.raises(ShapeError, match="source 1 has no token"):
        quick.begin(torch.tensor([[3], [0]]), torch.tensor([[True], [False]]))
    with pytest.raises(OptionError, match="source holds 40"):
        quick.begin(torch.tensor([[40]]))
    state = quick.begin(torch.tensor([[3]]))
    for _ in range(80):
        _, state = quick.step(torch.tensor([3]), state)
    with pytest.raises(ShapeError, match="target reaches 81 tokens"):
        quick.step(torch.tensor([3]), state)
