"""Each name of the NumPy lessons: shapes, values against the reference, masks of every kind, bad input."""

import re

import numpy as np
import pytest
from rich.cells import cell_len

from regard import lessons
from regard.errors import DtypeError, OptionError, ShapeError, UnknownWord
from regard.lessons import (
    MultiHeadAttention,
    create_causal_mask,
    create_padding_mask,
    plot_attention_weights,
    positional_encoding,
    scaled_dot_product_attention,
    self_attention,
    sentence_encoder,
    show_distribution,
    softmax,
)
from tests import reference

WORDS = ["我", "喜欢", "学习", "AI", "技术"]


def test_the_names_are_those_of_the_lessons():
    assert set(lessons.__all__) == {
        "MultiHeadAttention", "create_causal_mask", "create_padding_mask", "plot_attention_weights",
        "positional_encoding", "scaled_dot_product_attention", "self_attention", "sentence_encoder",
        "show_distribution", "softmax",
    }  # fmt: skip


# softmax


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_along_any_axis(rng, axis):
    x = rng.normal(size=(3, 4)) * 50
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    np.testing.assert_allclose(softmax(x, axis), powers / powers.sum(axis=axis, keepdims=True), rtol=1e-12)


def test_softmax_takes_lists_of_whole_numbers():
    assert softmax([[1, 1], [5, 5]]).tolist() == [[0.5, 0.5], [0.5, 0.5]]


# attention


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_attention_on_two_three_and_four_axes(rng, lead):
    Q, K, V = (rng.normal(size=(*lead, *shape)) for shape in ((5, 4), (6, 4), (6, 7)))
    output, weights = scaled_dot_product_attention(Q, K, V)
    assert output.shape == (*lead, 5, 7)
    assert weights.shape == (*lead, 5, 6)
    np.testing.assert_allclose(weights, reference.weights(Q, K), rtol=1e-11)
    np.testing.assert_allclose(output, reference.attend(Q, K, V), rtol=1e-11)


def test_self_attention_projects_and_attends(rng):
    X, W_q, W_k, W_v = (rng.normal(size=shape) for shape in ((2, 5, 8), (8, 3), (8, 3), (8, 6)))
    mask = create_causal_mask(5)
    output, weights = self_attention(X, W_q, W_k, W_v, mask)
    allowed = np.tril(np.ones((5, 5), dtype=bool))
    np.testing.assert_allclose(weights, reference.weights(X @ W_q, X @ W_k, allowed=allowed), atol=1e-12)
    np.testing.assert_allclose(output, reference.attend(X @ W_q, X @ W_k, X @ W_v, allowed=allowed), atol=1e-12)


def test_float32_stays_float32(rng):
    X = rng.normal(size=(3, 4)).astype(np.float32)
    output, weights = scaled_dot_product_attention(X, X, X, create_causal_mask(3))
    assert output.dtype == weights.dtype == np.float32


def test_what_is_masked_never_reaches_the_output(rng):
    X = rng.normal(size=(4, 3))
    spoilt = X.copy()
    spoilt[-1] = np.nan
    mask = create_padding_mask([7, 7, 7, 0])
    expected = scaled_dot_product_attention(X[:3], X[:3], X[:3])
    output, weights = scaled_dot_product_attention(spoilt[:3], spoilt, spoilt, mask)
    np.testing.assert_allclose(output, expected[0], rtol=1e-12)
    np.testing.assert_allclose(weights[:, :3], expected[1], rtol=1e-12)


# masks


def test_the_causal_mask_is_zero_and_minus_infinity():
    assert create_causal_mask(3).tolist() == [[0, -np.inf, -np.inf], [0, 0, -np.inf], [0, 0, 0]]
    assert create_causal_mask(0).shape == (0, 0)


def test_the_padding_mask_is_batch_one_n():
    mask = create_padding_mask([[5, 2, 0], [0, 9, 9]])
    assert mask.tolist() == [[[0, 0, -np.inf]], [[-np.inf, 0, 0]]]
    assert create_padding_mask([[5, 2, 0]], pad_token=5).tolist() == [[[-np.inf, 0, 0]]]
    assert create_padding_mask(np.array([5, 2, 0])).shape == (1, 1, 3)


def test_a_padding_mask_lies_right_over_batches_and_over_heads(rng):
    ids = np.array([[1, 2, 3, 4], [1, 2, 0, 0]])
    mask, allowed = create_padding_mask(ids), (ids != 0)
    for lead in ((2,), (2, 2), (2, 3)):  # (2, 2): as many heads as sentences, where a plain broadcast would err
        X = rng.normal(size=(*lead, 4, 5))
        keys = allowed.reshape(2, *(1,) * (len(lead) - 1), 1, 4)
        output, weights = scaled_dot_product_attention(X, X, X, mask)
        np.testing.assert_allclose(weights, reference.weights(X, X, allowed=keys), atol=1e-12)
        np.testing.assert_allclose(output, reference.attend(X, X, X, allowed=keys), atol=1e-12)
        assert not weights[1, ..., 2:].any()


def test_causal_and_padding_masks_add_up(rng):
    X = rng.normal(size=(2, 2, 3, 4))
    mask = create_causal_mask(3) + create_padding_mask([[1, 1, 1], [0, 1, 1]])
    _, weights = scaled_dot_product_attention(X, X, X, mask)
    assert np.array_equal(weights[0] > 0, np.broadcast_to(np.tri(3, dtype=bool), (2, 3, 3)))
    assert np.array_equal(weights[1] > 0, np.broadcast_to(np.tri(3, dtype=bool) & [False, True, True], (2, 3, 3)))


@pytest.mark.parametrize(
    ("lead", "shape", "meant"),
    [
        ((), (4,), (4,)), ((), (3, 4), (3, 4)), ((), (1, 1, 4), (1, 4)), ((), (1, 3, 4), (3, 4)),
        ((2,), (3, 4), (3, 4)), ((2,), (2, 3, 4), (2, 3, 4)), ((2,), (1, 1, 4), (1, 1, 4)),
        ((2,), (2, 1, 1, 4), (2, 1, 4)), ((2, 5), (3, 4), (3, 4)), ((2, 5), (2, 3, 4), (2, 1, 3, 4)),
        ((2, 5), (1, 3, 4), (1, 1, 3, 4)), ((2, 5), (2, 5, 3, 4), (2, 5, 3, 4)), ((2, 5), (1, 5, 1, 4), (1, 5, 1, 4)),
    ],
)  # fmt: skip
def test_masks_of_every_rank_over_maps_of_every_rank(rng, lead, shape, meant):
    Q, K, V = rng.normal(size=(*lead, 3, 2)), rng.normal(size=(*lead, 4, 2)), rng.normal(size=(*lead, 4, 2))
    allowed = rng.random(shape) < 0.6
    expected = reference.weights(Q, K, allowed=allowed.reshape(meant))
    for mask in (allowed, np.where(allowed, 0, -np.inf), np.where(allowed, 0, -(10**9)).tolist()):
        output, weights = scaled_dot_product_attention(Q, K, V, mask)
        assert weights.shape == (*lead, 3, 4)
        np.testing.assert_allclose(weights, expected, atol=1e-12)
        np.testing.assert_allclose(output, expected @ V, atol=1e-12)


def test_numbers_near_zero_are_added_as_they_are(rng):
    X = rng.normal(size=(3, 4))
    soft = -rng.random((3, 3))
    _, weights = scaled_dot_product_attention(X, X, X, soft)
    np.testing.assert_allclose(weights, reference.weights(X, X, bias=soft), rtol=1e-12)


def test_what_stands_for_never_changes_nothing_but_rows_masked_throughout(rng):
    X = rng.normal(size=(5, 4))
    _, expected = scaled_dot_product_attention(X, X, X, create_causal_mask(5))
    for never in (-1e4, -1e9, np.finfo(np.float32).min, np.finfo(np.float64).min):
        mask = np.where(create_causal_mask(5) < 0, never, 0)
        np.testing.assert_array_equal(scaled_dot_product_attention(X, X, X, mask)[1], expected)


@pytest.mark.parametrize("mask", [np.tri(3), [[1, 0, 0]] * 3, np.full((3, 3), 1e9), np.full((3, 3), np.nan)])
def test_a_mask_that_is_not_additive_is_refused(rng, mask):
    X = rng.normal(size=(3, 4))
    with pytest.raises(DtypeError, match=r"0 = may attend, −inf = may not"):
        scaled_dot_product_attention(X, X, X, mask)


@pytest.mark.parametrize(
    ("mask_shape", "lead"), [((2, 3), (2,)), ((3, 3, 3), (2,)), ((5, 3, 3), (2, 5)), ((2, 1, 3), ()), ((3, 4), ())]
)
def test_a_mask_that_does_not_fit_is_refused_with_both_shapes(rng, mask_shape, lead):
    X = rng.normal(size=(*lead, 3, 4))
    with pytest.raises(ShapeError) as error:
        scaled_dot_product_attention(X, X, X, np.zeros(mask_shape))
    assert str(mask_shape) in str(error.value)
    assert str((*lead, 3, 3)) in str(error.value)


# bad input


def test_batches_of_different_sizes_are_no_shared_heads(rng):
    Q, K = rng.normal(size=(4, 5, 8)), rng.normal(size=(2, 5, 8))
    with pytest.raises(ShapeError, match=r"Q \(4, 5, 8\) and K \(2, 5, 8\)"):
        scaled_dot_product_attention(Q, K, K)


@pytest.mark.parametrize(
    ("arrays", "error", "words"),
    [
        (([1.0, 2.0], [[1.0, 2.0]], [[1.0]]), ShapeError, "two axes"),
        (([[1.0, 2.0]], [[1.0]], [[1.0]]), ShapeError, r"\(1, 2\) and key \(1, 1\)"),
        (([[1.0]], [[1.0], [2.0]], [[1.0]]), ShapeError, "2 keys"),
        (([[1.0], [2.0, 3.0]], [[1.0]], [[1.0]]), ShapeError, "rows of Q differ in length"),
        (([["a"]], [[1.0]], [[1.0]]), DtypeError, "Q has dtype"),
        (([[1j]], [[1.0]], [[1.0]]), DtypeError, "Q has dtype"),
        (([[True]], [[1.0]], [[1.0]]), DtypeError, "Q has dtype"),
    ],
)
def test_bad_arrays_are_named(arrays, error, words):
    with pytest.raises(error, match=words):
        scaled_dot_product_attention(*arrays)


def test_matrices_that_do_not_fit_are_named():
    X, W = np.ones((3, 4)), np.ones((4, 2))
    with pytest.raises(ShapeError, match=r"X \(3, 4\) @ W_k \(3, 2\)"):
        self_attention(X, W, np.ones((3, 2)), W)
    with pytest.raises(ShapeError, match=r"X has shape \(4,\)"):
        self_attention(X[0], W, W, W)


def test_tensors_are_sent_to_the_torch_lessons():
    torch = pytest.importorskip("torch")
    with pytest.raises(DtypeError, match=r"regard\.lessons\.torch"):
        softmax(torch.zeros(3))


@pytest.mark.parametrize(
    "call",
    [
        lambda: create_causal_mask(-1), lambda: create_causal_mask(2.5), lambda: create_causal_mask(True),
        lambda: MultiHeadAttention(0, 1), lambda: MultiHeadAttention(8, 0), lambda: MultiHeadAttention("8", 2),
        lambda: positional_encoding(4, 0), lambda: show_distribution([[1.0]], ["a"], top=0),
    ],
)  # fmt: skip
def test_sizes_that_make_no_sense_are_refused(call):
    with pytest.raises(OptionError, match="must be a whole number"):
        call()


def test_ids_must_be_whole_numbers():
    with pytest.raises(DtypeError, match="whole numbers"):
        create_padding_mask([[1.5, 0.0]])
    with pytest.raises(ShapeError, match="rows of ids differ in length"):
        create_padding_mask([[1, 2], [1]])


# several heads


def by_heads(layer, q, k, v, allowed=None):
    """Each head by itself, on its own columns."""
    outputs, weights = [], []
    for head in range(layer.num_heads):
        own = slice(head * layer.d_k, (head + 1) * layer.d_k)
        projected = [x @ matrix[:, own] for x, matrix in ((q, layer.W_q), (k, layer.W_k), (v, layer.W_v))]
        outputs.append(reference.attend(*projected, allowed=allowed))
        weights.append(reference.weights(*projected[:2], allowed=allowed))
    return np.concatenate(outputs, axis=-1) @ layer.W_o, np.stack(weights, axis=-3)


def test_multi_head_attention_is_each_head_by_itself(rng):
    layer = MultiHeadAttention(12, 3)
    q, k, v = (rng.normal(size=(2, n, 12)) for n in (4, 5, 5))
    ids = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    output, weights = layer.attend(q, k, v, create_padding_mask(ids))
    expected = by_heads(layer, q, k, v, (ids != 0)[:, None, :])
    assert layer.d_k == 4
    assert weights.shape == (2, 3, 4, 5)
    np.testing.assert_allclose(output, expected[0], atol=1e-12)
    np.testing.assert_allclose(weights, expected[1], atol=1e-12)
    np.testing.assert_array_equal(layer.forward(q, k, v, create_padding_mask(ids)), output)
    np.testing.assert_array_equal(layer(q, k, v, create_padding_mask(ids)), output)


def test_one_sentence_needs_no_batch(rng):
    layer, x = MultiHeadAttention(8, 2), rng.normal(size=(4, 8))
    mask = create_causal_mask(4)
    output, weights = layer.attend(x, x, x, mask)
    batched = layer.attend(x[None], x[None], x[None], mask)
    np.testing.assert_array_equal(output, batched[0][0])
    np.testing.assert_array_equal(weights, batched[1][0])
    assert weights.shape == (2, 4, 4)
    np.testing.assert_array_equal(layer(x.tolist(), x.tolist(), x.tolist(), mask), output)
    two_sentences = create_padding_mask([[1, 1, 1, 1], [1, 1, 1, 0]])  # not to be taken for the two heads
    with pytest.raises(ShapeError, match=r"\(2, 1, 4\)"):
        layer(x, x, x, two_sentences)


def test_a_batch_of_none_has_an_answer():
    layer, x = MultiHeadAttention(8, 2), np.zeros((0, 4, 8))
    output, weights = layer.attend(x, x, x)
    assert output.shape == (0, 4, 8)
    assert weights.shape == (0, 2, 4, 4)


def test_the_seed_makes_the_weights():
    one, same, other = MultiHeadAttention(8, 2), MultiHeadAttention(8, 2), MultiHeadAttention(8, 2, seed=1)
    assert np.array_equal(one.W_q, same.W_q)
    assert not np.array_equal(one.W_q, other.W_q)
    assert not np.array_equal(one.W_q, one.W_k)
    assert not np.array_equal(MultiHeadAttention(8, 2, seed=None).W_q, MultiHeadAttention(8, 2, seed=None).W_q)
    big = MultiHeadAttention(256, 4)
    assert np.std(np.random.default_rng(1).normal(size=(500, 256)) @ big.W_v) == pytest.approx(1, rel=0.02)


def test_multi_head_attention_says_what_does_not_fit():
    with pytest.raises(OptionError, match=r"3 heads do not divide d_model 8; 1, 2, 4, 8 would"):
        MultiHeadAttention(8, 3)
    layer, x = MultiHeadAttention(8, 2), np.ones((2, 3, 8))
    with pytest.raises(ShapeError, match=r"k has shape \(2, 3, 6\)"):
        layer(x, np.ones((2, 3, 6)), x)
    with pytest.raises(ShapeError, match=r"q \(3, 8\) and k \(2, 3, 8\)"):
        layer(x[0], x, x)
    with pytest.raises(ShapeError, match="batch"):
        layer(x, np.ones((5, 3, 8)), np.ones((5, 3, 8)))
    with pytest.raises(ShapeError, match=r"\(1, 2, 3, 8\)"):
        layer(x[None], x[None], x[None])


# positions, sentences


def test_positional_encoding_is_the_papers():
    table = positional_encoding(10, 6)
    for place in range(10):
        for column in range(6):
            angle = place / 10000 ** (2 * (column // 2) / 6)
            assert table[place, column] == pytest.approx(np.cos(angle) if column % 2 else np.sin(angle), abs=1e-12)
    assert positional_encoding(3, 5).shape == (3, 5)
    assert positional_encoding(0, 4).shape == (0, 4)


def test_sentence_encoder_is_the_mean_of_what_self_attention_gives(rng):
    vectors = {word: rng.normal(size=6) for word in WORDS}
    X = np.array([vectors[word] for word in ["AI", "我", "AI"]])
    vector, weights = sentence_encoder(["AI", "我", "AI"], vectors)
    np.testing.assert_allclose(vector, reference.attend(X, X, X).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(weights, reference.weights(X, X), rtol=1e-12)
    assert vector.shape == (6,)
    np.testing.assert_array_equal(sentence_encoder("AI 我  AI", vectors)[0], vector)


def test_an_unknown_word_is_named():
    vectors = {word: [1.0, 2.0] for word in WORDS}
    with pytest.raises(UnknownWord, match="猫, 狗; the 5 words that have one: 我, 喜欢"):
        sentence_encoder("我 喜欢 猫 狗", vectors)
    with pytest.raises(UnknownWord, match="…"):
        sentence_encoder("猫", {str(number): [1.0] for number in range(100)})


def test_sentences_that_cannot_be_encoded():
    with pytest.raises(ShapeError, match="no words"):
        sentence_encoder([], {"我": [1.0]})
    with pytest.raises(ShapeError, match=r"the vector of AI has shape \(1,\) and that of 我 \(2,\)"):
        sentence_encoder("我 AI", {"我": [1.0, 2.0], "AI": [1.0]})
    with pytest.raises(DtypeError, match="dictionary"):
        sentence_encoder("我", [[1.0, 2.0]])


# seeing


def test_distribution_is_sorted_and_straight(capsys):
    weights = [[0.2, 0.5, 0.3], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    text = show_distribution(weights, ["我", "喜欢", "AI"])
    assert capsys.readouterr().out == text + "\n"
    assert text.splitlines() == [
        "我   → 喜欢  50.0%   AI    30.0%   我    20.0%",
        "喜欢 → 我   100.0%",
        "AI   → nothing",
    ]
    arrows = {cell_len(line.partition("→")[0]) for line in text.splitlines()}
    assert len(arrows) == 1


def test_distribution_shows_the_top_ones_and_other_keys():
    weights = [[0.1, 0.2, 0.3, 0.4]]
    assert show_distribution(weights, ["猫"], top=2, keys=list("abcd")) == "猫 → d  40.0%   c  30.0%"
    assert show_distribution(weights, ["猫"], top=9, keys=list("abcd")).count("%") == 4


def test_distribution_of_equal_weights_keeps_the_order_of_the_sentence():
    words = [f"w{place:02}" for place in range(40)]
    line = show_distribution(np.tile([0.02, 0.03], (40, 20)), words, top=40).splitlines()[7]
    assert re.findall(r"w\d\d", line) == ["w07", *words[1::2], *words[::2]]


def test_nothing_in_a_word_acts_on_the_terminal():
    assert "\x1b" not in show_distribution([[1.0]], ["\x1b[31mred\n"])


def test_distribution_says_what_does_not_fit():
    with pytest.raises(ShapeError, match=r"\(2, 3, 3\).*weights\[0\]"):
        show_distribution(np.zeros((2, 3, 3)), list("abc"))
    with pytest.raises(ShapeError, match=r"\(3, 3\), and 2 words"):
        show_distribution(np.zeros((3, 3)), list("ab"))


def test_plotting_draws_one_map_or_one_a_head(rng, tmp_path):
    one = plot_attention_weights(softmax(rng.normal(size=(5, 5))), WORDS, "一句话", tmp_path / "one.png")
    assert (tmp_path / "one.png").stat().st_size > 5000
    assert [axes.images[0].get_array().shape for axes in one.axes if axes.images] == [(5, 5)]
    assert one.get_suptitle() == "一句话"
    many = plot_attention_weights(softmax(rng.normal(size=(3, 5, 5))), WORDS)
    assert [axes.get_title() for axes in many.axes if axes.images] == ["head 0", "head 1", "head 2"]
    with pytest.raises(ShapeError, match=r"\(5, 5\)|5 × 5"):
        plot_attention_weights(np.zeros((5, 5)), WORDS[:4])


def test_words_may_come_one_by_one_but_must_come(capsys):
    assert lessons.show_distribution(np.eye(2), (word for word in "ab")) == lessons.show_distribution(np.eye(2), "ab")
    with pytest.raises(DtypeError, match="words are a NoneType"):
        lessons.sentence_encoder(None, {"a": [1.0]})
