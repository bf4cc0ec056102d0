"""A model behind the page: texts that are typed, each a record of its own."""

import json
import threading

import pytest

from regard.errors import OptionError
from tests.view.serve.served import record, serving


class Reader:
    """A model that makes a record as long as its text, and one at a time."""

    def __init__(self):
        self.inside, self.most, self.read = 0, 0, []

    def __call__(self, text, pair, generate):
        self.inside += 1
        self.most = max(self.most, self.inside)
        threading.Event().wait(0.01)
        self.inside -= 1
        self.read.append((text, pair, generate))
        if "refuse" in text:
            raise OptionError("the model only reads; leave generate out.")
        if "memory" in text:
            raise MemoryError
        return record(max(len(text), 2), layers=1)


@pytest.fixture
def model():
    reader = Reader()
    with serving(record(5), reads=reader) as client:
        yield client, reader


def test_a_text_becomes_a_record(model):
    client, reader = model
    assert client.ask("/description", record=0).json["runs_text"] is True
    assert client.run(text="twelve signs", pair="and more", generate=3).json == {"record": 1}
    assert client.run(text="seven 7").json == {"record": 2}
    assert reader.read == [("twelve signs", "and more", 3), ("seven 7", None, 0)]
    assert len(client.ask("/description", record=1).json["tokens"][0]["texts"]) == 12
    assert len(client.ask("/description", record=2).json["tokens"][0]["texts"]) == 7
    assert len(client.tile(record=2, rows="0:7", cols="0:7", height=7, width=7).numbers) == 49
    assert client.ask("/").body.count(b'"record":2') == 1  # the page begins with the latest


def test_the_last_eight_are_kept(model):
    client, _ = model
    for number in range(1, 10):
        assert client.run(text="a text").json == {"record": number}
    reply = client.ask("/description", record=1)
    assert reply.status == 400
    assert "record is '1'; it must be one of those that are kept, 2 to 9" in reply.error
    assert client.ask("/description", record=2).status == 200


def test_one_reads_at_a_time(model):
    client, reader = model
    found = []
    threads = [threading.Thread(target=lambda: found.append(client.run(text="all at once"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(reply.json["record"] for reply in found) == list(range(1, 9))
    assert reader.most == 1


def test_what_the_model_refuses(model):
    client, _ = model
    reply = client.run(text="please refuse this", generate=4)
    assert (reply.status, reply.error) == (400, "the model only reads; leave generate out.")
    assert "shorter text" in client.run(text="memory").error
    assert client.ask("/description", record=0).status == 200


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "the body must be"),
        ('{"txt": "a"}', "the body must be"),
        ("{}", "text has no words"),
        ('{"text": 3}', "text has no words"),
        ('{"text": "  "}', "text has no words"),
        ('{"text": "a", "pair": ""}', "pair has no words"),
        ('{"text": "a\\ud800"}', "half a character"),
        ('{"text": "a", "generate": -1}', "generate is -1"),
        ('{"text": "a", "generate": 1.5}', "generate is 1.5"),
        ('{"text": "a", "generate": true}', "generate is True"),
        ('{"text": "a", "generate": 100000}', "from 0 to 1024"),
    ],
)
def test_orders_that_are_none(model, body, words):
    client, reader = model
    reply = client.ask("/run", "POST", body, {"Content-Type": "application/json"})
    assert reply.status == 400
    assert words in reply.error
    assert not reader.read


def test_bytes_that_are_no_text(model):
    client, _ = model
    assert client.ask("/run", "POST", b'{"text": "\xff"}', {"Content-Type": "application/json"}).status == 400


def test_a_record_from_a_file_reads_nothing():
    with serving(record(5)) as client:
        reply = client.run(text="a text")
        assert reply.status == 400
        assert "without a model" in reply.error


def test_a_content_type_with_a_charset(model):
    client, _ = model
    reply = client.ask("/run", "POST", json.dumps({"text": "né"}), {"Content-Type": "application/json; charset=utf-8"})
    assert reply.status == 200
