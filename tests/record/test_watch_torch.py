"""Watching PyTorch's own attention and Regard's: every path they take, fast or slow, and what it was given."""

# B batch, H heads, N tokens, E = H·D width

import threading
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.backends import mha
from torch.nn import functional
from torch.nn.functional import scaled_dot_product_attention as taken_by_name

import regard
from regard.errors import OptionError, WatchError
from regard.formula import masks
from regard.formula.masks.places import Causal, Ranges
from regard.model import MultiHeadAttention, SelfAttention
from regard.record.watching import calls
from regard.record.watching import torch as torch_world

B, H, N, E = 2, 4, 7, 16
CAUSAL = torch.ones(N, N, dtype=torch.bool).triu(1)  # nn.MultiheadAttention's: True = may not attend


@pytest.fixture(autouse=True)
def _same_numbers():
    torch.manual_seed(0)


def x(*shape):
    return torch.randn(*(shape or (B, N, E)))


def padding():
    """nn.MultiheadAttention's: True = padding."""
    found = torch.zeros(B, N, dtype=torch.bool)
    found[1, 5:] = True
    return found


def watched(model, *args, **kwargs):
    """The record of a run whose outputs are proved to be those of a run that nobody watches."""
    model.eval()
    with torch.no_grad():
        plain = model(*args, **kwargs)
        with regard.watch(model) as record:
            seen = model(*args, **kwargs)
    pairs = zip(plain, seen, strict=True) if isinstance(plain, tuple) else [(plain, seen)]
    for mine, theirs in pairs:
        assert theirs is None if mine is None else torch.equal(mine, theirs)
    return record


def assert_weights(record, expected, layer=0):
    """expected: (B, H, Q, K)"""
    for item in range(len(expected)):
        torch.testing.assert_close(record.layers[layer].weights(item=item), expected[item], rtol=0, atol=1e-6)


class Own(nn.Module):
    """A layer as people write them, with the function of torch."""

    def __init__(self, attend=None):
        super().__init__()
        self.projection = nn.Linear(E, 3 * E)
        self.attend = attend

    def forward(self, x, **options):
        query, key, value = self.projection(x).view(*x.shape[:2], 3, H, E // H).permute(2, 0, 3, 1, 4)
        attend = self.attend or functional.scaled_dot_product_attention
        return attend(query, key, value, **options)

    def weights(self, x, allowed):
        """Its weights by the formula."""
        query, key, _ = self.projection(x).view(*x.shape[:2], 3, H, E // H).permute(2, 0, 3, 1, 4)
        scores = query @ key.mT / (E // H) ** 0.5
        return scores.masked_fill(~allowed, -torch.inf).softmax(-1)


# ---- nn.MultiheadAttention


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    "options", [{}, {"attn_mask": CAUSAL}, {"attn_mask": CAUSAL.float() * -torch.inf}, {"key_padding_mask": padding()}]
)
def test_multi_head_attention(batch_first, need_weights, options):
    options = {name: mask.nan_to_num(0.0, neginf=-torch.inf) for name, mask in options.items()}
    layer, source = nn.MultiheadAttention(E, H, batch_first=batch_first), x()
    given = source if batch_first else source.transpose(0, 1)
    with slow_path(), torch.no_grad():
        expected = layer.eval()(given, given, given, average_attn_weights=False, **options)[1]
    record = watched(layer, given, given, given, need_weights=need_weights, **options)
    assert_weights(record, expected)
    mask = record.layers[0].maps[1].mask
    assert isinstance(mask, (Causal, Ranges)) if options else mask is None


@contextmanager
def slow_path():
    """The fast path off: another route to the same weights."""
    was = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    yield
    mha.set_fastpath_enabled(was)


def test_multi_head_attention_from_another_text():
    layer, source = nn.MultiheadAttention(E, H, kdim=8, vdim=8, batch_first=True), x(B, 3, 8)
    given = x()
    record = watched(layer, given, source, source, average_attn_weights=False)
    with torch.no_grad():
        assert_weights(record, layer(given, source, source, average_attn_weights=False)[1])
    assert record.layers[0].kind == "cross"


def test_keys_that_a_layer_adds_of_its_own():
    layer, given = nn.MultiheadAttention(E, H, add_bias_kv=True, add_zero_attn=True, batch_first=True), x()
    record = watched(layer, given, given, given, average_attn_weights=False)
    with torch.no_grad():
        assert_weights(record, layer(given, given, given, average_attn_weights=False)[1])
    assert (record.layers[0].shape, record.layers[0].kind) == ((H, N, N + 2), "encoder")


# ---- nn.TransformerEncoder and its fast paths


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("options", [{}, {"mask": CAUSAL}, {"src_key_padding_mask": padding()}])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True, but self.use_nested_tensor:UserWarning")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage:UserWarning")
def test_encoder(norm_first, options):
    layer = nn.TransformerEncoderLayer(E, H, 2 * E, batch_first=True, norm_first=norm_first)
    encoder, given = nn.TransformerEncoder(layer, 2), x()
    fast = watched(encoder, given, **options)
    with slow_path():
        slow = watched(encoder, given, **options)
    assert [layer.name for layer in fast.layers] == ["layers.0.self_attn", "layers.1.self_attn"]
    live = N - 2 if "src_key_padding_mask" in options else N  # the fast path computes nothing for padding
    for one, other in zip(fast.layers, slow.layers, strict=True):
        for item, rows in ((0, N), (1, live)):
            found, expected = one.weights(item=item)[:, :rows], other.weights(item=item)[:, :rows]
            width = min(found.shape[-1], expected.shape[-1])
            torch.testing.assert_close(found[..., :width], expected[..., :width], rtol=0, atol=1e-5)


def test_transformer():
    record = watched(nn.Transformer(E, H, 1, 2, 2 * E, batch_first=True), x(), x(B, 4, E))
    assert [layer.kind for layer in record.layers] == ["encoder", "decoder", "cross", "decoder", "cross"]
    assert [layer.shape[1:] for layer in record.layers] == [(7, 7), (4, 4), (4, 7), (4, 4), (4, 7)]


# ---- the function


def test_the_function_in_a_layer_of_ones_own():
    model, given = Own(), x()
    record = watched(model, given, is_causal=True)
    assert_weights(record, model.weights(given, ~CAUSAL))
    assert isinstance(record.layers[0].map.mask, Causal)


def test_a_mask_of_booleans_and_one_of_numbers():
    model, given = Own(), x()
    allowed = ~CAUSAL & ~padding()[:, None, None]
    expected = model.weights(given, allowed).detach()
    assert_weights(watched(model, given, attn_mask=allowed), expected)
    numbers = torch.zeros(allowed.shape).masked_fill(~allowed, -torch.inf)
    assert_weights(watched(model, given, attn_mask=numbers), expected)


def test_a_mask_with_holes_and_one_for_each_head():
    model, given = Own(), x()
    holes = torch.ones(B, H, N, N, dtype=torch.bool)
    holes[:, 1, :, 2:4], holes[:, 2, 3:, 0] = False, False
    assert_weights(watched(model, given, attn_mask=holes), model.weights(given, holes).detach())


def test_a_bias_by_distance_is_kept_by_distance():
    model, given = Own(), x()
    places = torch.arange(N)
    bias = -0.3 * (places[:, None] - places).abs().float()
    record = watched(model, given, attn_mask=bias)
    assert record.layers[0].map.bias.numbers.shape[-1] == 2 * N - 1
    query, key, _ = model.projection(given).view(B, N, 3, H, E // H).permute(2, 0, 3, 1, 4)
    assert_weights(record, (query @ key.mT / 2 + bias).softmax(-1).detach())


def test_a_causal_mask_under_biases_of_the_heads_is_still_causal():
    """ALiBi as models hand it over: one array of numbers, another for each head, −∞ after the query."""
    model, given = Own(), x()
    places, slopes = torch.arange(N), torch.tensor([0.5, 0.25, 0.125, 0.0625])
    bias = slopes[:, None, None] * (places - places[:, None]).float()
    record = watched(model, given, attn_mask=bias.masked_fill(CAUSAL, -torch.inf)[None])
    made = record.layers[0].map
    assert isinstance(made.mask, Causal)
    assert made.bias.numbers.shape == (H, 2 * N - 1)
    query, key, _ = model.projection(given).view(B, N, 3, H, E // H).permute(2, 0, 3, 1, 4)
    expected = (query @ key.mT / 2 + bias).masked_fill(CAUSAL, -torch.inf).softmax(-1)
    assert_weights(record, expected.detach())


def test_other_axes():
    """Without heads, and with a batch of two axes."""

    class Plain(nn.Module):
        def forward(self, x):
            return functional.scaled_dot_product_attention(x, x, x)

    given = x(B, N, E)
    record = watched(Plain(), given)
    assert record.layers[0].shape == (1, N, N)
    assert_weights(record, (given @ given.mT / E**0.5).softmax(-1)[:, None])
    assert watched(Plain(), x(2, 3, H, N, E)).items == 6


def test_a_function_that_was_taken_by_name():
    model, given = Own(), x()

    class Taken(Own):
        def forward(self, x):
            query, key, value = self.projection(x).view(*x.shape[:2], 3, H, E // H).permute(2, 0, 3, 1, 4)
            return taken_by_name(query, key, value)

    model = Taken()
    assert_weights(watched(model, given), model.weights(given, torch.tensor(True)).detach())
    assert taken_by_name is functional.scaled_dot_product_attention


# ---- Regard's own


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_own_layers(key_heads):
    layer, given = MultiHeadAttention(E, H, key_heads=key_heads), x()
    mask = masks.causal() & masks.padding([7, 5])
    record = watched(layer, given, mask=mask)
    with torch.no_grad():
        assert_weights(record, layer.attend(given, mask=mask).weights)
    assert record.layers[0].map.keys.shape[0] == key_heads


def test_a_layer_of_one_head():
    layer, given = SelfAttention(E), x()
    record = watched(layer, given)
    with torch.no_grad():
        torch.testing.assert_close(record.layers[0].weights(item=1)[0], layer.attend(given).weights[1])


# ---- where the record is kept


@pytest.mark.parametrize("to", ["cpu", "disk"])
def test_kept_elsewhere(to):
    layer, given = MultiHeadAttention(E, H), x()
    with torch.no_grad():
        with regard.watch(layer, to=to, values=True) as record:
            layer(given)
        expected = layer.attend(given).weights
    made = record.layers[0].map
    torch.testing.assert_close(torch.as_tensor(record.layers[0].weights()), expected[0])
    assert made.values.shape == made.keys.shape
    assert isinstance(made.queries, torch.Tensor) == (to == "cpu")


@pytest.mark.parametrize("small", [2**20, 0], ids=["every call", "a sample of large calls"])
def test_what_a_model_writes_over_is_found_out(small, monkeypatch):
    monkeypatch.setattr(calls, "SMALL", small)

    class Careless(nn.Module):
        def forward(self, x):
            output = functional.scaled_dot_product_attention(x, x, x)
            x.zero_()
            return output

    model, message = Careless(), r"wrote over the queries or keys of Careless after using them; watch it with to='cpu'"
    for mode in (torch.no_grad, torch.inference_mode):
        with mode(), pytest.raises(WatchError, match=message), regard.watch(model, strict=False):
            model(x(B, H, N, 4))
        with mode(), regard.watch(model, to="cpu") as record:
            model(x(B, H, N, 4))
        assert bool((record.layers[0].map.queries != 0).all())


def test_an_output_that_is_written_over_raises_no_false_alarm(monkeypatch):
    monkeypatch.setattr(calls, "SMALL", 0)

    class Gated(nn.Module):
        def forward(self, x):
            return functional.scaled_dot_product_attention(x, x, x).mul_(0.5)

    model = Gated()
    with torch.no_grad(), regard.watch(model) as record:
        model(x(B, H, N, 4))
    assert record.layers[0].weights().shape == (H, N, N)


class Masked(nn.Module):
    def forward(self, x, mask):
        return functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_mask_that_is_written_to_between_two_runs_is_read_anew(mode):
    model, given = Masked(), x(B, H, N, 4)
    with mode(), regard.watch(model) as record:
        mask = torch.ones(N, N, dtype=torch.bool)
        model(given, mask)
        mask[:, 3] = False
        model(given, mask)
    first, second = (run.layers[0].weights() for run in record.runs)
    assert bool((first[..., 3] > 0).all())
    assert bool((second[..., 3] == 0).all())


def test_a_later_run_that_does_something_unknown_is_found_out(monkeypatch):
    class Turning(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            with monkeypatch.context() as patch:
                if self.calls == 3:
                    patch.setattr(torch_world, "SDPA", lambda *args, **kwargs: real(*args, **kwargs) / 2)
                return functional.scaled_dot_product_attention(x, x, x)

    real, model = torch_world.SDPA, Turning()
    with torch.no_grad(), regard.watch(model):
        model(x(B, H, N, 4)), model(x(B, H, N, 4))
    with torch.no_grad(), pytest.raises(WatchError, match="does not follow"), regard.watch(model):
        model(x(B, H, N, 4))


def test_a_pytorch_without_its_private_fast_paths_is_watched_all_the_same(monkeypatch):
    monkeypatch.setattr(torch_world, "NATIVE_LAYER", None)
    monkeypatch.delattr(torch._C, "_current_graph_task_id")
    model = Masked()
    with torch.no_grad(), regard.watch(model) as record:
        model(x(B, H, N, 4), None)
    assert record.layers[0].shape == (H, N, N)


# ---- ablation


@pytest.mark.parametrize("need_weights", [True, False])
def test_all_heads_silent_leave_the_bias_of_the_output(need_weights):
    layer, given = nn.MultiheadAttention(E, H, batch_first=True).eval(), x()
    with torch.no_grad():
        layer.out_proj.bias.normal_()
        with regard.without(layer, heads=[(0, head) for head in range(H)]):
            output, _ = layer(given, given, given, need_weights=need_weights)
    torch.testing.assert_close(output, layer.out_proj.bias.detach().expand(B, N, E))


def test_a_silent_head_in_the_fast_path():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(E, H, 2 * E, batch_first=True), 2).eval()
    given = x()
    with torch.no_grad():
        plain = encoder(given)
        with regard.without(encoder, heads=[(1, 0)]):
            cut = encoder(given)
        assert torch.equal(encoder(given), plain)
        encoder.layers[1].self_attn.out_proj.weight[:, : E // H] = 0
        expected = encoder(given)
    torch.testing.assert_close(cut, expected)
    assert mha.get_fastpath_enabled()


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([(1, 0)], "layer 1 of 1; choose 0 to 0"),
        ([(0, -1)], r"head -1 in \(0, -1\); heads are numbered from 0"),
        ([3], r"3 names no head; a head is \(layer, head\)"),
        ([], "no heads are named"),
        ([("elsewhere", 0)], "the model has no module 'elsewhere'"),
    ],
)
def test_heads_that_there_are_not(heads, message):
    with pytest.raises(OptionError, match=message), regard.without(MultiHeadAttention(E, H), heads=heads):
        pass


def test_a_head_beyond_the_last():
    layer = MultiHeadAttention(E, H)
    with pytest.raises(OptionError, match=r"head 4 of 4 in .*; choose 0 to 3"), regard.without(layer, heads=[(0, 4)]):
        layer(x())


def test_a_head_that_did_not_run():
    layer = MultiHeadAttention(E, H)
    with pytest.raises(WatchError, match="its attention was not seen to run"), regard.without(layer, heads=[(0, 1)]):
        pass


# ---- what cannot be seen


def test_attention_made_by_hand_is_refused():
    class HandAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.projection = nn.Linear(E, E)

        def forward(self, x):
            return (self.projection(x) @ x.mT).softmax(-1) @ x

    model, message = nn.Sequential(HandAttention()), r"attention could not be seen: HandAttention \(the first is 0\)"
    with pytest.raises(WatchError, match=message), regard.watch(model):
        model(x())


def test_threads():
    models, shapes = [Own() for _ in range(4)], {}

    def work(place):
        for _ in range(10):
            with torch.no_grad(), regard.watch(models[place]) as record:
                models[place](x(1, 3 + place, E))
        shapes[place] = record.layers[0].shape

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shapes == {place: (H, 3 + place, 3 + place) for place in range(4)}
