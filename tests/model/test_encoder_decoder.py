"""Blocks, encoder, decoder: built by hand, decoded step by step, and what they say to bad options."""

import copy
from dataclasses import FrozenInstanceError

import pytest
import torch

from regard.errors import OptionError, RegardError, ShapeError
from regard.formula import masks
from regard.model import (
    BlockCache,
    BlockConfig,
    Decoder,
    DecoderBlock,
    Encoder,
    EncoderBlock,
    EncoderDecoder,
    KeyValueCache,
    Rotary,
    StackCache,
)

pytestmark = pytest.mark.usefixtures("float64")
B, N, S, E, H = 2, 6, 5, 16, 4
CONFIGS = {
    "plain": BlockConfig(width=E, heads=H),
    "post-norm": BlockConfig(width=E, heads=H, norm_first=False, activation="gelu"),
    "modern": BlockConfig(
        width=E, heads=H, key_heads=2, hidden=20, activation="swiglu", norm="rms", bias=False, rotary=Rotary()
    ),
}


def same(one, other):
    torch.testing.assert_close(one, other, atol=1e-12, rtol=0)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("steps", [[1] * N, [3, 1, 2], [N]])
def test_decoding_with_a_cache_is_the_full_forward(config, steps):
    decoder, cache = Decoder(CONFIGS[config], 2, source_width=10), None
    x, source, hidden = torch.randn(B, N, E), torch.randn(B, S, 10), masks.padding([S, 2])
    whole, cache = decoder(x, source, cross_mask=hidden), decoder.new_cache()
    with torch.no_grad():
        parts = [decoder(part, source, cross_mask=hidden, cache=cache) for part in x.split(steps, dim=1)]
    same(torch.cat(parts, dim=1), whole)
    assert cache.length == N


@pytest.mark.parametrize("config", CONFIGS)
def test_an_encoder_reads_token_by_token_under_a_causal_mask(config):
    encoder, x = Encoder(CONFIGS[config], 2), torch.randn(B, N, E)
    cache = encoder.new_cache()
    with torch.no_grad():
        parts = [encoder(part, mask=masks.causal(), cache=cache) for part in x.split(1, dim=1)]
    same(torch.cat(parts, dim=1), encoder(x, mask=masks.causal()))


def test_gradients_flow_through_a_cache():
    decoder, x, source = Decoder(CONFIGS["modern"], 2), torch.randn(B, N, E), torch.randn(B, S, E)
    toward, cache = torch.randn(B, N, E), decoder.new_cache()
    parts = [decoder(part, source, cache=cache) for part in x.split(2, dim=1)]
    stepwise = torch.autograd.grad(torch.cat(parts, dim=1), list(decoder.parameters()), toward)
    whole = torch.autograd.grad(decoder(x, source), list(decoder.parameters()), toward)
    for one, other in zip(stepwise, whole, strict=True):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=1e-10)


def test_the_source_is_looked_at_once():
    decoder, cache, calls = Decoder(CONFIGS["plain"], 1), None, []
    decoder.blocks[0].cross_attention.to_key.register_forward_hook(lambda *_: calls.append(1))
    cache = decoder.new_cache()
    for _ in range(3):
        decoder(torch.randn(B, 1, E), torch.ones(B, S, E), cache=cache)
    assert len(calls) == 1


def test_beams_go_on_from_where_the_index_says():
    decoder, x, source = Decoder(CONFIGS["modern"], 2), torch.randn(3, N, E), torch.randn(3, S, E)
    index, cache = torch.tensor([2, 0, 2, 1]), decoder.new_cache()
    with torch.no_grad():
        decoder(x[:, :-1], source, cache=cache)
        cache.reorder(index)
        last = decoder(x[index, -1:], source[index], cache=cache)
        same(last, decoder(x[index], source[index])[:, -1:])


def test_a_decoder_is_causal_unless_told_otherwise():
    decoder, x, source = Decoder(CONFIGS["plain"], 2), torch.randn(B, N, E), torch.randn(B, S, E)
    later = torch.cat((x[:, :3], torch.randn(B, N - 3, E)), dim=1)
    same(decoder(x, source)[:, :3], decoder(later, source)[:, :3])
    assert not torch.allclose(decoder(x, source, mask=None)[:, :3], decoder(later, source, mask=None)[:, :3])


def test_masked_tokens_change_nothing():
    config = CONFIGS["modern"]
    model = EncoderDecoder(Encoder(config, 2), Decoder(config, 2))
    source, target, hidden = torch.randn(B, S, E), torch.randn(B, N, E), masks.padding([3, 3])
    other = torch.cat((source[:, :3], torch.randn(B, S - 3, E)), dim=1)
    one, two = (model(text, target, source_mask=hidden, cross_mask=hidden) for text in (source, other))
    same(one, two)
    assert not torch.allclose(model(source, target), model(other, target))


def test_encoder_decoder_of_two_widths():
    narrow = BlockConfig(width=8, heads=2)
    model = EncoderDecoder(Encoder(narrow, 1), Decoder(CONFIGS["plain"], 1, source_width=8))
    assert model(torch.randn(B, S, 8), torch.randn(B, N, E)).shape == (B, N, E)


@pytest.mark.parametrize("make", [lambda config: Encoder(config, 2), lambda config: Decoder(config, 2)])
def test_final_norm_follows_the_blocks_unless_given(make):
    assert make(CONFIGS["plain"]).norm is not None
    assert make(CONFIGS["post-norm"]).norm is None
    assert Encoder(CONFIGS["plain"], 1, final_norm=False).norm is None
    assert Decoder(CONFIGS["post-norm"], 1, final_norm=True).norm is not None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("config", CONFIGS)
def test_narrow_dtypes(config, dtype):
    wide = EncoderDecoder(Encoder(CONFIGS[config], 1), Decoder(CONFIGS[config], 1)).to(dtype).double()
    source, target = torch.randn(B, S, E).to(dtype), torch.randn(B, N, E).to(dtype)
    expected = wide(source.double(), target.double(), source_mask=masks.padding([5, 2]))
    found = copy.deepcopy(wide).to(dtype)(source, target, source_mask=masks.padding([5, 2]))
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), expected, atol=0.1 if dtype == torch.bfloat16 else 0.02, rtol=0)


def test_weights_have_readable_names():
    names = {name.rpartition(".")[0] for name in Decoder(CONFIGS["modern"], 1).state_dict()}
    attention = ("to_query", "to_key", "to_value", "output")
    assert names == {
        "norm",
        *(f"blocks.0.{norm}" for norm in ("attention_norm", "cross_norm", "feed_forward_norm")),
        *(f"blocks.0.{kind}.{part}" for kind in ("attention", "cross_attention") for part in attention),
        *(f"blocks.0.feed_forward.{part}" for part in ("to_hidden", "to_gated", "output")),
    }


def test_dropout_falls_in_training_alone():
    encoder, x = Encoder(BlockConfig(width=E, heads=H, dropout=0.5), 2), torch.randn(B, N, E)
    assert not torch.allclose(encoder(x), encoder(x))
    encoder.eval()
    assert torch.equal(encoder(x), encoder(x))


def test_each_item_and_token_has_draws_of_its_own():
    block = EncoderBlock(BlockConfig(width=E, heads=H, dropout=0.5))
    dropped = block._dropped(torch.ones(64, 8, E))
    assert dropped.shape == (64, 8, E)
    assert 0.45 < (dropped == 0).double().mean() < 0.55
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(dropped[0], dropped[1])


def test_a_config_is_frozen():
    with pytest.raises(FrozenInstanceError):
        CONFIGS["plain"].width = 3


def config(**changes):
    return BlockConfig(**({"width": E, "heads": H} | changes))


X = torch.zeros(B, N, E, dtype=torch.float64)
WRONG = {
    "heads": (lambda: config(heads=3), OptionError, "3 heads do not divide a width of 16"),
    "key heads": (lambda: config(key_heads=3), OptionError, "3 key heads cannot serve 4 heads"),
    "activation": (lambda: config(activation="tanh"), OptionError, "'tanh'; it must be one of 'relu', 'gelu'"),
    "norm": (lambda: config(norm="batch"), OptionError, "'batch'; it must be one of 'layer', 'rms'"),
    "eps": (lambda: config(eps=0), OptionError, "eps is 0"),
    "hidden": (lambda: config(hidden=-4), OptionError, "hidden is -4"),
    "dropout": (lambda: config(dropout=1), OptionError, "dropout is 1"),
    "rotary": (lambda: config(rotary=Rotary(width=6)), OptionError, "rotary width of 6 in heads of 4"),
    "depth": (lambda: Encoder(config(), 0), OptionError, "depth is 0"),
    "widths": (
        lambda: EncoderDecoder(Encoder(config(width=8), 1), Decoder(config(), 1)), OptionError, "source_width=8",
    ),
    "x": (lambda: EncoderBlock(config())(X[..., :3]), ShapeError, "(2, 6, 3); it must be (batch, tokens, 16)"),
    "rank": (lambda: Encoder(config(), 1)(X[0]), ShapeError, "(6, 16); it must be (batch, tokens, 16). For a single"),
    "source": (lambda: DecoderBlock(config())(X, X[..., :3]), ShapeError, "source has shape (2, 6, 3)"),
    "batches": (lambda: Decoder(config(), 1)(X, X[:1]), ShapeError, "x (2, 6, 16) and source (1, 6, 16)"),
    "cache depth": (lambda: Encoder(config(), 2)(X, cache=StackCache(3)), OptionError, "for 3 blocks and there are 2"),
    "cache kind": (lambda: Encoder(config(), 2)(X, cache=KeyValueCache()), OptionError, "KeyValueCache"),
    "cache of no blocks": (lambda: StackCache(0), OptionError, "depth is 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_options_and_input_are_answered_with_their_numbers(case):
    call, error, says = WRONG[case]
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, RegardError)
    assert says in str(caught.value)


def test_a_cache_of_another_source_is_refused():
    decoder, cache = Decoder(config(), 1), StackCache(1)
    decoder(X[:, :1], torch.ones(B, S, E), cache=cache)
    with pytest.raises(ShapeError, match=r"a source of 2 items and 5 tokens, and this one is \(2, 4, 16\)"):
        decoder(X[:, :1], torch.ones(B, 4, E), cache=cache)
    block, kept = DecoderBlock(config()), BlockCache()
    block(X, X, cache=kept)
    with pytest.raises(ShapeError, match=r"a source of 2 items and 6 tokens, and this one is \(1, 6, 16\)"):
        block(X[:1, :1], X[:1], cache=kept)
