"""Byte-level BPE: no text is unknown, and every piece says where it stands."""

import hashlib
import json
import tracemalloc

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import FileError, OptionError
from regard.text.bpe import Tokenizer

SENTENCES = [
    "The cat sat on the mat, and the dog sat on the cat.",
    "Nobody knows where the cat went after that; the dog does.",
    "A cat is not a dog, and the mat is not a bed.",
]
HOSTILE = {
    "Chinese": "我喜欢学习AI技术。",
    "emoji": "👨‍👩‍👧 and 🇨🇳",
    "control": "a\x00b\x1bc\r\n\t\x7f",
    "right to left": "\u202eمرحبا بالعالم",
    "combining": "e\u0301\u0301\u0301",
    "specials by name": "[PAD][CLS] [SEP]",
    "no break space": "\xa0\u2003x\u3000",
    "only spaces": "   ",
    "nothing": "",
    "long": "x" * 5000,
    "last plane": "\U0010ffff",
}


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(SENTENCES, 300)


def same_text(found, text):
    """Equal, but for the one space at the beginning that stands for the beginning."""
    return found == text.removeprefix(" ")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_every_text_comes_back(tokenizer, text):
    encoded = tokenizer.encode(text)
    assert same_text(tokenizer.decode(encoded.ids), text)
    assert (encoded.ids[0], encoded.ids[-1]) == (tokenizer.first, tokenizer.last)
    assert len(encoded.ids) == len(encoded.pieces) == len(encoded.offsets)
    assert tokenizer.pad not in encoded.ids
    assert encoded.ids.count(tokenizer.first) == encoded.ids.count(tokenizer.last) == 1


@given(text=st.text())
def test_any_text_comes_back(tokenizer, text):
    assert same_text(tokenizer.decode(tokenizer.encode(text).ids), text)


@given(text=st.text())
def test_offsets_cover_all_signs_in_order(tokenizer, text):
    encoded = tokenizer.encode(text, ends=False)
    covered = {place for start, end in encoded.offsets for place in range(start, end)}
    assert {place for place, sign in enumerate(text) if sign != " "} <= covered
    assert encoded.offsets == sorted(encoded.offsets)
    assert all(start < end for start, end in encoded.offsets)


def test_half_a_surrogate_pair_is_a_replacement_sign(tokenizer):
    encoded = tokenizer.encode("a\ud800b")
    assert tokenizer.decode(encoded.ids) == "a\ufffdb"
    assert encoded.offsets[-2] == (2, 3)


def test_offsets_leave_the_space_out(tokenizer):
    text = "The cat  sat."
    encoded = tokenizer.encode(text)
    assert encoded.pieces == ["[CLS]", "ĠThe", "Ġcat", "Ġ", "Ġsat", ".", "[SEP]"]
    assert [text[start:end] for start, end in encoded.offsets] == ["", "The", "cat", " ", "sat", ".", ""]


def test_a_word_is_the_same_piece_at_the_beginning_and_later(tokenizer):
    assert tokenizer.encode("cat", ends=False).ids == tokenizer.encode("the cat", ends=False).ids[1:]


def test_a_sign_that_takes_no_space_gets_none(tokenizer):
    assert tokenizer.encode("我", ends=False).offsets == [(0, 1)] * 3


@pytest.mark.parametrize("text", ["the [MASK].", "the[MASK]."])
def test_a_mask_takes_the_place_of_a_word(tokenizer, text):
    encoded = tokenizer.encode(text)
    assert encoded.pieces == ["[CLS]", "Ġthe", "[MASK]", ".", "[SEP]"]
    assert text[slice(*encoded.offsets[2])] == "[MASK]"
    assert tokenizer.decode(encoded.ids) == "the [MASK]."


def test_ends_can_be_left_off(tokenizer):
    assert tokenizer.encode("the cat", ends=False).ids == tokenizer.encode("the cat").ids[1:-1]


SIGNS = st.sampled_from([*"ab .\t👨我", "\ud800", "\xa0", "[MASK]", " [MASK]", "[PAD]", "the cat", "\u202e"])


@given(texts=st.lists(st.one_of(st.text(), st.lists(SIGNS).map("".join))), ends=st.booleans())
def test_many_texts_are_taken_apart_as_each_by_itself(tokenizer, texts, ends):
    assert tokenizer.ids(texts, ends=ends) == [tokenizer.encode(text, ends=ends).ids for text in texts]


def test_many_hostile_texts(tokenizer):
    texts = [*HOSTILE.values(), "👨 first", "\ud800\udfff", " 👨", "[MASK]", " [MASK] the", "the [MASK]"]
    assert tokenizer.ids(texts) == [tokenizer.encode(text, ends=False).ids for text in texts]
    assert tokenizer.ids([]) == []


def test_a_vocabulary_is_trained_on_a_stream():
    """20 MB of text that is made as it is asked for, in less than 5 MB of Python's memory."""
    line = "the cat sat on the mat and the dog sat on the cat " * 100
    tracemalloc.start()
    try:
        trained = Tokenizer.train((f"{line} {number}" for number in range(4000)), 300)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert trained.size == 300
    assert peak < 5_000_000


def test_pieces_by_number_and_by_name(tokenizer):
    assert tokenizer.piece(tokenizer.id("Ġcat")) == "Ġcat"
    assert tokenizer.id("Ġelephant") is None
    for number in (-1, tokenizer.size):
        with pytest.raises(OptionError, match=f"{number} is no piece; .* 0 to {tokenizer.size - 1}"):
            tokenizer.decode([number])


def test_the_size_is_kept_to(tokenizer):
    assert tokenizer.size == 300
    assert Tokenizer.train(["a"], 1000).size == 261, "256 bytes, 4 special pieces, and Ġa"
    for size in (259, 300.0, True):
        with pytest.raises(OptionError, match=f"size is {size}; it must be a whole number, 260 or more"):
            Tokenizer.train(SENTENCES, size)


def test_saved_and_loaded(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "new" / "folder")
    for place in ("new/folder", "new/folder/tokenizer.json"):
        loaded = Tokenizer.load(tmp_path / place)
        assert loaded.size == tokenizer.size
        assert loaded.encode("the cat 我 [MASK]") == tokenizer.encode("the cat 我 [MASK]")
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["tokenizer.json"]


def test_two_vocabularies_in_one_folder(tokenizer, tmp_path):
    other = Tokenizer.train(["我喜欢学习"], 270)
    tokenizer.save(tmp_path)
    other.save(tmp_path, "target-tokenizer.json")
    assert Tokenizer.load(tmp_path).hash == tokenizer.hash
    assert Tokenizer.load(tmp_path, "target-tokenizer.json").hash == other.hash
    with pytest.raises(FileError, match=r"cannot read .*third\.json"):
        Tokenizer.load(tmp_path, "third.json")


def test_the_hash_is_that_of_the_file(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    assert tokenizer.hash == hashlib.sha256((tmp_path / "tokenizer.json").read_bytes()).hexdigest()
    assert Tokenizer.load(tmp_path).hash == tokenizer.hash
    assert Tokenizer.train(SENTENCES, 300).hash == tokenizer.hash
    assert Tokenizer.train(SENTENCES, 299).hash != tokenizer.hash


def test_files_that_are_no_tokenizer(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    with pytest.raises(FileError, match=r"cannot read .*tokenizer\.json: No such file"):
        Tokenizer.load(path)
    tokenizer.save(tmp_path)
    for content in (b"", path.read_bytes()[:-100], b'{"a": 1}', b"[]"):
        path.write_bytes(content)
        with pytest.raises(FileError, match=r"tokenizer\.json is damaged, or no tokenizer"):
            Tokenizer.load(tmp_path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="not UTF-8"):
        Tokenizer.load(tmp_path)


def test_a_tokenizer_of_another_model(tokenizer, tmp_path):
    tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0, "[PAD]": 1}, [])).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(FileError, match=r"no tokenizer of this kind: .* no \[CLS\], \[SEP\], \[MASK\]"):
        Tokenizer.load(tmp_path)


def test_the_file_is_what_the_library_reads(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    other = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert other.encode(" the cat").ids == tokenizer.encode("the cat").ids
    added = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
    assert [token["content"] for token in added] == ["[MASK]"]
