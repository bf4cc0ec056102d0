import json
import os

import numpy as np
import pytest

from regard.errors import FileError, OptionError, UnknownWord
from regard.text.vectors import draw, load

WORDS = {"cat": [1.0, -2.0, 0.5], "dog": [3.0, 4e-1, -1.0], "猫": [0.25, 0.0, 7.0]}
LINES = [f"{word} {' '.join(map(str, vector))}" for word, vector in WORDS.items()]


def written(tmp_path, content, name="vectors.txt"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


class TestDraw:
    def test_a_word_has_one_vector_wherever_it_stands(self):
        one, two = draw(["我", "喜欢", "我"], 4, seed=3), draw(["猫", "我"], 4, seed=3)
        assert one.shape == (3, 4)
        assert np.array_equal(one[0], one[2])
        assert np.array_equal(one[0], two[1])
        assert not np.array_equal(one[0], one[1])

    def test_seeds_differ(self):
        assert not np.array_equal(draw(["我"], 4, seed=0), draw(["我"], 4, seed=1))

    def test_nearly_equal_words_differ(self):
        vectors = draw(["a", "a\0", "b", "", "word a"], 8)
        assert len(np.unique(vectors, axis=0)) == 5

    def test_what_is_printed_with_one_decimal_is_all_there_is(self):
        vectors = draw([str(number) for number in range(500)], 4)
        assert np.array_equal(vectors, [[float(f"{number:.1f}") for number in row] for row in vectors])
        assert abs(vectors.mean()) < 0.1
        assert abs(vectors.std() - 1) < 0.1
        assert not np.signbit(vectors[vectors == 0]).any()

    def test_a_seed_below_0_is_refused(self):
        with pytest.raises(OptionError, match="seed is -1"):
            draw(["a"], 4, seed=-1)


class TestLoad:
    @pytest.mark.parametrize(
        "content",
        [
            "\n".join(LINES),
            "\n".join(["3 3", *LINES]) + "\n",
            "\r\n".join(LINES) + "\r\n",
            "\ufeff" + "\n".join(LINES),
            "\n\n".join(LINES).replace(" ", "\t"),
            "\n".join(f"  {line} " for line in LINES).replace(" ", "  "),
            json.dumps(WORDS),
            json.dumps(WORDS, indent=2, ensure_ascii=False),
            "\ufeff\n" + json.dumps(WORDS),
        ],
        ids=["plain", "counts", "crlf", "bom", "tabs", "blanks", "json", "indented", "json-bom"],
    )
    def test_every_form_gives_the_same(self, tmp_path, content):
        words = ["猫", "cat", "dog", "cat"]
        path = written(tmp_path, content)
        assert load(path, words).tolist() == [WORDS[word] for word in words]

    def test_the_suffix_json_is_believed(self, tmp_path):
        path = written(tmp_path, json.dumps({"{": [1, 2]}), "words.json")
        assert load(path, ["{"]).tolist() == [[1, 2]]

    def test_a_brace_may_be_a_word(self, tmp_path):
        assert load(written(tmp_path, "{ 1 2\n} 3 4\n"), ["}"]).tolist() == [[3, 4]]

    def test_vectors_of_one_number(self, tmp_path):
        path = written(tmp_path, "5 3\n6 4\n")
        assert load(path, ["5", "6"]).tolist() == [[3], [4]]

    def test_words_with_spaces_in_them_are_passed_over(self, tmp_path):
        path = written(tmp_path, "cat 1 2\n. . . 3 4\nat name@domain.com 5 6\ndog 7 8\n")
        assert load(path, ["cat", "dog"]).tolist() == [[1, 2], [7, 8]]

    def test_the_first_vector_of_a_word_counts(self, tmp_path):
        assert load(written(tmp_path, "cat 1 2\ncat 3 4\ndog 5 6\n"), ["cat", "dog"]).tolist() == [[1, 2], [5, 6]]

    def test_a_json_of_one_long_line(self, tmp_path):
        path = written(tmp_path, json.dumps({f"word{i}": [0.123456789] * 20 for i in range(6000)}))
        assert path.stat().st_size > 2**20
        assert load(path, ["word5999"]).shape == (1, 20)

    def test_a_large_file_is_streamed(self, tmp_path):
        path = tmp_path / "large.txt"
        with path.open("w") as file:
            file.write("400000 3\n")
            file.writelines(f"word{number} 0.1 0.2 {number}\n" for number in range(400_000))
        assert load(path, ["word399999", "word7"])[:, 2].tolist() == [399_999, 7]
        with pytest.raises(UnknownWord, match=r"wrd399999 \(nearest: word399999"):
            load(path, ["wrd399999"])

    def test_reading_ends_with_the_last_word(self, tmp_path):
        assert load(written(tmp_path, "cat 1 2\ndog 3 4\nthis is prose\n"), ["dog"]).tolist() == [[3, 4]]


class TestUnknown:
    def test_named_with_the_nearest(self, tmp_path):
        path = written(tmp_path, "喜欢 1 2\n学习 3 4\ntechnology 5 6\ncat 7 8\ncast 7 8\ncab 9 9\n")
        with pytest.raises(UnknownWord) as caught:
            load(path, ["喜歡", "cat", "Technolgy", "caat", "zzzz"])
        message = str(caught.value)
        assert "喜歡 (nearest: 喜欢)" in message
        assert "Technolgy (nearest: technology)" in message
        assert "caat (nearest: cat, cast, cab)" in message
        assert message.endswith("and zzzz.")
        assert "7" not in message.replace(str(path), "")

    def test_nothing_alike(self, tmp_path):
        with pytest.raises(UnknownWord, match=r"no vector for zzz\. It has, for example: cat, dog, 猫\."):
            load(written(tmp_path, "\n".join(["3 3", *LINES])), ["zzz"])

    def test_many_are_counted(self, tmp_path):
        with pytest.raises(UnknownWord, match="and 3 more"):
            load(written(tmp_path, "cat 1\ndog 2"), list("ABCDEFGH"))

    def test_in_json(self, tmp_path):
        with pytest.raises(UnknownWord, match=r"kat \(nearest: cat\)"):
            load(written(tmp_path, json.dumps(WORDS)), ["kat"])

    def test_from_a_pipe_there_is_no_suggestion(self):
        reading, writing = os.pipe()
        os.write(writing, b"cat 1 2\n")
        os.close(writing)
        try:
            with pytest.raises(UnknownWord, match=r"no vector for kat\.$"):
                load(f"/dev/fd/{reading}", ["kat"])
        finally:
            os.close(reading)


class TestBadFiles:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "is empty"),
            ("\n \n", "is empty"),
            ("cat 1 2\ndog 3\n", "line 2: dog has 1 number and the word of line 1 has 2"),
            ("cat 1 2\ndog 3 4 5\n", "line 2: dog has 3 numbers"),
            ("2 2\ncat 1 2\n\nowl 1 2 3\ndog 1 2\n", "line 4: owl has 3 numbers and the word of line 2 has 2"),
            ("cat 1 x\n", "line 1: x is not a number"),
            ("Once upon a time\n", "line 1: upon is not a number"),
            ("cat,1,2\n", "line 1 has no numbers"),
            ("cat 1 2\ndog\n", "line 2 has no numbers"),
            ("cat 1 nan\ndog 1 2", "line 1: the vector of cat has nan"),
            ("cat 1 2\ndog 1 -inf", "line 2: the vector of dog has -inf"),
            (b"\x1f\x8b\x08\x00 \xff\xfe 1 2\n", "line 1 is not UTF-8 text"),
            (b"2 3\ncat \x00\x01\x02\xff\xfa\xc0 \n", "is not UTF-8 text"),
            ("cat 1 2\n".encode("utf-16"), "is not UTF-8 text"),
            (b"\0" * 2**21, "line 1 is over 1048576 bytes long"),
            ('{"cat": [1, 2], "dog": [3]}', "dog has 1 number and cat has 2"),
            ('{"cat": [1, NaN], "dog": [1, 2]}', "the vector of cat has nan"),
            ('{"cat": [1, 2],\n "dog" [3]}', "line 2, column 8 is not JSON"),
            ('{"cat": 3, "dog": [1]}', "the vector of cat must be a list of numbers"),
            ('{"cat": [], "dog": []}', "the vector of cat must be a list of numbers"),
            ('{"cat": [true, false], "dog": [1, 2]}', "the vector of cat must be a list of numbers"),
            ('{"cat": [[1, 2]], "dog": [[1, 2]]}', "the vector of cat must be a list of numbers"),
            (f'{{"cat": [1{"0" * 400}], "dog": [1]}}', "the vector of cat has inf"),
            (f'{{"cat": [1{"0" * 5000}], "dog": [1]}}', "is not a JSON text that can be read"),
            ('{"cat": ' + "[" * 100_000, "is not a JSON text that can be read"),
            ("{}", "must hold a JSON object"),
        ],
    )
    def test_said_with_its_place(self, tmp_path, content, message):
        path = written(tmp_path, content)
        with pytest.raises(FileError) as caught:
            load(path, ["cat", "dog"])
        assert message in str(caught.value)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_a_list_in_json(self, tmp_path):
        with pytest.raises(FileError, match="must hold a JSON object"):
            load(written(tmp_path, "[1, 2]", "words.json"), ["cat"])

    def test_missing_or_a_folder(self, tmp_path):
        with pytest.raises(FileError, match=r"cannot read .*nowhere\.txt: No such file"):
            load(tmp_path / "nowhere.txt", ["cat"])
        with pytest.raises(FileError, match=r"cannot read .*: Is a directory"):
            load(tmp_path, ["cat"])


def test_one_number_a_word_after_a_tab(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("cat\t0.1\ndog\t0.3\n", encoding="utf-8")
    assert load(path, ["dog"]).tolist() == [[0.3]]
