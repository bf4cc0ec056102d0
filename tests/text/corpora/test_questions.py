"""Questions with answers in a text: SQuAD's JSON and JSON lines."""

import json

import pytest

from regard.errors import FileError
from regard.text.corpora import questions

CONTEXT = "The cat sat on the mat."


def squad(*asked):
    return json.dumps({"data": [{"paragraphs": [{"context": CONTEXT, "qas": list(asked)}]}]})


def answered(question, *answers):
    return {"question": question, "answers": [{"text": text, "answer_start": start} for text, start in answers]}


def expected(question, answer, start, *others):
    every = json.dumps([*others, answer])
    return {"question": question, "context": CONTEXT, "answer": answer, "start": start, "answers": every}


def test_squad(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(
        squad(
            answered("Who?", ("dog", 4), ("cat", 4)),
            answered("Why?"),
            answered("Where?", ("mat", 3)),
            {"question": "When?"},
            answered(" ", ("cat", 4)),
        ),
        encoding="utf-8",
    )
    corpus = questions(path)
    assert list(corpus) == [expected("Who?", "cat", "4", "dog"), expected("Why?", "", "-1")]
    assert [bad.why for bad in corpus.skipped.first] == [
        "question 3: the answer does not stand at character 3 of the context: mat",
        "question 4: no answers",
        "question 5: question is empty or no text",
    ]


@pytest.mark.parametrize("context", ["context", "passage"])
def test_lines(tmp_path, context):
    path = tmp_path / "a.jsonl"
    lines = [
        {context: CONTEXT, "qas": [["Who?", "cat", 4], ["Why?", "", -1], ["Where?", "mat", 3]]},
        {context: CONTEXT},
        {context: CONTEXT, "qas": [["Who?"]]},
        {context: CONTEXT, "qas": [["Where?", "mat", 19]]},
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    corpus = questions(path)
    assert list(corpus) == [expected("Who?", "cat", "4"), expected("Why?", "", "-1"), expected("Where?", "mat", "19")]
    assert [bad.line for bad in corpus.skipped.first] == [1, 2, 3]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"data": [{"paragraphs": [{}]}]}', "{}", "[" * 100_000])
def test_other_json(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FileError, match="is not as SQuAD has it"):
        list(questions(path))


def test_no_questions(tmp_path):
    for name, content in (("a.json", '{"data": []}'), ("a.jsonl", "")):
        (tmp_path / name).write_text(content, encoding="utf-8")
        with pytest.raises(FileError, match="no question in"):
            list(questions(tmp_path / name))
