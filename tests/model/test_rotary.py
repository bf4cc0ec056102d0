"""Tables of angles: the same numbers to the bit, shared by a stack, and nobody's state."""

import copy
import pickle

import pytest
import torch

from regard.formula import masks, positions
from regard.model import BlockConfig, Encoder, MultiHeadAttention, Rotary

E, H, D = 32, 2, 16


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rotary", [Rotary(), Rotary(width=8, interleaved=True, base=500.0)], ids=["plain", "partial"])
def test_the_table_turns_as_the_formula_does(rotary, dtype):
    layer = MultiHeadAttention(E, H, rotary=rotary)
    for start, tokens in ((0, 5), (5, 1), (60, 9), (69, 1), (0, 300), (1, 2)):  # growing, and going back
        x = torch.randn(2, H, tokens, D).to(dtype)
        expected = positions.rotary(
            x, torch.arange(start, start + tokens), width=rotary.width, base=rotary.base,
            interleaved=rotary.interleaved,
        )  # fmt: skip
        turned, same = layer._turned(x, x, start)
        assert torch.equal(turned, expected)
        assert torch.equal(same, expected)


def test_a_stack_has_one_table_that_grows_by_doubling(monkeypatch):
    made = []
    angles = positions.angles
    monkeypatch.setattr(positions, "angles", lambda places, *rest: made.append(len(places)) or angles(places, *rest))
    encoder = Encoder(BlockConfig(width=E, heads=H, rotary=Rotary()), 3)
    cache = encoder.new_cache()
    with torch.no_grad():
        for _ in range(150):
            encoder(torch.randn(1, 1, E), mask=masks.causal(), cache=cache)
    assert made == [64, 128, 256]


def test_a_table_is_no_part_of_what_is_copied_or_saved():
    encoder = Encoder(BlockConfig(width=E, heads=H, rotary=Rotary()), 1)
    names, x = list(encoder.state_dict()), torch.randn(1, 7, E)
    with torch.inference_mode():
        before = encoder(x)
    assert list(encoder.state_dict()) == names
    assert encoder.config.rotary.angles._tables
    assert encoder.config.rotary == Rotary()
    for again in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        assert not again.config.rotary.angles._tables
        assert torch.equal(again(x), before)
    encoder(x).sum().backward()  # with a table that was made in inference mode
