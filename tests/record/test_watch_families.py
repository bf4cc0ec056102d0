"""Watching Hugging Face models: the same outputs to the bit, and the weights that eager attention would show."""

# B batch, H heads, Q queries, K keys

import pytest
import torch

import regard
from regard.errors import WatchError
from regard.formula.masks.mask import Given
from regard.formula.masks.places import Causal, Ranges

pytest.importorskip("transformers")

from .models import ENCODER_DECODERS, inputs_of, make

TEXT = ("bert", "albert", "gpt2", "llama", "mistral", "gemma2", "gpt_oss", "t5", "marian", "doge")
DECODERS = ("gpt2", "llama", "mistral", "gemma2", "gpt_oss", "doge")
MISSING = (("gemma2", "sdpa"), ("gpt_oss", "sdpa"))  # what these families have no code for
KINDS = {"encoder_attentions": "encoder", "decoder_attentions": "decoder", "cross_attentions": "cross"}


def tensors(outputs):
    """All tensors of what a model returns, in their order."""
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    values = outputs.values() if hasattr(outputs, "values") else outputs if isinstance(outputs, (tuple, list)) else ()
    return [tensor for value in values for tensor in tensors(value)]


def assert_same(one, other):
    one, other = tensors(one), tensors(other)
    assert len(one) == len(other) > 0
    for mine, theirs in zip(one, other, strict=True):
        assert torch.equal(mine, theirs)


def watched(model, inputs, **options):
    """The record of a run whose outputs are proved to be those of a run that nobody watches."""
    with torch.no_grad():
        plain = model(**inputs)
        with regard.watch(model, **options) as record:
            seen = model(**inputs)
    assert_same(plain, seen)
    return record


def eager_maps(name, inputs):
    """What the model itself shows of its attention, by kind of layer: (B, H, Q, K) for each layer."""
    model = make(name, "eager")
    with torch.no_grad():
        outputs = model(**inputs, output_attentions=True)
    parts = [outputs.text_model_output, outputs.vision_model_output] if name == "clip" else [outputs]
    if "attentions" in parts[0]:
        return {None: [found for part in parts for found in part.attentions]}
    return {kind: outputs[field] for field, kind in KINDS.items()}


def assert_equals_eager(record, name, inputs, *, rows=None):
    """rows (B, Q): which queries are looked at, where those of padding are not the same in every implementation."""
    for kind, maps in eager_maps(name, inputs).items():
        layers = record.layers if kind is None else record.of_kind(kind)
        assert len(layers) == len(maps) > 0
        for layer, expected in zip(layers, maps, strict=True):
            for item in range(len(expected)):
                own = slice(None) if rows is None or kind in ("decoder", "cross") else rows[item]
                found = layer.weights(item=item)[:, own]
                torch.testing.assert_close(found, expected[item][:, own, : found.shape[-1]], rtol=0, atol=1e-5)


@pytest.mark.parametrize("padding", ["none", "right", "left"])
@pytest.mark.parametrize("name", TEXT)
def test_eager_text(name, padding):
    inputs = inputs_of(name, padding)
    assert_equals_eager(watched(make(name, "eager"), inputs), name, inputs)


@pytest.mark.parametrize("padding", ["none", "right", "left"])
@pytest.mark.parametrize("name", [name for name in TEXT if (name, "sdpa") not in MISSING])
def test_sdpa_text(name, padding):
    inputs = inputs_of(name, padding)
    rows = inputs["attention_mask"].bool() if padding == "left" else None
    assert_equals_eager(watched(make(name), inputs), name, inputs, rows=rows)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["vit", "whisper", "clip"])
def test_pictures_and_sounds(name, attention):
    inputs = inputs_of(name)
    assert_equals_eager(watched(make(name, attention), inputs), name, inputs)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_packed(attention):
    inputs = inputs_of("llama") | {"position_ids": torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]]).expand(2, -1)}
    inputs["use_cache"] = False
    record = watched(make("llama", attention), inputs)
    assert_equals_eager(record, "llama", inputs)
    assert record.layers[0].weights()[:, 4:, :4].max() == 0


@pytest.mark.parametrize("padding", ["none", "right", "left"])
@pytest.mark.parametrize(
    ("name", "attention"),
    [(name, way) for name in TEXT for way in ("sdpa", "eager") if name != "doge" and (name, way) not in MISSING],
)
def test_masks_are_kept_by_their_structure(name, attention, padding):
    record = watched(make(name, attention), inputs_of(name, padding))
    for layer in record.layers:
        for made in layer.maps:
            assert made.mask is None or isinstance(made.mask, (Causal, Ranges))
            assert not hasattr(made.bias, "numbers") or made.bias.numbers.ndim == 2


def test_a_mask_with_holes_is_kept_as_it_is():
    inputs = inputs_of("bert") | {"attention_mask": torch.ones(2, 9, dtype=torch.long)}
    inputs["attention_mask"][1, 3:5] = 0
    record = watched(make("bert"), inputs)
    assert isinstance(record.layers[0].maps[1].mask, Given)
    assert_equals_eager(record, "bert", inputs)


def test_a_hole_and_rows_without_a_key():
    """Left padding and a hole in one batch: eager looks at all keys alike where it may look at none."""
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[0, 4], mask[1, :3] = 0, 0
    inputs = inputs_of("llama") | {"attention_mask": mask}
    assert_equals_eager(watched(make("llama", "eager"), inputs), "llama", inputs)


def test_rows_without_a_key_have_no_bias_either():
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])
    inputs = inputs_of("t5") | {"decoder_attention_mask": mask}
    record = watched(make("t5", "eager"), inputs)
    assert_equals_eager(record, "t5", inputs)
    assert torch.allclose(record.of_kind("decoder")[0].weights(item=1)[:, :2], torch.tensor(1 / 5))


def test_a_sink_takes_rows_without_a_key():
    record = watched(make("gpt_oss", "eager"), inputs_of("gpt_oss", "left"))
    assert record.layers[0].weights(item=1)[:, :3].max() == 0
    assert record.layers[0].weights(item=1)[:, 3:].sum(-1).min() > 0


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("bert", ["encoder"] * 2), ("gpt2", ["decoder"] * 2), ("albert", ["encoder"] * 3),
        ("marian", ["encoder"] * 2 + ["decoder", "cross"] * 2), ("t5", ["encoder"] * 2 + ["decoder", "cross"] * 2),
        ("whisper", ["encoder"] * 2 + ["decoder", "cross"] * 2), ("vit", ["encoder"] * 2),
        ("clip", ["decoder"] * 2 + ["encoder"] * 2),
    ],
)  # fmt: skip
def test_kinds(name, kinds):
    record = watched(make(name), inputs_of(name))
    assert [layer.kind for layer in record.layers] == kinds
    assert [layer.index for layer in record.layers] == list(range(len(kinds)))


def test_a_layer_that_serves_three_times_is_three_layers():
    names = [layer.name for layer in watched(make("albert"), inputs_of("albert")).layers]
    shared = "encoder.albert_layer_groups.0.albert_layers.0.attention"
    assert names == [shared, f"{shared} (turn 2)", f"{shared} (turn 3)"]


def test_grouped_heads_stay_grouped():
    made = watched(make("llama"), inputs_of("llama")).layers[0].map
    assert (made.queries.shape[0], made.keys.shape[0]) == (4, 2)


@pytest.mark.parametrize("name", ["bert", "llama", "marian"])
def test_layers_of_choice(name):
    model, inputs = make(name), inputs_of(name)
    whole = watched(model, inputs)
    chosen = watched(model, inputs, layers=[1, whole.layers[0].name])
    assert [layer.index for layer in chosen.layers] == [0, 1]
    assert torch.equal(chosen.layers[1].weights(), whole.layers[1].weights())


def test_heads_of_choice():
    model, inputs = make("llama"), inputs_of("llama", "left")
    whole, some = watched(model, inputs), watched(model, inputs, heads=[3, 0])
    assert torch.equal(some.layers[1].weights(item=1), whole.layers[1].weights(item=1)[[3, 0]])
    assert [head.index for head in some.layers[0].heads] == [3, 0]


@pytest.mark.parametrize("name", DECODERS)
def test_a_step_with_a_cache_that_was_filled_before(name):
    model, inputs = make(name, "eager"), inputs_of(name)
    ids = inputs["input_ids"]
    with torch.no_grad():
        cache = model(ids[:, :6], use_cache=True).past_key_values
        with regard.watch(model) as record:
            model(ids[:, 6:], past_key_values=cache)
        maps = model(ids, output_attentions=True).attentions
    for layer, expected in zip(record.layers, maps, strict=True):
        keys = layer.shape[-1]
        torch.testing.assert_close(layer.weights(item=1), expected[1][:, 6:, -keys:], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["bloom", "ibert"])
def test_a_family_that_computes_it_by_itself_is_refused(name):
    model = make(name, "eager")
    with (
        torch.no_grad(),
        pytest.raises(WatchError, match=rf"^{name}: attention could not be seen: .*Attention \(the first is .*\)"),
        regard.watch(model),
    ):
        model(**inputs_of(name))


def test_a_family_that_is_seen_in_part_is_refused_or_taken_in_part():
    model, inputs = make("longt5", "eager"), inputs_of("longt5")
    with (
        torch.no_grad(),
        pytest.raises(WatchError, match=r"^longt5: 2 of 6 attention layers could not be seen: LongT5LocalAttention"),
        regard.watch(model),
    ):
        model(**inputs)
    record = watched(model, inputs, strict=False)
    assert [layer.kind for layer in record.layers] == ["decoder", "cross"] * 2


def test_encoder_decoders_know_both_texts():
    for name in ENCODER_DECODERS:
        inputs = inputs_of(name)
        cross = watched(make(name), inputs).of_kind("cross")[0]
        assert cross.queries[1].texts == tuple(f"#{number}" for number in inputs["decoder_input_ids"][1].tolist())
        assert cross.keys[1].texts == tuple(f"#{number}" for number in inputs["input_ids"][1].tolist())
