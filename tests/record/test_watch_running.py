"""Watching in all circumstances: training, threads, exceptions, low precision; and everything as it was afterwards."""

import copy
import pickle
import shutil
import threading

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

import regard
from regard.errors import OptionError, RegardError, WatchError
from regard.formula.masks.places import Causal, Ranges
from regard.record.watching import calls

pytest.importorskip("transformers")

from transformers.cache_utils import Cache, EncoderDecoderCache
from transformers.modeling_utils import AttentionInterface

from .models import inputs_of, make
from .test_watch_families import assert_equals_eager, assert_same, watched

# PyTorch imports deprecated parts of its own when it compiles.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")


def replaceable(model):
    """Everything that a watch stands in for, as it is now."""
    return [
        functional.scaled_dot_product_attention, functional.multi_head_attention_forward,
        torch._native_multi_head_attention, torch._transformer_encoder_layer_fwd, Cache.reorder_cache,
        EncoderDecoderCache.reorder_cache, AttentionInterface.get_interface, AttentionInterface.__getitem__,
        type(model).generate, type(model).get_compiled_call,
    ]  # fmt: skip


def hooks(model):
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_always_called", "_backward_hooks")
    return [list(getattr(module, kind).values()) for module in model.modules() for kind in kinds]


# ---- afterwards


@pytest.mark.parametrize("raising", [False, True])
def test_everything_is_put_back(raising):
    model, inputs = make("llama"), inputs_of("llama")
    before, names, inherited = replaceable(model), set(vars(model)), set(vars(type(model)))
    own = model.model.layers[0].register_forward_hook(lambda *_: None)
    hooked = hooks(model)
    try:
        with regard.watch(model):
            assert replaceable(model) != before
            model.generate(**inputs, max_new_tokens=2)
            if raising:
                model(torch.tensor([[100_000]]))
    except IndexError:
        assert raising
    assert all(now is was for now, was in zip(replaceable(model), before, strict=True))
    assert (set(vars(model)), set(vars(type(model)))) == (names, inherited)
    assert hooks(model) == hooked
    own.remove()


def test_a_users_own_hooks_run_once_a_forward():
    model, inputs, calls = make("bert"), inputs_of("bert"), []
    model.encoder.layer[1].register_forward_hook(lambda *_: calls.append("after"))
    model.register_forward_pre_hook(lambda *_: calls.append("before"))
    with torch.no_grad(), regard.watch(model):
        model(**inputs)
    assert calls == ["before", "after"]


def test_the_model_can_be_copied_and_pickled():
    model, inputs = make("llama"), inputs_of("llama")
    with torch.no_grad(), regard.watch(model):
        expected = model(**inputs).logits
        early = copy.deepcopy(model)
    late, thawed = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    for other in (early, late, thawed):
        with torch.no_grad():
            assert torch.equal(other(**inputs).logits, expected)
    with torch.no_grad():  # a copy answers for itself, and not for the model that was watched
        early.lm_head.weight.zero_()
        early.lm_head.weight[7, :] = 1.0
    assert not torch.equal(early.generate(**inputs, max_new_tokens=3), model.generate(**inputs, max_new_tokens=3))


def test_a_generate_of_the_users_own_is_called():
    model, inputs, calls = make("llama"), inputs_of("llama"), []
    real = model.generate

    def counted(*args, **kwargs):
        calls.append(1)
        return real(*args, **kwargs)

    model.generate = counted
    with regard.watch(model) as record:
        model.generate(**inputs, max_new_tokens=3)
    assert (len(calls), record.layers[0].shape) == (1, (4, 11, 11))
    assert model.generate is counted


def test_an_exception_within_a_watch_that_goes_on():
    model, inputs = make("llama"), inputs_of("llama")
    with torch.no_grad(), regard.watch(model) as record:
        with pytest.raises(IndexError):
            model(torch.tensor([[100_000]]))
        model(**inputs)
    assert_equals_eager(record, "llama", inputs)


# ---- training


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing(reentrant):
    """What a backward pass computes a second time is not seen a second time; gradients are the same to the bit."""
    model, inputs = make("llama"), inputs_of("llama") | {"use_cache": False}
    inputs["labels"] = inputs["input_ids"]
    model.train()
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    model(**inputs).loss.backward()
    expected = [own.grad.clone() for own in model.parameters()]
    model.zero_grad()
    with regard.watch(model) as record:
        model(**inputs).loss.backward()
    assert_same([own.grad for own in model.parameters()], expected)
    assert_equals_eager(record, "llama", inputs)


def test_dropout_draws_the_same():
    model, inputs = make("bert"), inputs_of("bert")
    model.train()
    torch.manual_seed(0)
    plain = model(**inputs)
    torch.manual_seed(0)
    with regard.watch(model):
        seen = model(**inputs)
    assert_same(plain, seen)


def test_gradients_and_values():
    model, inputs = make("llama"), inputs_of("llama")
    outputs = []

    def note(_, args):
        args[0].retain_grad()
        outputs.append(args[0])

    model.model.layers[1].self_attn.o_proj.register_forward_pre_hook(note)
    with regard.watch(model, gradients=True) as record:
        model(**inputs, labels=inputs["input_ids"]).loss.backward()
    made = record.layers[1].maps[1]
    expected = outputs[0].grad[1].reshape(9, 4, 8).transpose(0, 1)
    torch.testing.assert_close(made.gradients, expected)
    mixed = record.layers[1].weights(item=1) @ made.values.repeat_interleave(2, dim=0)
    torch.testing.assert_close(mixed, outputs[0][1].detach().reshape(9, 4, 8).transpose(0, 1), rtol=0, atol=1e-5)


# ---- precision


@pytest.mark.parametrize("name", ["bert", "llama", "gpt_oss", "t5"])
@pytest.mark.parametrize(("dtype", "rounding"), [(torch.bfloat16, 2e-2), (torch.float16, 4e-3)])
def test_low_precision(name, dtype, rounding):
    """Queries and keys in the model's own dtype, weights in float32: apart by the rounding of the model's."""
    model, inputs = make(name, "eager").to(dtype), inputs_of(name, "left")
    record = watched(model, inputs)
    with torch.no_grad():
        outputs = model(**inputs, output_attentions=True)
    maps, layers = (
        (outputs.attentions, record.layers) if "attentions" in outputs
        else (outputs.encoder_attentions, record.of_kind("encoder"))
    )  # fmt: skip
    assert layers[0].map.queries.dtype == dtype
    for layer, expected in zip(layers, maps, strict=True):
        for item in range(2):
            torch.testing.assert_close(layer.weights(item=item), expected[item].float(), rtol=0, atol=rounding)


def test_autocast():
    """Kernels compute in bfloat16 what they are handed in float32: no false alarm."""
    inputs = inputs_of("llama")
    with torch.autocast("cpu", torch.bfloat16):
        record = watched(make("llama"), inputs)
    with torch.no_grad():
        maps = make("llama", "eager")(**inputs, output_attentions=True).attentions
    torch.testing.assert_close(record.layers[0].weights(), maps[0][0], rtol=0, atol=5e-2)


def test_inference_mode():
    model, inputs = make("llama"), inputs_of("llama")
    with torch.inference_mode(), regard.watch(model) as record:
        model(**inputs)
    assert_equals_eager(record, "llama", inputs)


@pytest.mark.skipif(shutil.which("c++") is None, reason="FlexAttention's masks are compiled; there is no compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # several, of PyTorch's own
@pytest.mark.parametrize(("name", "padding"), [("bert", "right"), ("llama", "left"), ("mistral", "none")])
def test_flex_attention(name, padding):
    inputs = inputs_of(name, padding)
    rows = inputs["attention_mask"].bool() if padding == "left" else None
    record = watched(make(name, "flex_attention"), inputs)
    assert_equals_eager(record, name, inputs, rows=rows)
    assert isinstance(record.layers[0].maps[1].mask, (Causal, Ranges))


# ---- several at once


def test_threads_with_a_model_each():
    models = {name: make(name) for name in ("llama", "bert", "gpt2")}
    records = {}

    def work(name):
        for _ in range(5):
            with torch.no_grad(), regard.watch(models[name]) as record:
                models[name](**inputs_of(name))
        records[name] = record

    threads = [threading.Thread(target=work, args=(name,)) for name in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(records) == set(models)
    for name, record in records.items():
        assert_equals_eager(record, name, inputs_of(name))


def test_a_model_that_runs_in_another_thread():
    model, inputs = make("llama"), inputs_of("llama")
    with regard.watch(model) as record:
        thread = threading.Thread(target=lambda: model(**inputs))
        thread.start()
        thread.join()
    assert_equals_eager(record, "llama", inputs)


def test_a_watch_within_a_watch():
    model, inputs = make("llama"), inputs_of("llama")
    with torch.no_grad(), regard.watch(model) as outer:
        model(**inputs)
        with regard.watch(model, layers=[1]) as inner:
            model(**inputs)
    assert [len(run.layers) for run in outer.runs] == [2, 2]
    assert [layer.index for layer in inner.layers] == [1]


def test_a_part_of_a_model():
    model, inputs = make("llama"), inputs_of("llama")
    with torch.no_grad(), regard.watch(model.model.layers[1]) as record:
        model(**inputs)
    whole = watched(model, inputs)
    assert [layer.name for layer in record.layers] == ["self_attn"]
    assert torch.equal(record.layers[0].weights(item=1), whole.layers[1].weights(item=1))


def test_another_model_within_is_none_of_its_affair():
    model, other, inputs = make("llama"), make("gpt2"), inputs_of("llama")
    with torch.no_grad(), regard.watch(model) as record:
        other(**inputs)
        model(**inputs)
    assert_equals_eager(record, "llama", inputs)


# ---- ablation


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_silent_head_is_one_whose_part_of_the_output_matrix_is_zero(attention):
    model, inputs = make("llama", attention), inputs_of("llama", "left")
    with torch.no_grad():
        plain = model(**inputs).logits
        with regard.without(model, heads=[(1, 2)]):
            cut = model(**inputs).logits
        assert torch.equal(model(**inputs).logits, plain)
        model.model.layers[1].self_attn.o_proj.weight[:, 16:24] = 0
        expected = model(**inputs).logits
    torch.testing.assert_close(cut, expected)
    assert not torch.allclose(cut, plain)


def test_a_head_of_a_record_can_be_silenced():
    model, inputs = make("bert"), inputs_of("bert")
    record = watched(model, inputs)
    with torch.no_grad():
        plain = model(**inputs).last_hidden_state
        with regard.without(model, heads=[(1, 3)]):
            expected = model(**inputs).last_hidden_state
        with regard.without(model, heads=[record.layers[1].heads[3]]), regard.watch(model) as after:
            cut = model(**inputs).last_hidden_state
    assert torch.equal(cut, expected)
    assert not torch.allclose(cut, plain)
    assert torch.equal(after.layers[1].weights(), record.layers[1].weights())  # what it looks at is as it was


# ---- memory


class Largest(TorchDispatchMode):
    """How large the largest tensor is that any operation makes."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for part in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(part, torch.Tensor):
                self.numbers = max(self.numbers, part.untyped_storage().nbytes() // part.element_size())
        return result


def test_nothing_of_n_by_n_is_made():
    """4,000 tokens: everything that a watched run makes is far smaller than one map of them."""
    model, size = make("llama"), 4000
    ids = torch.randint(5, 100, (1, size), generator=torch.Generator().manual_seed(0))
    with torch.no_grad(), Largest() as plain:
        model.model(ids)
    with torch.no_grad(), Largest() as largest, regard.watch(model) as record:
        model.model(ids)
    assert largest.numbers <= plain.numbers < size * size / 10
    with Largest() as asked:
        record.layers[1].heads[2].weights(rows=slice(3900, 3910))
    assert asked.numbers < size * size / 10


# ---- what is said when it goes wrong


def test_a_model_that_did_not_run():
    with regard.watch(make("bert")) as record:
        pass
    with pytest.raises(RegardError, match="the record is empty"):
        record.layers  # noqa: B018


def test_a_model_that_ran_twice():
    model, inputs = make("bert"), inputs_of("bert")
    with torch.no_grad(), regard.watch(model) as record:
        model(**inputs)
        model(**inputs)
    with pytest.raises(RegardError, match=r"ran 2 times while it was watched; choose one: record.runs\[0\] … "):
        record.layers  # noqa: B018
    assert torch.equal(record.runs[0].layers[0].weights(), record.runs[1].layers[0].weights())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": [2]}, "layer 2 of 2; choose 0 to 1, or a module's name"),
        ({"layers": ["encoder.layer.9"]}, "the model has no module 'encoder.layer.9'; its attention layers are"),
        ({"heads": [-1]}, "head -1; heads are numbered from 0"),
        ({"to": "nowhere"}, "to is 'nowhere'; it is None"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(OptionError, match=message), regard.watch(make("bert"), **options):
        pass


def test_a_head_that_there_is_not():
    model, message = make("bert"), r"head 4 of 4 in encoder\.layer\.0\.attention\.self; choose 0 to 3"
    with torch.no_grad(), pytest.raises(OptionError, match=message), regard.watch(model, heads=[4]):
        model(**inputs_of("bert"))


def test_something_that_is_no_model():
    with pytest.raises(OptionError, match=r"str is no torch.nn.Module"), regard.watch("bert"):
        pass


def test_compiled_models():
    model = make("bert")
    with pytest.raises(WatchError, match=r"regard.watch\(model._orig_mod\)"), regard.watch(torch.compile(model)):
        pass
    model.encoder.layer[1].compile()
    with pytest.raises(WatchError, match=r"encoder.layer.1 in the model is compiled"), regard.watch(model):
        pass


@pytest.mark.parametrize("small", [2**20, 0], ids=["every call", "a sample of large calls"])
def test_a_layer_that_does_something_unknown_is_found_out(small, monkeypatch):
    """An attention function that halves what it gives out: the output no longer follows from queries and keys."""
    monkeypatch.setattr(calls, "SMALL", small)
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    def halved(*args, **kwargs):
        output, weights = sdpa_attention_forward(*args, **kwargs)
        return output / 2, weights

    model, inputs = make("bert"), inputs_of("bert")
    AttentionInterface.register("sdpa_halved", halved)
    try:
        model.set_attn_implementation("sdpa_halved")
        with (
            torch.no_grad(),
            pytest.raises(WatchError, match=r"bert: the output of .* does not follow from the queries and keys"),
            regard.watch(model),
        ):
            model(**inputs)
        assert len(watched(model, inputs, strict=False).layers) == 2
    finally:
        del AttentionInterface._global_mapping["sdpa_halved"]


@pytest.mark.parametrize("name", ["bert", "llama", "t5", "gemma2", "gpt_oss"])
def test_a_sample_of_large_calls_raises_no_false_alarm(name, monkeypatch):
    monkeypatch.setattr(calls, "SMALL", 0)
    for padded in (False, True):
        inputs = inputs_of(name)
        if padded:
            inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
            inputs["attention_mask"][0, :3] = 0
        implementation = "eager" if name in ("gemma2", "gpt_oss") else "sdpa"
        assert watched(make(name, implementation), inputs).layers


@pytest.mark.parametrize("small", [2**20, 0], ids=["every call", "a sample of large calls"])
def test_a_causal_mask_that_was_not_told_is_found_out(small, monkeypatch):
    """The last query sees the same with and without a causal mask; one in the middle does not."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    monkeypatch.setattr(calls, "SMALL", small)

    def secretly(module, query, key, value, attention_mask, **kwargs):
        return sdpa_attention_forward(module, query, key, value, None, **{**kwargs, "is_causal": True})

    model, inputs = make("bert"), inputs_of("bert")
    AttentionInterface.register("sdpa_secretly", secretly)
    try:
        model.set_attn_implementation("sdpa_secretly")
        with torch.no_grad(), pytest.raises(WatchError, match="does not follow"), regard.watch(model):
            model(**inputs)
    finally:
        del AttentionInterface._global_mapping["sdpa_secretly"]
