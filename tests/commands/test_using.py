"""The commands that use a trained model: `regard translate`, `classify`, `generate`, `fill`, `answer`, `summarise`."""

import io
import json
import sys

import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")
pytest.importorskip("torch")

import regard
from regard.commands.app import app
from regard.predictions import load

from ..refusals import refused
from .folders import save_all

CAT = "the cat sat on the mat"
QUESTION = ["answer", "who sat?", "--context", CAT]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return save_all(tmp_path_factory.mktemp("trained"))


def objects(answer):
    """The JSON lines of a command that went well."""
    code, out, err = answer
    assert (code, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def calls(folders):
    """Each command with a text and its model."""
    return {
        "translate": ["translate", CAT, "--model", folders["translator"], "--longest", 5],
        "summarise": ["summarise", CAT, "--model", folders["translator"], "--longest", 5],
        "classify": ["classify", CAT, "--model", folders["classifier"]],
        "generate": ["generate", CAT, "--model", folders["language-model"], "--longest", 5, "--seed", 1],
        "fill": ["fill", "the cat [MASK] on the mat"],
        "answer": [*QUESTION, "--model", folders["answerer"]],
    }


COMMANDS = ["translate", "summarise", "classify", "generate", "fill", "answer"]


class TestEach:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_a_text(self, run, folders, command):
        code, out, err = run(*calls(folders)[command])
        assert (code, err) == (0, "")
        assert out.endswith("\n")

    @pytest.mark.parametrize("command", COMMANDS)
    def test_json(self, run, folders, command):
        (told,) = objects(run(*calls(folders)[command], "--json"))
        assert ("label" in told) if command == "classify" else isinstance(told["text"], str)

    @pytest.mark.parametrize("command", COMMANDS)
    def test_its_attention_is_shown_and_kept(self, run, folders, tmp_path, command):
        code, out, err = run(*calls(folders)[command], "--see", "--save", tmp_path / "run.regard")
        assert (code, err) == (0, "")
        assert "most telling" in out
        assert f"kept: {tmp_path / 'run.regard'}" in out
        assert "regard open" in out  # what else there is to see needs options that these commands have not
        assert "--plot" not in out
        assert regard.open(tmp_path / "run.regard").layers

    @pytest.mark.parametrize("command", COMMANDS)
    def test_help_has_an_example(self, run, command):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert f"regard {command} " in out

    @pytest.mark.parametrize("command", COMMANDS)
    def test_a_model_that_is_not_there(self, run, folders, tmp_path, command):
        arguments = [one for one in calls(folders)[command] if one not in folders.values() and one != "--model"]
        refused(run(*arguments, "--model", tmp_path / "none"), 1, "none")


def test_examples_are_not_broken_by_a_terminal_of_80_cells():
    lines = [line for one in app.registered_commands for line in one.callback.__doc__.splitlines()]
    examples = [line.strip() for line in lines if line.strip().startswith("regard ")]
    assert len(examples) > 10
    assert [one for one in examples if len(one) > 78] == []


class TestTexts:
    def test_a_line_for_each_of_file_and_input(self, run, folders, tmp_path, monkeypatch):
        texts = [CAT, "", "a dog ran"]
        expected = [f"{one.label}\t{one.probability:.1%}" for one in load(folders["classifier"])([CAT, "a dog ran"])]
        content = ("\ufeff" + "\r\n".join(texts) + "\n").encode()
        (tmp_path / "texts").write_bytes(content)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        for way in (["--file", tmp_path / "texts"], [], ["-"]):
            if way == ["-"]:
                monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
            code, out, err = run("classify", *way, "--model", folders["classifier"])
            assert (code, err) == (0, "")
            assert out.splitlines() == [expected[0], "", expected[1]]

    def test_a_blank_line_is_null_in_json(self, run, folders, tmp_path):
        (tmp_path / "texts").write_text(f"\n{CAT}\n")
        told = objects(run("classify", "--file", tmp_path / "texts", "--model", folders["classifier"], "--json"))
        assert told[0] is None
        assert told[1]["label"] in ("good", "bad")

    def test_more_lines_than_are_asked_about_at_once(self, run, folders, tmp_path):
        (tmp_path / "texts").write_text("".join(f"dog {number}\n" for number in range(150)))
        told = objects(run("classify", "--file", tmp_path / "texts", "--model", folders["classifier"], "--json"))
        one_by_one = load(folders["classifier"])([f"dog {number}" for number in range(150)])
        assert [one["label"] for one in told] == [one.label for one in one_by_one]

    def test_a_text_that_is_cut_is_told(self, run, folders):
        code, out, err = run("classify", "dog " * 100, CAT, "--model", folders["classifier"])
        assert (code, out.count("\n")) == (0, 2)
        assert err == f"regard: 1 text was longer than {folders['classifier']} reads, and cut.\n"

    @pytest.mark.parametrize("form", [[], ["--json"]])
    def test_so_is_a_prompt(self, run, folders, form):
        folder = folders["language-model"]
        code, _, err = run("generate", "dog " * 100, CAT, "cat " * 100, "--model", folder, "--longest", 3, *form)
        assert (code, err) == (0, f"regard: 2 texts were longer than {folder} reads, and cut.\n")


class TestWhatIsPrinted:
    def test_the_n_best_translations(self, run, folders):
        arguments = ["translate", CAT, "--model", folders["translator"], "--longest", 4, "--beam", 3, "--best", 3]
        (told,) = objects(run(*arguments, "--json"))
        (expected,) = load(folders["translator"])([CAT], width=3, n_best=3, longest=4)
        assert told["text"] == expected.text
        assert len(told["alternatives"]) == 2
        _, out, _ = run(*arguments)
        assert f"\n  {expected.alternatives[0].score:.2f}  " in out

    def test_what_each_word_looked_at(self, run, folders):
        arguments = ["translate", CAT, "a dog ran", "--model", folders["translator"], "--longest", 4, "--align"]
        told = objects(run(*arguments, "--json"))
        expected = load(folders["translator"])([CAT, "a dog ran"], longest=4, align=True)
        assert [one["alignment"] for one in told] == [[list(link) for link in one.alignment] for one in expected]
        assert all(one.alignment for one in expected)
        code, out, err = run(*arguments)
        assert (code, err) == (0, "")
        lines = [" ".join(f"{target}←{source}" for target, source, _ in one.alignment) for one in expected]
        assert out == "".join(f"{one.text}\n{line}\n" for one, line in zip(expected, lines, strict=True))

    def test_what_is_written_is_streamed(self, run, folders):
        arguments = ["generate", CAT, "--model", folders["language-model"], "--longest", 6, "--temperature", 0]
        (told,) = objects(run(*arguments, "--json"))
        code, out, _ = run(*arguments)
        assert code == 0
        assert out == f"{CAT}{told['text']}\n"

    def test_a_text_from_nothing(self, run, folders):
        arguments = ["generate", "", CAT, "--model", folders["language-model"], "--longest", 6, "--temperature", 0]
        nothing, cat = objects(run(*arguments, "--json"))
        assert (nothing["prompt"], cat["prompt"]) == ("", CAT)
        code, out, err = run(*arguments)
        assert (code, err) == (0, "")
        assert out == f"{nothing['text']}\n{CAT}{cat['text']}\n"

    def test_a_seed_is_the_same_text(self, run, folders):
        arguments = ["generate", CAT, "--model", folders["language-model"], "--longest", 20, "--seed"]
        first, again, other = (run(*arguments, seed)[1] for seed in (1, 1, 2))
        assert first == again != other

    def test_gaps(self, run):
        (told,) = objects(run("fill", "The cat [MASK] on the [MASK].", "--best", 2, "--json"))
        assert [len(gap["guesses"]) for gap in told["gaps"]] == [2, 2]
        code, out, _ = run("fill", "The cat [MASK] on the mat.", "--best", 1)
        assert code == 0
        assert out.count("\n") == 1
        assert "[MASK]" not in out

    def test_an_answer_is_a_part_of_its_context(self, run, folders, tmp_path):
        (tmp_path / "context").write_text(CAT)
        arguments = ["answer", "who sat?", "where?", "--model", folders["answerer"], "--file", tmp_path / "context"]
        told = objects(run(*arguments, "--json"))
        assert len(told) == 2
        assert all(one["text"] == CAT[one["start"] : one["end"]] for one in told)


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "part"),
        [
            (["translate", "a"], "--model"),
            (["translate", "a", "--model", "x", "--best", "6"], "--best is 6 and --beam is 4"),
            (["translate", "a", "--model", "x", "--beam", "0"], "--beam is 0; it must be from 1 to 64"),
            (["summarise", "a", "--model", "x", "--beam", "65"], "--beam is 65; it must be from 1 to 64"),
            (["translate", "a", "--model", "x", "--longest", "0"], "--longest is 0; it must be 1 or more"),
            (["generate", "a", "--model", "x", "--longest", "0"], "--longest is 0; it must be 1 or more"),
            (["generate", "a", "--model", "x", "--seed", "-1"], "--seed is -1; it must be from 0 to"),
            (["translate", "a", "--model", "x", "--best", "0"], "--best is 0; it must be from 1 to 64"),
            (["fill", "no gap"], "no [MASK]"),
            (["fill", " "], "text 1 has no words"),
            (["fill", "a\udcff"], "not UTF-8"),
            (["fill", "[MASK]", "--best", "0"], "best is 0"),
            (["fill", "[MASK] a", "[MASK] b", "--see"], "the attention of one text is shown, and there are more"),
            (["answer", "who?", "--model", "x"], "--context or as --file"),
            (["answer", "who?", "--model", "x", "--context", " "], "--context has no words"),
            (["generate", "a", "--model", "x", "--temperature", "-1"], "temperature is -1"),
            (["generate", "a", "--model", "x", "--top-p", "2"], "top_p is 2"),
        ],
    )
    def test_calls_that_make_no_sense(self, run, arguments, part):
        refused(run(*arguments), 2, part)

    def test_a_model_of_another_kind(self, run, folders):
        refused(
            run("translate", "a", "--model", folders["classifier"]), 2, "holds a Classifier", "regard classify",
            "regard train translation makes one",
        )  # fmt: skip
        refused(run("classify", "a", "--model", folders["answerer"]), 2, "holds an Answerer", "needs a Classifier")
        refused(run(*QUESTION, "--model", folders["classifier"]), 2, "this needs an Answerer")

    def test_files(self, run, folders, tmp_path):
        model = ["--model", tmp_path / "none"]  # said before it is looked for
        (tmp_path / "bytes").write_bytes(b"a\nb\xff\n")
        refused(run("classify", "--file", tmp_path / "no", *model), 1, "cannot read", "No such file")
        refused(run("classify", "--file", tmp_path, *model), 1, "Is a directory")
        refused(run("classify", "a", "--file", tmp_path / "bytes", *model), 2, "give one of them")
        refused(run("classify", "a", "--save", tmp_path / "no" / "x.regard", *model), 1, "there is no folder")
        refused(
            run("classify", "--file", tmp_path / "bytes", "--model", folders["classifier"]), 1, "line 2 of",
            "byte 1 is 0xff",
        )  # fmt: skip
