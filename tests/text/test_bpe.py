"""Byte-level BPE: no text is unknown, and every piece says where it stands."""

import json

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
