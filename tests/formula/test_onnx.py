"""The public ONNX node cases of Attention and RotaryEmbedding, through an adapter that only renames and reshapes."""

import warnings

import numpy as np
import onnx
import pytest

from regard.formula import attend, masks, positions, scores, weights

# The operator's own defaults, for attributes that a node leaves out
UNBOUNDED, NO_SOFTCAP = -1, 0.0


def collect(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the cases divides by zero on purpose
        from onnx.backend.test.case.node import collect_testcases

        cases = [case for case in collect_testcases(None) if case.model is not None]
    single = [case for case in cases if [node.op_type for node in case.model.graph.node] == [kind]]
    return {case.name: case for case in single}


ATTENTION, ROTARY = collect("Attention"), collect("RotaryEmbedding")


def named(case):
    """Inputs and expected outputs by their names, and the attributes."""
    (node,) = case.model.graph.node
    ((inputs, outputs),) = case.data_sets
    attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    return (
        dict(zip(filter(None, node.input), inputs, strict=True)),
        dict(zip(filter(None, node.output), outputs, strict=True)),
        attributes,
    )


def to_heads(array, heads):
    """(batch, tokens, heads·width) → (batch, heads, tokens, width)"""
    return array.reshape(*array.shape[:2], heads, -1).swapaxes(1, 2) if array.ndim == 3 else array


def shaping_of(inputs, attributes, shape):
    """is_causal, windows, lengths and attn_mask as one mask and one bias."""
    n_q, n_k = shape[-2:]
    lengths = inputs.get("nonpad_kv_seqlen")
    past = inputs["past_key"].shape[-2] if "past_key" in inputs else 0
    offset = past if lengths is None else lengths - n_q
    parts, bias = [], None
    if lengths is not None:
        parts.append(masks.padding(lengths))
    if attributes.get("is_causal"):
        parts.append(masks.causal(offset))
    window = [attributes.get(f"{side}_window_size", UNBOUNDED) for side in ("left", "right")]
    if window != [UNBOUNDED, UNBOUNDED]:
        parts.append(masks.window(*(None if size == UNBOUNDED else size for size in window), offset))
    given = inputs.get("attn_mask")
    if given is not None:
        missing = [(0, 0)] * (given.ndim - 1) + [(0, n_k - given.shape[-1])]
        if given.dtype == bool:
            parts.append(masks.given(np.pad(given, missing)))
        else:
            bias = np.pad(given, missing, constant_values=np.asarray(-np.inf, given.dtype))
    mask = None
    for part in parts:
        mask = part if mask is None else mask & part
    return mask, bias


def run_attention(case):
    inputs, expected, attributes = named(case)
    query = to_heads(inputs["Q"], attributes.get("q_num_heads"))
    key, value = (to_heads(inputs[name], attributes.get("kv_num_heads")) for name in "KV")
    outputs = {}
    if "past_key" in inputs:
        key = np.concatenate((inputs["past_key"], key), axis=-2)
        value = np.concatenate((inputs["past_value"], value), axis=-2)
        outputs |= {"present_key": key, "present_value": value}
    mask, bias = shaping_of(inputs, attributes, (*query.shape[:-1], key.shape[-2]))
    terms = {"scale": attributes.get("scale"), "softcap": attributes.get("softcap", NO_SOFTCAP) or None}
    answer = attend(query, key, value, mask, bias=bias, **terms)
    outputs["Y"] = answer if inputs["Q"].ndim == 4 else answer.swapaxes(1, 2).reshape(*inputs["Q"].shape[:2], -1)
    if "qk_matmul_output" in expected:
        outputs["qk_matmul_output"] = {
            0: lambda: scores(query, key, scale=terms["scale"]),
            1: lambda: scores(query, key, **terms),
            2: lambda: scores(query, key, mask, bias=bias, **terms),
            3: lambda: weights(query, key, mask, bias=bias, **terms),
        }[attributes.get("qk_matmul_output_mode", 0)]()
    return outputs, expected


def run_rotary(case):
    inputs, expected, attributes = named(case)
    x, cos, sin = inputs["input"], inputs["cos_cache"], inputs["sin_cache"]
    if "position_ids" in inputs:
        cos, sin = cos[inputs["position_ids"]], sin[inputs["position_ids"]]
    turned = positions.rotate(
        to_heads(x, attributes.get("num_heads")), cos, sin, interleaved=bool(attributes.get("interleaved"))
    )
    return {"output": turned if x.ndim == 4 else turned.swapaxes(1, 2).reshape(x.shape)}, expected


def check(outputs, expected, case):
    assert outputs.keys() == expected.keys()
    for name, exact in expected.items():
        # bfloat16 has 8 bits, float16 11, and the expected answers were computed in them: the last bit is open.
        rtol, atol = {"bfloat16": (2**-7, 2**-9), "float16": (2**-9, 2**-11)}.get(
            exact.dtype.name, (case.rtol, case.atol)
        )
        assert outputs[name].dtype == exact.dtype
        np.testing.assert_allclose(
            outputs[name].astype(np.float64), exact.astype(np.float64), rtol=rtol, atol=max(atol, 1e-6), err_msg=name
        )


def test_all_cases_are_here():
    assert len(ATTENTION) >= 93
    assert len(ROTARY) >= 8


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name):
    check(*run_attention(ATTENTION[name]), ATTENTION[name])


@pytest.mark.parametrize("name", ROTARY)
def test_rotary_embedding(name):
    check(*run_rotary(ROTARY[name]), ROTARY[name])
