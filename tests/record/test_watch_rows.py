"""Where rows belong: texts that are padded, caches that were filled before, drafts that were taken back."""

# B batch, H heads, Q queries, K keys, D width

import copy

import pytest
import torch
from torch import nn
from torch.backends import mha
from torch.nn import functional

import regard
from regard.errors import OptionError, WatchError

pytest.importorskip("transformers")
from tests.record.models import inputs_of, make


class Plain(nn.Module):
    def forward(self, query, key, value, mask=None):
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)


@pytest.fixture(autouse=True)
def _same_numbers():
    torch.manual_seed(0)


def dense(query, key, mask=None):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    return torch.nan_to_num(scores.softmax(-1))


@pytest.mark.parametrize("shape", ["padded", "last row short", "turned round"])
def test_keys_that_only_earlier_rows_see_are_kept(shape):
    places = torch.arange(6)
    real = places < 4
    mask = {
        "padded": real[:, None] & real[None],
        "last row short": (places[:, None] < 5) | (places[None] < 2),
        "turned round": places[None] <= 5 - places[:, None],
    }[shape]
    query, model = torch.randn(1, 2, 6, 8), Plain()
    with regard.watch(model) as record:
        model(query, query, query, mask)
    assert record.layers[0].kind == "encoder"
    torch.testing.assert_close(record.layers[0].weights(), dense(query, query, mask)[0])


def test_a_batch_in_which_every_text_is_padded_is_whole():
    model, inputs = make("bert"), inputs_of("bert")
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    inputs["attention_mask"][:, 6:] = 0
    with torch.no_grad(), regard.watch(model) as record:
        model(**inputs)
    tokens = inputs["input_ids"].shape[1]
    assert {(layer.kind, layer.shape[1:]) for layer in record.layers} == {("encoder", (tokens, tokens))}


def test_two_calls_that_look_at_longer_texts_are_two_runs():
    model = Plain()
    given = [(torch.randn(1, 4, 3, 8), torch.randn(1, 4, 7, 8)) for _ in range(2)]
    with regard.watch(model) as record:
        for query, key in given:
            model(query, key, key)
    for run, (query, key) in zip(record.runs, given, strict=True):
        torch.testing.assert_close(run.layers[0].weights(), dense(query, key)[0])


def test_texts_that_go_on_from_a_cache_that_was_filled_before_are_runs_of_their_own():
    model = make("llama")
    one, other = torch.randint(5, 90, (1, 10)), torch.randint(5, 90, (1, 8))
    with torch.no_grad():
        cache = model(other[:, :5], use_cache=True).past_key_values
        with regard.watch(model) as record:
            model(one)
            for _ in range(2):
                model(other[:, 5:], past_key_values=copy.deepcopy(cache))
        model.set_attn_implementation("eager")
        whole = model(other, output_attentions=True).attentions
    assert [run.layers[0].shape[1:] for run in record.runs] == [(10, 10), (3, 8), (3, 8)]
    for run in record.runs[1:]:
        for layer, expected in zip(run.layers, whole, strict=True):
            torch.testing.assert_close(layer.weights(), expected[0][:, 5:], atol=1e-5, rtol=0)


def test_a_second_text_beside_the_one_that_is_written_is_a_run_of_its_own():
    model, prompt = make("llama"), torch.randint(5, 90, (1, 10))
    with torch.no_grad(), regard.watch(model) as record:
        text = model.generate(prompt, max_new_tokens=5, guidance_scale=1.5, do_sample=False, pad_token_id=0)
    rows = text.shape[1] - 1
    assert [run.layers[0].shape[1:] for run in record.runs] == [(rows, rows), (rows - 9, rows - 9)]


def test_drafts_that_were_not_taken_up_leave_no_rows():
    model = make("llama")
    for seed in range(8):
        torch.manual_seed(seed)
        prompt = torch.randint(5, 9, (1, 14))
        options = {"prompt_lookup_num_tokens": 4, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
        with torch.no_grad(), regard.watch(model) as record:
            text = model.generate(prompt, max_new_tokens=12, **options)
        rows = record.layers[0].shape[1]
        assert text.shape[1] - 1 <= rows <= text.shape[1]
        assert record.tokens == tuple(f"#{number}" for number in text[0, :rows].tolist())


@pytest.mark.parametrize(
    ("query", "mask"),
    [((3, 5, 8), (3, 5, 5)), ((2, 3, 4, 5, 8), (2, 1, 1, 5, 5)), ((2, 3, 4, 5, 8), (1, 3, 1, 5, 5)),
     ((2, 3, 4, 5, 8), (4, 5, 5)), ((3, 4, 5, 8), (1, 4, 5, 5))],
)  # fmt: skip
def test_masks_of_any_axes(query, mask):
    query, mask, model = torch.randn(query), torch.rand(mask) > 0.4, Plain()
    mask[..., 0] = True
    with regard.watch(model) as record:
        model(query, query, query, mask)
    found = torch.stack([record.layers[0].weights(item=item) for item in range(record.items)])
    torch.testing.assert_close(found.reshape(*query.shape[:-1], 5), dense(query, query, mask))


def test_keys_of_one_text_for_all_and_a_mask_for_each_head():
    query, key, mask, model = torch.randn(3, 4, 5, 8), torch.randn(1, 4, 5, 8), torch.rand(1, 4, 5, 5) > 0.4, Plain()
    mask[..., 0] = True
    with regard.watch(model, heads=[2]) as record:
        model(query, key.expand(3, -1, -1, -1), key.expand(3, -1, -1, -1), mask)
        model(query[:, :, :3], key, key, mask[:, :, :1])
    expected = dense(query, key, mask)[:, [2]], dense(query[:, :, :3], key, mask[:, :, :1])[:, [2]]
    for run, weights in zip(record.runs, expected, strict=True):
        torch.testing.assert_close(run.layers[0].weights(item=1), weights[1])


def test_a_block_whose_forward_is_compiled_is_refused():
    class Block(nn.Module):
        def forward(self, x):
            return functional.scaled_dot_product_attention(x, x, x)

    model = nn.Sequential(Block(), Block())
    model[0].forward = torch.compile(model[0].forward, backend="eager")
    with pytest.raises(WatchError, match="0 in the model is compiled"), regard.watch(model):
        pass
    shared = nn.Sequential(*[Block()] * 2)
    with regard.watch(shared) as record:
        shared(torch.randn(1, 2, 4, 8))
    assert [layer.name for layer in record.layers] == ["0", "0 (turn 2)"]
    with (
        pytest.raises(OptionError, match="one module for several layers"),
        regard.without(shared, heads=[record.layers[1].heads[0]]),
    ):
        pass


def test_ablations_that_overlap_leave_the_fast_path_as_it_was():
    one, other = (nn.MultiheadAttention(8, 2).eval() for _ in range(2))
    given, before = torch.randn(3, 1, 8), mha.get_fastpath_enabled()
    first, second = regard.without(one, [(0, 1)]), regard.without(other, [(0, 1)])
    with torch.no_grad():
        first.__enter__()
        one(given, given, given)
        second.__enter__()
        other(given, given, given)
    first.__exit__(None, None, None)
    assert mha.get_fastpath_enabled() is False
    second.__exit__(None, None, None)
    assert mha.get_fastpath_enabled() is before
