"""The commands that look at models: `regard see`, `regard heads`, `regard open`."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("tokenizers")

import regard
from regard.see import load

from ..refusals import refused

SENTENCE = "The cat sat on the mat"
TOKENS = ["[CLS]", " The", " cat", " sat", " on", " the", " mat", "[SEP]"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    pytest.importorskip("transformers")
    from ..see.models import save_all

    return save_all(tmp_path_factory.mktemp("models"))


def numbers(run, *arguments):
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


class TestSee:
    def test_what_is_printed(self, run):
        code, out, err = run("see", SENTENCE)
        assert (code, err) == (0, "")
        assert out.startswith("encoder   6 layers of 8 heads, 8 tokens\nshown is   layer ")
        assert "most telling" in out
        assert "␣cat looks at" in out
        assert "--layer 0-5 --head 0-7" in out
        assert "\x1b" not in out

    def test_every_weight(self, run):
        told = numbers(run, "see", SENTENCE)
        record = load().look(SENTENCE).record
        assert [layer["queries"] for layer in told["layers"]] == [TOKENS] * 6
        for layer, own in zip(told["layers"], record.layers, strict=True):
            np.testing.assert_allclose(layer["weights"], own.weights(), atol=1e-6)

    def test_one_head(self, run):
        told = numbers(run, "see", SENTENCE, "--layer", 3, "--head", 5)
        assert told["shown"] == "layer 3 head 5 (encoder)"
        own = load().look(SENTENCE).record.layers[3].heads[5]
        np.testing.assert_allclose(told["weights"], own.weights(), atol=1e-6)

    def test_words(self, run):
        told = numbers(run, "see", "unbelievably", "--words", "--layer", 0)
        assert told["queries"] == ["[CLS]", "unbelievably", "[SEP]"]
        np.testing.assert_allclose(np.sum(told["weights"], axis=-1), 1, atol=1e-5)

    def test_a_pair(self, run):
        told = numbers(run, "see", "The cat", "--pair", "a mat")
        assert (told["queries"], told["keys"]) == (["[CLS]", " The", " cat", "[SEP]"], [" a", " mat", "[SEP]"])

    @pytest.mark.parametrize("way", ["file", "input"])
    def test_texts_from_elsewhere(self, run, monkeypatch, tmp_path, way):
        content = f"\ufeff{SENTENCE}\n".encode()
        (tmp_path / "text").write_bytes(content)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        told = numbers(run, "see", *(["--file", tmp_path / "text"] if way == "file" else []))
        assert told["layers"][0]["queries"][:-2] == TOKENS[:-1]  # the line's end is a token too

    @pytest.mark.parametrize(
        "text", ["a", "\0", "\x1b[2J\x07", "👨‍👩‍👧‍👦 🇩🇪", "مرحبا بالعالم", "猫坐在垫子上", "\u202e\u200b"]
    )
    def test_any_text(self, run, text):
        code, out, err = run("see", text)
        assert (code, err) == (0, "")
        assert not any(sign in out for sign in "\x1b\x07\0\u202e")

    def test_files_are_written_and_opened(self, run, tmp_path):
        record, picture = tmp_path / "run.regard", tmp_path / "cat.png"
        code, out, err = run("see", SENTENCE, "--save", record, "--plot", picture)
        assert (code, err) == (0, "")
        assert f"drawn: {picture}\nkept: {record}" in out
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert len(regard.open(record).layers) == 6
        before = numbers(run, "see", SENTENCE, "--layer", 2, "--head", 1)
        after = numbers(run, "open", record, "--layer", 2, "--head", 1)
        assert after["queries"] == before["queries"]
        np.testing.assert_allclose(after["weights"], before["weights"], atol=1e-6)
        code, out, err = run("open", record, "--layer", 1, "--head", 1, "--plot", tmp_path / "again.svg")
        assert (code, err) == (0, "")
        assert "layer 1 head 1 (encoder)" in out
        assert (tmp_path / "again.svg").exists()

    def test_a_picture_beside_json(self, run, tmp_path):
        numbers(run, "see", SENTENCE, "--plot", tmp_path / "cat.pdf")
        assert (tmp_path / "cat.pdf").read_bytes().startswith(b"%PDF")

    @pytest.mark.parametrize("width", [40, 80])
    def test_nothing_is_wider_than_the_terminal(self, run, monkeypatch, width):
        from rich.cells import cell_len

        monkeypatch.setenv("COLUMNS", str(width))
        for arguments in (["see", SENTENCE], ["heads", SENTENCE], ["heads", SENTENCE, "--all"]):
            _, out, _ = run(*arguments)
            assert max(cell_len(line) for line in out.splitlines()) <= width


class TestModels:
    """Folders of Hugging Face models."""

    def test_a_reader(self, run, folders):
        code, out, err = run("see", "the cat sat", "--model", folders["bert"])
        assert (code, err) == (0, "")
        assert "2 layers of 4 heads, 5 tokens" in " ".join(out.split())  # a long path wraps the line

    def test_a_writer(self, run, folders):
        code, out, err = run("see", "abc", "--model", folders["gpt2"], "--generate", 3)
        assert (code, err) == (0, "")
        assert "it wrote   " in out
        assert "» before a token: the model wrote it" in out
        told = numbers(run, "see", "abc", "--model", folders["gpt2"], "--generate", 3)
        assert told["layers"][0]["generated"] == 3

    def test_the_second_text_of_a_writer_looks_at_the_first(self, run, folders):
        told = numbers(run, "see", "ab", "--model", folders["gpt2"], "--pair", "cde")
        assert (told["queries"], told["keys"]) == (["c", "d", "e"], ["a", "b"])

    def test_a_translator(self, run, folders):
        code, out, err = run("see", "the cat", "--model", folders["marian"], "--generate", 3)
        assert (code, err) == (0, "")
        assert "most telling one (cross)" in out
        assert "3 tokens" in " ".join(out.split())
        code, out, err = run("heads", "the cat", "--model", folders["marian"])
        assert (code, err) == (0, "")
        assert " cross" in out

    @pytest.mark.parametrize(
        ("arguments", "code", "part"),
        [
            (["--model", "bert", "--generate", "3"], 2, "only reads"),
            (["--model", "gpt2", "--generate", "100"], 2, "at most 64"),
            (["--model", "marian", "--pair", "a"], 2, "--pair"),
            (["--model", "bert", "--layer", "2"], 2, "the layers are 0 to 1"),
        ],
    )
    def test_refused(self, run, folders, arguments, code, part):
        arguments = [str(folders.get(word, word)) for word in arguments]
        refused(run("see", "the cat", *arguments), code, part)


class TestHeads:
    def test_the_best_of_each_measure(self, run):
        code, out, err = run("heads", "the cat sat on the mat and the cat ran")
        assert (code, err) == (0, "")
        assert out.startswith("encoder   48 heads; the best 3 of each measure")
        for name in ("entropy", "distance", "sink", "previous_token", "induction"):
            assert f"\n{name} " in out

    def test_every_head(self, run):
        _, out, _ = run("heads", SENTENCE, "--all")
        assert sum(line.startswith("L") for line in out.splitlines()) == 48
        _, out, _ = run("heads", SENTENCE, "--sort", "entropy", "--top", 5)
        assert sum(line.startswith("L") for line in out.splitlines()) == 5

    def test_the_numbers_are_those_of_the_record(self, run):
        told = numbers(run, "heads", SENTENCE, "--sort", "previous", "--top", 3)
        record = load().look(SENTENCE).record
        found = [head["previous_token"] for head in told["heads"]]
        assert found == sorted(found, reverse=True)
        best = told["heads"][0]
        weights = np.asarray(record.layers[best["layer"]].heads[best["head"]].weights())
        assert np.isclose(best["previous_token"], np.diagonal(weights, -1).mean(), atol=1e-5)

    def test_a_picture(self, run, tmp_path):
        code, out, _ = run("heads", SENTENCE, "--plot", tmp_path / "heads.svg")
        assert code == 0
        assert out.endswith(f"drawn: {tmp_path / 'heads.svg'}\n")
        assert (tmp_path / "heads.svg").exists()


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "part"),
        [
            (["see", ""], "no words"),
            (["see", " \t\n"], "no words"),
            (["see", "a\udcff"], "not UTF-8"),
            (["see", "a", "--layer", "99"], "no layer 99; the layers are 0 to 5"),
            (["see", "a", "--layer", "-1"], "no layer -1"),
            (["see", "a", "--layer", "1", "--head", "99"], "the heads are 0 to 7"),
            (["see", "a", "--head", "2"], "which layer"),
            (["see", "a", "--layer", "x"], "--layer"),
            (["see", "a", "--generate", "5"], "encoder only reads"),
            (["see", "a", "--generate", "-1"], "--generate is -1"),
            (["see", "a", "--pair", " "], "--pair has no words"),
            (["see", "a", "--model", ""], "no name"),
            (["see", "a", "--plot", "x.bmp"], "let it end in .png, .svg, .pdf"),
            (["see", "cat " * 2000], "2,003 tokens, and encoder takes at most 1,024"),
            (["heads", " "], "no words"),
            (["heads", "a", "--sort", "beauty"], "the columns are entropy"),
            (["heads", "a", "--top", "-1"], "--top is -1"),
            (["open"], "'file'"),
        ],
    )
    def test_calls_that_make_no_sense(self, run, arguments, part):
        refused(run(*arguments), 2, part)

    def test_files_that_cannot_be_read(self, run, tmp_path):
        (tmp_path / "bytes").write_bytes(b"ab\xff\0")
        (tmp_path / "half").write_bytes(b"\xed\xa0\x80")
        (tmp_path / "empty").write_text("")
        refused(run("see", "--file", tmp_path / "none"), 1, "cannot read", "No such file")
        refused(run("see", "--file", tmp_path), 1, "Is a directory")
        refused(run("see", "--file", tmp_path / "bytes"), 1, "bytes is not UTF-8 text: byte 2 is 0xff.\n")
        refused(run("see", "--file", tmp_path / "half"), 1, "not UTF-8")
        refused(run("see", "--file", tmp_path / "empty"), 2, "no words")
        refused(run("see", "a", "--file", tmp_path / "empty"), 2, "give one of them")
        refused(run("open", tmp_path / "none"), 1, "no such file")
        refused(run("open", tmp_path), 1, "folder")
        refused(run("open", tmp_path / "bytes"), 1, "bytes")

    def test_files_that_cannot_be_written_are_said_before_the_model_is_loaded(self, run, tmp_path):
        nowhere = ["--model", tmp_path / "no-model"]
        for option, name in (("--save", "x.regard"), ("--plot", "x.png")):
            refused(run("see", "a", option, tmp_path / "no" / name, *nowhere), 1, "there is no folder")
        refused(run("see", "a", "--save", tmp_path, *nowhere), 1, "it is a folder")
        (tmp_path / "a.png").mkdir()
        refused(run("heads", "a", "--plot", tmp_path / "a.png", *nowhere), 1, "it is a folder")

    @pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="a folder in which nobody can write")
    def test_a_place_that_takes_nothing(self, run):
        refused(run("see", "a", "--save", "/proc/x.regard"), 1, "x.regard")


class TestProcess:
    def command(self, *arguments):
        return [sys.executable, "-m", "regard", *arguments]

    def test_a_closed_pipe_ends_quietly(self):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            self.command("see", SENTENCE), stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
        )
        os.close(writing)
        assert done.stderr == b""

    def test_an_interrupt_ends_quietly(self):
        # and it waits for a text
        code = "from regard.commands import main; print('ready', flush=True); main(['see'])"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err.strip()) == (130, b"", b"")

    def test_colours_where_they_are_wanted(self):
        base = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
        terminal = base | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "FORCE_COLOR": "1"}
        done = subprocess.run(self.command("see", "a"), capture_output=True, env=terminal, timeout=60, check=False)
        assert b"48;2;" in done.stdout
        assert done.returncode == 0
