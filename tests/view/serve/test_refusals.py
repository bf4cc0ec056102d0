"""What a server refuses, and how: with a status, in JSON, in words that repeat what was asked."""

import socket
import threading
import time
from urllib.parse import urlencode

import pytest

from regard.view.serve import answers, guard, handler
from regard.view.serve.refusal import Gone
from regard.view.serve.workers import Workers
from tests.view.serve.served import record, serving

GOOD = {"record": 0, "layer": 0, "head": 0, "rows": "0:4", "cols": "0:4", "height": 2, "width": 2}


@pytest.fixture(scope="module")
def client():
    with serving(record(40)) as client:
        yield client


def raw(client, sent, *, wait=5.0):
    """Bytes in, bytes out, until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=wait) as connection:
        connection.sendall(sent)
        found = b""
        while part := connection.recv(65536):
            found += part
    return found


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"record": "7"}, "record is '7'; it must be one of those that are kept, 0"),
        ({"record": "-1"}, "record is '-1'"),
        ({"layer": "2"}, "layer is '2'; it must be a whole number from 0 to 1"),
        ({"layer": "x"}, "layer is 'x'"),
        ({"layer": "1e0"}, "layer is '1e0'"),
        ({"layer": "٣"}, "layer is '٣'"),
        ({"layer": "9" * 5000}, "layer is '999"),
        ({"head": "4"}, "head is '4'; it must be a whole number from 0 to 3"),
        ({"unit": "sentence"}, "unit is 'sentence'; it must be token or word"),
        ({"rows": "0:41"}, "rows is '0:41'; it must be a:b with 0 ≤ a < b ≤ 40"),
        ({"rows": "4:4"}, "rows is '4:4'"),
        ({"rows": "-4:4"}, "rows is '-4:4'"),
        ({"rows": "4"}, "rows is '4'"),
        ({"rows": "nan:inf"}, "rows is 'nan:inf'"),
        ({"cols": "0:4:2"}, "cols is '0:4:2'"),
        ({"height": "0"}, "height is '0'; it must be a whole number from 1 to 4"),
        ({"width": "5"}, "width is '5'; it must be a whole number from 1 to 4"),
        ({"step": "-2"}, "step is '-2'"),
        ({"colour": "red"}, "there is no parameter 'colour'"),
        ({"rows": None}, "rows is missing"),
    ],
)
def test_bad_numbers(client, changed, words):
    asked = {name: value for name, value in {**GOOD, **changed}.items() if value is not None}
    reply = client.ask("/tile", **asked)
    assert reply.status == 400
    assert words in reply.error


@pytest.mark.parametrize("query", ["record=0&record=0", "record", "&&", "record=%ff", "a=1&" * 40, "%00=%00"])
def test_queries_that_are_none(client, query):
    assert client.ask(f"/description?{query}").status == 400


@pytest.mark.parametrize("rows", ["", ",", "40", "1,40", "3:2", "0:41", "a", "1,,2"])
def test_places_that_are_not_there(client, rows):
    reply = client.ask("/row", record=0, layer=0, head=0, rows=rows)
    assert reply.status == 400
    assert "rows" in reply.error


def test_too_many_places_and_too_large_rectangles(client, monkeypatch):
    monkeypatch.setattr("regard.view.serve.questions.MOST_PLACES", 10)
    assert "10 places" in client.ask("/row", record=0, layer=0, head=0, rows="0:11").error
    monkeypatch.setattr(answers, "LARGEST_RECTANGLE", 100)
    reply = client.ask("/rectangle", record=0, layer=0, head=0, rows="0:11", cols="0:10")
    assert reply.status == 400
    assert "110 weights; ask for 100 at most" in reply.error


@pytest.mark.parametrize("path", ["/favicon.ico", "/tile/", "/../etc/passwd", "/%2e%2e/etc/passwd", "/description%00"])
def test_other_paths(client, path):
    reply = client.ask(path)
    assert reply.status == 404
    assert "there is nothing at" in reply.error


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "get"])
def test_other_methods(client, method):
    reply = client.ask("/description?record=0", method)
    assert reply.status == 405
    assert "POST" in reply.headers["Allow"]
    assert reply.error


def test_methods_at_the_wrong_address(client):
    assert client.ask("/run").status == 405
    assert client.ask("/run").headers["Allow"] == "POST"
    posted = client.ask("/tile", "POST", "{}", {"Content-Type": "application/json"})
    assert (posted.status, posted.headers["Allow"]) == (405, "GET, HEAD")


def test_head_is_get_without_its_body(client):
    got, told = client.ask("/tile", **GOOD), client.ask("/tile", "HEAD", **GOOD)
    assert (told.status, told.body) == (200, b"")
    assert told.headers["Content-Length"] == got.headers["Content-Length"] == "16"


@pytest.mark.parametrize(
    "host",
    [
        "example.com",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.example.com:{port}",
        "127.0.0.2:{port}",
        "",
        "0.0.0.0:{port}",
    ],
)
def test_foreign_hosts(client, host):
    reply = client.ask("/description?record=0", headers={"Host": host.format(port=client.port)})
    assert reply.status == 403
    assert "Host" in reply.error


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "LOCALHOST:{port}"])
def test_our_own_hosts(client, host):
    assert client.ask("/description?record=0", headers={"Host": host.format(port=client.port)}).status == 200


def test_no_host_and_two_hosts(client):
    assert b" 403 " in raw(client, b"GET /description?record=0 HTTP/1.0\r\n\r\n")
    ours = b"Host: 127.0.0.1:%d\r\n" % client.port
    sent = b"GET /description?record=0 HTTP/1.1\r\n" + ours + b"Host: evil.example\r\nConnection: close\r\n\r\n"
    assert b" 403 " in raw(client, sent)


@pytest.mark.parametrize("origin", ["http://example.com", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"])
def test_foreign_origins(client, origin):
    reply = client.ask("/description?record=0", headers={"Origin": origin.format(port=client.port)})
    assert reply.status == 403
    assert "another site" in reply.error


def test_our_own_origin_and_links_from_elsewhere(client):
    assert client.ask("/description?record=0", headers={"Origin": f"http://localhost:{client.port}"}).status == 200
    assert client.ask("/", headers={"Sec-Fetch-Site": "cross-site"}).status == 200  # somebody clicked on a link
    assert client.ask("/tile", **GOOD, headers={"Sec-Fetch-Site": "cross-site"}).status == 403


def test_headers_of_every_answer(client):
    for reply in (client.ask("/"), client.ask("/tile", **GOOD), client.ask("/nothing"), client.ask("/", "BREW")):
        for name, value in guard.ALWAYS.items():
            assert reply.headers[name] == value
        assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in reply.headers["Content-Security-Policy"]
        assert "Python" not in reply.headers["Server"]


def test_the_page_states_its_policy_and_holds_hostile_tokens(client):
    reply = client.ask("/")
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = reply.headers["Content-Security-Policy"]
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert policy.removesuffix("; frame-ancestors 'none'").encode() in reply.body
    assert b"<img src=x" not in reply.body
    assert client.ask("/?record=0").status == 200
    assert client.ask("/?record=5").status == 400


def test_long_addresses(client):
    reply = client.ask("/tile?rows=" + "1" * guard.LARGEST_QUERY)
    assert reply.status == 414
    assert "8,192" in reply.error
    assert client.ask("/tile?" + "x" * 70_000).status == 414


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Content-Length": "2000000"}, b"", 413),
        ({"Content-Length": "9" * 30}, b"", 413),
        ({"Content-Length": "-1"}, b"", 400),
        ({"Content-Length": "1_0"}, b"", 400),
        ({"Content-Length": "two"}, b"", 400),
        ({}, b"", 411),
        ({"Transfer-Encoding": "chunked"}, b"0\r\n\r\n", 411),
        ({"Content-Length": "2", "Content-Type": "text/plain"}, b"{}", 415),
        ({"Content-Length": "2", "Content-Type": ""}, b"{}", 415),
        ({"Content-Length": "2"}, b"{}", 400),
    ],
)
def test_bodies(client, headers, body, status):
    told = {"Host": f"127.0.0.1:{client.port}", "Content-Type": "application/json", "Connection": "close", **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    found = raw(client, f"POST /run HTTP/1.1\r\n{lines}\r\n".encode() + body)
    assert found.startswith(b"HTTP/1.1 %d " % status), found
    assert b'{"error": ' in found


def test_a_get_has_no_body(client):
    assert client.ask("/description?record=0", "GET", "{}").status == 400


def test_a_body_that_ends_early(client):
    ours = b"Host: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{" % client.port
    with socket.create_connection(("127.0.0.1", client.port), timeout=5) as connection:
        connection.sendall(b"POST /run HTTP/1.1\r\n" + ours)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
        b"GET " + b"x" * 70_000,
    ],
)
def test_what_is_no_http(client, sent):
    found = raw(client, sent + b"\r\n")
    assert b"Traceback" not in found
    assert client.ask("/description?record=0").status == 200


def test_several_requests_on_one_connection(client):
    one = b"GET /description?record=%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n"
    sent = one % (0, client.port, b"") + one % (4, client.port, b"") + one % (0, client.port, b"Connection: close\r\n")
    found = raw(client, sent)
    assert [found.count(b"HTTP/1.1 %d " % status) for status in (200, 400)] == [2, 1]


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127"])
def test_half_a_request_is_let_go(client, sent, monkeypatch):
    monkeypatch.setattr(handler, "PATIENCE", 0.3)
    start = time.monotonic()
    raw(client, sent)
    assert time.monotonic() - start < 3


def test_a_request_that_drips_is_let_go(client, monkeypatch):
    monkeypatch.setattr(handler, "PATIENCE", 0.5)
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", client.port), timeout=5) as connection, pytest.raises(OSError):  # noqa: PT012
        for _ in range(100):
            connection.sendall(b"G")
            time.sleep(0.1)
    assert time.monotonic() - start < 3


def test_an_error_of_our_own_stays_inside(client, monkeypatch, capfd):
    def broken(*_):
        raise ZeroDivisionError("a secret \x1b[31m of the inside")

    monkeypatch.setattr("regard.view.serve.cells.tile", broken)
    reply = client.tile(**{**GOOD, "rows": "1:5"})
    assert reply.status == 500
    assert "secret" not in reply.error
    told = capfd.readouterr().err
    assert told.startswith("regard: /tile: ZeroDivisionError: a secret")
    assert told.count("\n") == 1
    assert "\x1b" not in told


def test_who_hangs_up_is_not_computed_for(client, monkeypatch):
    begun, dropped = threading.Event(), threading.Event()

    def slow(head, rows, cols, asked, wanted):
        begun.set()
        for _ in range(500):
            if not wanted():
                dropped.set()
                raise Gone
            time.sleep(0.01)

    monkeypatch.setattr("regard.view.serve.cells.tile", slow)
    query = urlencode({**GOOD, "rows": "2:6"})
    with socket.create_connection(("127.0.0.1", client.port), timeout=5) as connection:
        connection.sendall(f"GET /tile?{query} HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n\r\n".encode())
        assert begun.wait(5)
    assert dropped.wait(5)


def test_who_finds_too_many_waiting_is_sent_away():
    workers, busy, release = Workers(1, waiting=1), threading.Event(), threading.Event()

    def work():
        busy.set()
        release.wait(5)

    threads = [threading.Thread(target=workers.do, args=(work,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    busy.wait(5)
    while workers._inside < 2:
        time.sleep(0.001)
    with pytest.raises(Exception, match="2 requests wait already") as refused:
        workers.do(work)
    assert refused.value.status == 503
    release.set()
    for thread in threads:
        thread.join()
    workers.close()
