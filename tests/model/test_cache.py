"""The key-value cache by itself: what it keeps, how it grows, how it is reordered."""

import pytest
import torch

from regard.errors import DtypeError, ShapeError
from regard.formula import masks
from regard.model import BlockConfig, Decoder, KeyValueCache, MultiHeadAttention

B, G, D = 3, 2, 4


def tokens(n, batch=B):
    return torch.randn(batch, G, n, D), torch.randn(batch, G, n, D)


def test_what_was_appended_comes_back_in_order():
    cache, parts = KeyValueCache(), [tokens(n) for n in (3, 1, 0, 1, 5, 1)]
    for number, part in enumerate(parts):
        keys, values = cache.append(*part)
        so_far = parts[: number + 1]
        assert torch.equal(keys, torch.cat([key for key, _ in so_far], dim=2))
        assert torch.equal(values, torch.cat([value for _, value in so_far], dim=2))
        assert cache.length == keys.shape[2]
    assert all(torch.equal(*pair) for pair in zip(cache.kept(), (keys, values), strict=True))


@torch.no_grad()
def test_room_grows_by_doubling():
    cache, places, copied = KeyValueCache(), [], 0
    for length in range(500):
        keys, _ = cache.append(*tokens(1))
        if not places or keys.data_ptr() != places[-1]:
            places.append(keys.data_ptr())
            copied += length
    assert len(places) <= 11  # 1, 2, 4 .. 512
    assert copied <= 2 * 500


def test_earlier_answers_stay_as_they_were():
    cache = KeyValueCache()
    cache.append(*tokens(3))
    cache.append(*tokens(1))
    keys, values = cache.append(*tokens(1))
    before = keys.clone(), values.clone()
    cache.append(*tokens(1))
    assert torch.equal(keys, before[0])
    assert torch.equal(values, before[1])


def test_the_first_tokens_are_not_written_into():
    first, cache = tokens(2), KeyValueCache()
    copies = [part.clone() for part in first]
    cache.append(*first)
    cache.append(*tokens(1))
    assert all(torch.equal(*pair) for pair in zip(first, copies, strict=True))


@pytest.mark.parametrize("index", [[2, 0, 0], [1], [0, 1, 2, 2, 1]])
def test_reorder_and_go_on(index):
    cache, index = KeyValueCache(), torch.tensor(index)
    cache.append(*tokens(2))
    keys, values = cache.append(*tokens(1))
    expected = keys[index].clone(), values[index].clone()
    cache.reorder(index)
    assert all(torch.equal(*pair) for pair in zip(cache.kept(), expected, strict=True))
    longer, _ = cache.append(*tokens(1, batch=len(index)))
    assert torch.equal(longer[:, :, :3], expected[0])


def test_an_empty_cache_may_be_reordered_and_not_read():
    cache = KeyValueCache()
    cache.reorder(torch.tensor([0]))
    with pytest.raises(ShapeError, match="the cache is empty"):
        cache.kept()


def test_gradients_pass_where_they_are_followed():
    cache, (key, value) = KeyValueCache(), tokens(2)
    key.requires_grad_()
    cache.append(key, value)
    cache.append(*tokens(1))
    keys, _ = cache.append(*tokens(1))
    keys.square().sum().backward()
    torch.testing.assert_close(key.grad, 2 * key.detach())


@pytest.mark.parametrize("shape", [(B, G, D), (B + 1, G, 1, D), (B, G + 1, 1, D), (B, G, 1, D + 1)])
def test_tokens_that_do_not_continue_are_refused(shape):
    cache = KeyValueCache()
    cache.append(*tokens(2))
    with pytest.raises(ShapeError) as caught:
        cache.append(torch.zeros(shape), torch.zeros(shape))
    assert str(shape) in str(caught.value)
    assert cache.length == 2


def test_keys_and_values_must_be_of_the_same_tokens():
    with pytest.raises(ShapeError, match=r"key \(3, 2, 1, 4\), value \(3, 2, 2, 4\)"):
        KeyValueCache().append(tokens(1)[0], tokens(2)[1])


@pytest.mark.parametrize("index", [[0, 1], torch.tensor([0.0]), torch.tensor([[0]]), torch.tensor([True])])
def test_an_index_is_a_tensor_of_whole_numbers(index):
    with pytest.raises(DtypeError, match="index is"):
        KeyValueCache().reorder(index)


def test_a_step_that_is_refused_leaves_the_cache_as_it_was():
    decoder = Decoder(BlockConfig(width=8, heads=2), 2).double().eval()
    x, source = torch.randn(1, 4, 8, dtype=torch.float64), torch.randn(1, 7, 8, dtype=torch.float64)
    wrong = {"cross_mask": torch.ones(7, 7, dtype=torch.bool)}, {"source": source[..., :5]}, {"source": source[:, :3]}
    with torch.no_grad():
        cache = decoder.new_cache()
        decoder(x[:, :3], source, cache=cache)
        for options in wrong:
            with pytest.raises(ShapeError):
                decoder(x[:, 3:], **({"source": source} | options), cache=cache)
        torch.testing.assert_close(decoder(x[:, 3:], source, cache=cache), decoder(x, source)[:, 3:])


def test_gradients_of_queries_alone_go_through_a_cache():
    attention, cache = MultiHeadAttention(8, 2), KeyValueCache()
    for frozen in (attention.to_key, attention.to_value):
        frozen.requires_grad_(False)
    x = torch.randn(1, 6, 8)
    steps = torch.cat([attention(x[:, step : step + 1], cache=cache) for step in range(6)], dim=1)
    gradient = torch.autograd.grad(steps.sum(), attention.to_query.weight)[0]
    whole = torch.autograd.grad(attention(x, mask=masks.causal()).sum(), attention.to_query.weight)[0]
    torch.testing.assert_close(gradient, whole)


def test_a_cache_goes_on_as_it_was_begun():
    attention, cache, x = MultiHeadAttention(8, 2), KeyValueCache(), torch.randn(1, 3, 8)
    with torch.inference_mode():
        attention(x[:, :2], cache=cache)
    with torch.no_grad():
        step = attention(x[:, 2:], cache=cache)
    torch.testing.assert_close(step, attention(x, mask=masks.causal())[:, 2:])
    with pytest.raises(DtypeError, match=r"torch\.float64 .*keeps torch\.float32"):
        attention.double()(x[:, 2:].double(), cache=cache)


def test_reordering_by_an_item_that_is_not_there():
    cache = KeyValueCache()
    cache.append(*tokens(2))
    for wrong in ([0, 5, 1], [-1, 0, 1]):
        with pytest.raises(ShapeError, match="keeps 3 items, 0 to 2"):
            cache.reorder(torch.tensor(wrong))
