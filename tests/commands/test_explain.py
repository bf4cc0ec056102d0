import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import regard

from .. import reference
from ..refusals import refused

SENTENCE = "我 喜欢 学习 AI 技术"
VOCABULARY = "我 1 0 0.5\n喜欢 0.2 1 0\n学习 0 0.3 1\nAI 0.9 0.1 0.4\n技术 0.5 0.5 0.5\n"


@pytest.fixture
def vocabulary(tmp_path):
    path = tmp_path / "lesson.txt"
    path.write_text(VOCABULARY, encoding="utf-8")
    return path


def numbers(run, *arguments):
    code, out, err = run("explain", *arguments, "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def arrays(found):
    """The lists of the JSON as float64 arrays, null as −inf."""
    names = set(found) - {"words", "mask", "seed", "scale", "heads", "d_model", "d_k"}
    tables = {name: found[name] for name in names if found[name] is not None}
    return {
        name: np.nan_to_num(np.array(table, dtype=np.float64), nan=-np.inf, neginf=-np.inf)
        for name, table in tables.items()
    }


def spawned(code, *arguments, **options):
    command = [sys.executable, "-W", "error", *code, *arguments]
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **options)


class TestJson:
    @pytest.mark.parametrize("mask", ["none", "causal"])
    @pytest.mark.parametrize("shape", [[], ["--heads", "2"], ["--d-k", "3"], ["--heads", "3", "--d-k", "5"]])
    def test_every_step_against_plain_numpy(self, run, mask, shape):
        found = numbers(run, SENTENCE, "--mask", mask, "--seed", "7", *shape)
        step = arrays(found)
        allowed = np.tri(5, dtype=bool) if mask == "causal" else None
        Q, K, V = (np.stack([step["vectors"] @ W for W in step[f"W_{name}"]]) for name in "QKV")
        scaled = reference.scores(Q, K)
        weights = reference.weights(Q, K, allowed=allowed)
        mixed = weights @ V
        joined = np.concatenate(list(mixed), axis=1)
        expected = {
            "Q": Q, "K": K, "V": V, "products": scaled * np.sqrt(found["d_k"]), "scaled": scaled, "weights": weights,
            "masked": reference.scores(Q, K, allowed=allowed), "mixed": mixed, "joined": joined,
            "output": joined @ step["W_O"] if found["heads"] > 1 else joined,
        }  # fmt: skip
        for name, table in expected.items():
            assert step[name].shape == table.shape, name
            assert np.allclose(step[name], table, rtol=1e-13, atol=1e-14), name
        assert set(expected) | {"vectors", "W_Q", "W_K", "W_V"} == set(step) - {"W_O"}

    def test_masked_scores_are_null(self, run):
        found = numbers(run, "a b c", "--mask", "causal")
        assert [[number is None for number in row] for row in found["masked"][0]] == [
            [False, True, True], [False, False, True], [False, False, False],
        ]  # fmt: skip
        assert found["weights"][0][0] == [1.0, 0.0, 0.0]
        assert found["W_O"] is None

    def test_every_word_of_a_long_text(self, run):
        words = [f"w{place}" for place in range(200)]
        found = numbers(run, " ".join(words))
        assert found["words"] == words
        assert np.array(found["weights"]).shape == (1, 200, 200)

    def test_hostile_words_are_escaped_and_kept(self, run):
        text = "\x1b[2J \x9b31m \u202ex 猫 😀"
        _, out, _ = run("explain", text, "--json")
        assert out.isascii()
        assert json.loads(out)["words"] == text.split()

    def test_vectors_of_a_file(self, run, vocabulary):
        found = numbers(run, "AI 我 AI", "--vectors", vocabulary)
        assert found["vectors"] == [[0.9, 0.1, 0.4], [1, 0, 0.5], [0.9, 0.1, 0.4]]
        assert (found["d_model"], found["d_k"]) == (3, 3)

    def test_the_same_word_the_same_vector(self, run):
        one, two = numbers(run, "我 喜欢 我"), numbers(run, "你 也 喜欢 我")
        assert one["vectors"][0] == one["vectors"][2] == two["vectors"][3]
        assert one["vectors"][1] == two["vectors"][2]
        assert one["W_Q"] == two["W_Q"]
        assert numbers(run, "我", "--seed", "1")["vectors"] != numbers(run, "我")["vectors"]


class TestText:
    def test_words_need_no_quotes(self, run):
        assert numbers(run, "我", "喜欢", "AI")["words"] == ["我", "喜欢", "AI"]

    def test_chinese_without_spaces(self, run):
        assert numbers(run, "我喜欢AI技术")["words"] == ["我", "喜", "欢", "AI", "技", "术"]

    @pytest.mark.parametrize("arguments", [[], ["-"]])
    def test_standard_input(self, run, monkeypatch, arguments):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\ufeff我 喜欢\nAI\n".encode())))
        assert numbers(run, *arguments)["words"] == ["我", "喜欢", "AI"]

    def test_one_word(self, run):
        code, out, err = run("explain", "AI")
        assert (code, err) == (0, "")
        assert "100.0%" in out

    def test_what_is_printed(self, run):
        code, out, err = run("explain", SENTENCE)
        assert (code, err) == (0, "")
        assert "\x1b" not in out
        assert all(word in out for word in SENTENCE.split())


class TestRefused:
    """One line on standard error, nothing on standard output, and never a traceback."""

    @pytest.mark.parametrize(
        ("arguments", "parts"),
        [
            (["explain", ""], ["no words"]),
            (["explain", "  \t\n"], ["no words"]),
            (["explain", "a", "--heads", "3"], ["3 heads", "4 numbers", "1, 2, 4"]),
            (["explain", "a", "--heads", "0"], ["heads is 0"]),
            (["explain", "a", "--d-k", "0"], ["d_k is 0"]),
            (["explain", "a", "--d-k", "-3"], ["d_k is -3"]),
            (["explain", "a", "--seed", "-1"], ["seed is -1"]),
            (["explain", "a", "--mask", "future"], ["--mask", "future"]),
            (["explain", "a", "--heads", "two"], ["--heads"]),
            (["explain", "a", "--colour"], ["--colour"]),
            (["explain", "a", "--vectors"], ["--vectors"]),
            (["explain", *["a"] * 1001], ["1001 words"]),
            (["explain", "a\udcff"], ["not UTF-8"]),
            (["explane"], ["explane"]),
        ],
    )
    def test_usage(self, run, arguments, parts):
        refused(run(*arguments), 2, *parts)

    def test_no_text_on_a_terminal(self, run, monkeypatch):
        class Terminal(io.TextIOWrapper):
            def isatty(self):
                return True

        monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(b"not to be read")))
        refused(run("explain"), 2, "there is no text")
        monkeypatch.setattr(sys, "stdin", None)
        refused(run("explain", "-"), 2, "there is no text")

    def test_standard_input_that_is_no_text(self, run, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ab\xff")))
        refused(run("explain"), 1, "standard input", "byte 2 is 0xff")

    def test_files(self, run, tmp_path):
        refused(run("explain", "a", "--vectors", tmp_path / "none.txt"), 1, "none.txt", "No such file")
        refused(run("explain", "a", "--vectors", tmp_path), 1, "Is a directory")
        for content, part in (
            (b"\x89PNG\r\n\x1a\n\0\0", "not UTF-8"),
            (b"a 1 2\nb 1\n", "line 2"),
            (b"a nan 1\nb 1 1", "nan"),
        ):
            path = tmp_path / "bad"
            path.write_bytes(content)
            refused(run("explain", "a b", "--vectors", path), 1, str(path), part)

    def test_unknown_words_are_named(self, run, vocabulary):
        refused(run("explain", "我 喜歡 AJ", "--vectors", vocabulary), 1, "喜歡 (nearest: 喜欢)", "AJ (nearest: AI)")

    def test_messages_cannot_act_on_the_terminal(self, run, vocabulary, tmp_path):
        answer = run("explain", "\x1b[31mred\x07 \u202e", "--vectors", vocabulary)
        refused(answer, 1, r"\x1b[31mred\x07", r"\u202e")
        assert "\x1b" not in answer[2]
        refused(run("explain", "a", "--vectors", tmp_path / "a\nb"), 1, r"a\nb")


def test_version_and_help(run):
    assert run("--version") == (0, f"regard {regard.__version__}\n", "")
    for arguments in ([], ["--help"]):
        code, out, _ = run(*arguments)
        assert code == 0
        assert "explain" in out
    code, out, _ = run("explain", "--help")
    assert all(option in out for option in ("--mask", "--heads", "--d-k", "--seed", "--vectors", "--json"))


class TestProcess:
    LOADED = "import sys; print(sorted({'torch', 'matplotlib', 'transformers', 'jax', 'numpy'} & set(sys.modules)))"

    def after(self, *arguments):
        """A program that says what a command has loaded."""
        call = f"try: main({list(arguments)})\nexcept SystemExit: pass"
        return f"from regard.commands import main\n{call}\n{self.LOADED}"

    def test_import_is_light(self):
        done = spawned(["-c", f"import regard; {self.LOADED}"])
        assert done.stdout.strip() == b"[]"

    def test_help_is_light(self):
        assert spawned(["-c", self.after("--help")]).stdout.strip().endswith(b"[]")

    def test_explain_needs_numpy_alone(self):
        assert spawned(["-c", self.after("explain", "a b")]).stdout.strip().endswith(b"['numpy']")

    def test_as_a_module(self):
        done = spawned(["-m", "regard"], "--version")
        assert done.stdout.decode().strip() == f"regard {regard.__version__}"

    @pytest.mark.parametrize("arguments", [["a b"], ["a b", "--json"], [" ".join(map(str, range(300))), "--json"]])
    def test_a_closed_pipe_ends_quietly(self, arguments):
        reading, writing = os.pipe()
        os.close(reading)
        command = [sys.executable, "-m", "regard", "explain", *arguments]
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False)
        os.close(writing)
        assert done.stderr == b""

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
    def test_a_full_disk_is_said(self):
        with open("/dev/full", "wb") as full:
            command = [sys.executable, "-m", "regard", "explain", "a"]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
        assert done.returncode == 1
        assert done.stderr == b"regard: cannot write the output: No space left on device.\n"

    def test_a_terminal_without_unicode(self):
        done = spawned(["-m", "regard"], "explain", SENTENCE, env=os.environ | {"PYTHONIOENCODING": "ascii"})
        assert done.returncode == 0
        assert done.stderr == b""
        assert rb"\u6211" in done.stdout

    @pytest.mark.parametrize(
        ("environment", "colours"),
        [({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False), ({}, False)],
    )
    def test_colours(self, environment, colours):
        base = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
        terminal = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONIOENCODING": "utf-8"}
        out = spawned(["-m", "regard"], "explain", SENTENCE, env=base | terminal | environment).stdout
        assert (b"48;2;" in out) == colours
        assert ("░░".encode() in out) != colours
