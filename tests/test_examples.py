"""Every example is run, and the numbers it prints are the right ones."""

import json
import lzma
import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[1] / "examples"
IMDB = EXAMPLES.parents[1] / "shared" / "data" / "imdb" / "train.jsonl.xz"
NAMES = ["five_parts", "heads_and_masks", "sentence_encoder", "step_by_step", "thousand_reviews"]


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a program as `python PROGRAM ARGUMENTS` would, and gives what it printed."""
    threads = torch.get_num_threads()

    def run(program, *arguments):
        program = program if isinstance(program, Path) else EXAMPLES / f"{program}.py"
        monkeypatch.setattr(sys, "argv", [str(program), *map(str, arguments)])
        runpy.run_path(str(program), run_name="__main__")
        output = capsys.readouterr()
        assert output.err == ""
        assert "nan" not in output.out.lower().split()
        return output.out

    yield run
    torch.set_num_threads(threads)


def pictures(folder):
    return sorted(file.name for file in folder.iterdir() if file.read_bytes().startswith(b"\x89PNG"))


def test_every_example_is_tested():
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == NAMES


def test_step_by_step(run, tmp_path):
    text = run("step_by_step", "--save", tmp_path)
    for line in (
        "softmax([0.88, 0.78, 0.71]) = [0.3638 0.3292 0.307 ]",
        "weights [0.40111 0.19778 0.40111]  output [16.0445  3.9555]",
        "output [15.5841]",
        "[[0.81995736 0.02616278 0.15387986]",
        " [0.02856435 0.0325557  0.93887995]",
        " [0.14520511 0.74423134 0.11056355]]",
        "  我      0.265  0.212  0.196  0.162  0.165",  # softmax([0.525, 0.3, 0.225, 0.035, 0.05])
        "我   → 我    26.5%   喜欢  21.2%   学习  19.6%",
        "no vector for 猫",
        "  喜欢    0.400  0.600  0.000  0.000  0.000",
    ):
        assert line in text
    assert pictures(tmp_path) == ["causal.png", "step_by_step.png"]


def test_five_parts(run, tmp_path):
    text = run("five_parts", "--save", tmp_path)
    assert [int(part) for part in re.findall(r"^== (\d)\.", text, re.MULTILINE)] == [1, 2, 3, 4, 5]
    assert "each row adds up to [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]" in text
    assert "warm      → desert   50.0%   jungle   50.0%   glacier   0.0%" in text
    assert "warm      →   33.0 °C,   1510 mm of rain" in text, "the means of 38 and 28, of 20 and 3000"
    assert "changing the last word moves the others by 0.0\n" in text
    assert "d_model 16 in 4 heads of d_k 4: output (6, 16), weights (4, 6, 6)" in text
    assert pictures(tmp_path) == ["heads.png", "self_attention.png"]


def test_nothing_is_saved_unless_it_is_asked_for(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert "with --save FOLDER" in run("five_parts")
    run("sentence_encoder")
    assert not list(tmp_path.iterdir())


def test_thousand_reviews_without_a_file(run, tmp_path):
    program = tmp_path / "far" / "away" / "examples" / "thousand_reviews.py"
    program.parent.mkdir(parents=True)
    shutil.copy(EXAMPLES / "thousand_reviews.py", program)
    text = run(program, "--save", tmp_path / "pictures")
    assert "made up here" in text.splitlines()[0]
    check_reviews(text, 1000)
    assert pictures(tmp_path / "pictures") == ["the_first_review.png", "the_shortest_review.png"]


def test_thousand_reviews_from_a_file(run, tmp_path):
    path = tmp_path / "reviews.jsonl.xz"
    texts = ["one\u2028two\x85three <br /> four five " * 6, "Too SHORT.", "it's a film, and what a film " * 9] * 400
    with lzma.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
    text = run("thousand_reviews", "--data", path)
    assert str(path) in text.splitlines()[0]
    check_reviews(text, 1000)
    assert "the shortest review: too short [PAD] [PAD]" in text
    assert "the first review: one two three four five one" in text


def check_reviews(text, count):
    assert f"{count} reviews cut to 20 words" in text
    assert "10 batches of 100 through attention" in text
    assert f"weights ({count}, 20, 20): rows add up to 1.000000 … 1.000000" in text
    assert "weight on padding: 0.0\n" in text
    assert "[PAD]" in text, "a review with padding is shown"
    for review in re.split(r"the (?:first|shortest) review: ", text)[1:]:
        assert not re.search(r"\[PAD\] +[1-9]", review), "nobody looks at padding"


def test_heads_and_masks(run, tmp_path):
    text = run("heads_and_masks", "--save", tmp_path)
    assert "SimpleAttention: output (2, 5, 16), weights (2, 5, 5); apart from self_attention by 0.0" in text
    assert "[[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0]]" in text
    assert "gives zeros, not NaN: True" in text
    assert re.search(r"nn.MultiheadAttention +\(2, 5, 5\)", text)
    assert re.search(r"MultiHeadSelfAttention +\(2, 8, 5, 5\)", text)
    assert "deadline → enildaed" in text
    shares = [float(share) for share in re.findall(r"head 0 (\d\.\d\d)", text)]
    assert shares[0] < 0.2
    assert shares[-1] > 0.5, "the head has found where to look"
    assert pictures(tmp_path) == ["causal_heads.png", "cross_heads.png"]


def test_sentence_encoder(run, tmp_path):
    text = run("sentence_encoder", "--save", tmp_path)
    assert "Q and K (6, 4), V (6, 10): output (6, 10), weights (6, 6)" in text
    assert "two heads, joined and projected: output (6, 8), weights (2, 6, 6)" in text
    assert "alignment: 猫 ↔ cat, 坐 ↔ sat, 在 ↔ on, 垫子 ↔ mat, 上 ↔ on" in text
    rows = dict(re.findall(r"^(我|喜欢|学习|AI|技术) +((?:\d\.\d+ *){5})$", text, re.MULTILINE))
    assert len(rows) == 5
    assert all(sum(map(float, row.split())) == pytest.approx(1, abs=0.003) for row in rows.values())
    alike = {name: [float(number) for number in row.split()] for name, row in
             re.findall(r"^(我 喜欢 猫|learn AI) +((?:-?\d\.\d+ *){5})$", text, re.MULTILINE)}  # fmt: skip
    assert alike["我 喜欢 猫"][2] > 0.7 > 0.1 > abs(alike["我 喜欢 猫"][3])
    assert alike["learn AI"][4] > 0.9
    assert pictures(tmp_path) == ["alignment.png", "sentence.png"]


@pytest.mark.skipif(not IMDB.exists(), reason="no IMDb reviews beside the checkout: tried on made-up ones only")
def test_thousand_reviews_of_imdb(run):
    text = run("thousand_reviews")
    assert "train.jsonl.xz" in text.splitlines()[0]
    check_reviews(text, 1000)
