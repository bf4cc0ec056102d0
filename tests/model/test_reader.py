"""The reader: padding, segments, one graph, and weights that come from a trained one."""

import re
from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from regard.errors import DtypeError, FileError, OptionError, ShapeError
from regard.model import Answerer, Classifier, Reader, TextEncoder, TextEncoderConfig
from regard.model.start import reader_config, reader_of

from .reading import CONFIG, padded, texts, train

ENCODER = TextEncoderConfig(vocabulary=24, width=32, heads=4, depth=1, hidden=48, longest=32, tokenizer="a" * 64)
MASKED = 3


@pytest.fixture
def reader():
    return Reader(CONFIG).eval()


def test_padding_never_changes_a_token(float64):
    reader = Reader(replace(CONFIG, segments=2)).eval()
    torch.nn.init.normal_(reader.segment_embedding.weight)
    rows = texts(6)
    ids, mask = padded(rows, more=5)
    segments = (torch.arange(ids.shape[1]) > 2).long().expand_as(ids)
    found = reader(ids, mask, segments)
    for number, row in enumerate(rows):
        alone = reader(torch.tensor([row]), segments=segments[:1, : len(row)])[0]
        torch.testing.assert_close(found[number, : len(row)], alone, rtol=1e-12, atol=1e-12)


def test_what_stands_in_the_padding_does_not_matter(reader):
    ids, mask = padded(texts(4), more=3)
    other = torch.where(mask, ids, 7)
    assert torch.equal(reader(other, mask)[mask], reader(ids, mask)[mask])


def test_a_row_of_padding_alone_is_finite_and_so_are_its_gradients():
    reader = Reader(CONFIG).train()
    ids, mask = padded(texts(3))
    mask[1] = False
    found = reader(ids, mask)
    assert found.isfinite().all()
    found.square().sum().backward()
    assert all(weight.grad.isfinite().all() for weight in reader.parameters())


def test_segments_are_told_apart_once_they_are_learned():
    reader, plain = Reader(replace(CONFIG, segments=2)).eval(), Reader(CONFIG).eval()
    reader.start_from(plain)
    ids = torch.tensor([texts(1)[0]])
    second = torch.ones_like(ids)
    assert torch.equal(reader(ids, segments=second), plain(ids)), "at first they say nothing"
    torch.nn.init.normal_(reader.segment_embedding.weight)
    assert not torch.allclose(reader(ids, segments=second), reader(ids), atol=1e-3)
    torch.testing.assert_close(reader(ids, segments=torch.zeros_like(ids)), reader(ids))


def test_what_does_not_fit_is_said(reader):
    ids = torch.tensor([[1, 5, 2]])
    with pytest.raises(OptionError, match="this model has none; make it with segments=2"):
        reader(ids, segments=ids)
    with pytest.raises(DtypeError, match="boolean"):
        reader(ids, mask=torch.ones(1, 3))
    two = Reader(replace(CONFIG, segments=2)).eval()
    with pytest.raises(ShapeError, match=re.escape("ids is (1, 3) and segments (1, 2)")):
        two(ids, segments=torch.ones(1, 2, dtype=torch.int64))
    with pytest.raises(OptionError, match="segments holds 2"):
        two(ids, segments=torch.full((1, 3), 2))


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
def test_a_forward_is_one_graph():
    torch._dynamo.reset()
    model = Classifier.of(Reader(replace(CONFIG, segments=2)), labels=("a", "b"), pooling="attention", dropout=0.0)
    ids, mask = padded(texts(3))
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    found, plain = compiled(ids, mask), model(ids, mask)
    torch.testing.assert_close(found, plain)
    one, other = (torch.autograd.grad(out.square().sum(), model.reader.embedding.weight)[0] for out in (found, plain))
    torch.testing.assert_close(one, other)


def test_masked_words_are_learned_by_heart():
    model = TextEncoder(replace(ENCODER, dropout=0.0))
    ids, mask = padded(texts(64))
    places = torch.tensor([1 + number % (int(count) - 2) for number, count in enumerate(mask.sum(1))])
    lines = torch.arange(64)
    answers, hidden = ids[lines, places], ids.clone()
    hidden[lines, places] = MASKED
    train(model, lambda: functional.cross_entropy(model(hidden, mask)[lines, places], answers), steps=200)
    found = model(hidden, mask)[lines, places].argmax(-1)
    assert (found == answers).double().mean() >= 0.99


@pytest.mark.parametrize("begin", [lambda source: Classifier.of(source, labels=("a", "b")), Answerer.of])
@pytest.mark.parametrize("in_a_folder", [False, True])
def test_a_pretrained_start_is_a_copy(begin, in_a_folder, tmp_path):
    encoder = TextEncoder(ENCODER).eval()
    encoder.save(tmp_path)
    begun = begin(tmp_path if in_a_folder else encoder)
    for name, weight in begun.reader.state_dict().items():
        if not name.startswith("segment"):
            assert torch.equal(weight, encoder.state_dict()[name]), name
            assert weight.data_ptr() != encoder.state_dict()[name].data_ptr(), "yours stay as they are"
    assert begun.config.tokenizer == ENCODER.tokenizer
    ids = torch.tensor([[1, 5, 2]])
    assert torch.equal(begun.reader.eval()(ids), encoder.vectors(ids))


def test_a_start_from_something_else_is_refused(tmp_path):
    encoder = TextEncoder(ENCODER)
    with pytest.raises(OptionError, match="another tokenizer: aaaaaaaaaaaa… there, bbbbbbbbbbbb… here"):
        Classifier.of(encoder, labels=("a", "b"), tokenizer="b" * 64)
    for changes in ({"heads": 2}, {"depth": 2}, {"vocabulary": 25}, {"rotary_base": 500.0}):
        ((name, number),) = changes.items()
        with pytest.raises(ShapeError, match=f"{name}={getattr(ENCODER, name)}, and this one {name}={number}"):
            Reader(replace(CONFIG, **changes)).start_from(encoder)
    with pytest.raises(ShapeError, match="segments=2, and this one segments=0"):
        Reader(CONFIG).start_from(Reader(replace(CONFIG, segments=2)))
    with pytest.raises(OptionError, match="a Linear has no reader to begin with; give a TextEncoder, Classifier or"):
        reader_of(torch.nn.Linear(2, 2))
    with pytest.raises(FileError, match="cannot read"):
        Classifier.of(tmp_path / "nowhere", labels=("a", "b"))
    (tmp_path / "config.json").write_text('{"kind": "regard.Translator"}')
    with pytest.raises(OptionError, match="holds a Translator, which has no reader"):
        Answerer.of(tmp_path)


def test_the_shape_of_a_reader_is_that_of_the_model_around_it():
    encoder = TextEncoder(ENCODER)
    assert reader_config(encoder, tokenizer="") == replace(CONFIG, dropout=ENCODER.dropout)
