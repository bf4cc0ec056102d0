"""`regard serve` from the outside: its port, its end, its memory under many requests."""

import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from regard.errors import OptionError
from regard.view import serve
from regard.view.serve import server
from tests.view.serve.served import Client, record, serving

PARALLEL = 200


@contextmanager
def command(*arguments):
    """The command as its users start it.   -> a client, the process"""
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", "serve", *map(str, arguments), "--port", "0", "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        line = process.stdout.readline()
        address = re.fullmatch(r"serving http://127\.0\.0\.1:(\d+)/ .*\n", line)
        assert address, line + process.stderr.read()
        yield Client(int(address[1])), process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """8,192 tokens, 4 layers of 8 heads."""
    path = tmp_path_factory.mktemp("long") / "long.regard"
    record(8192, layers=4, heads=8, width=32).save(path, lse=False)
    return path


def test_ctrl_c_ends_it(long):
    with command(long) as (client, process):
        assert client.ask("/description", record=0).json["title"] == "long.regard"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out) == (0, "")
        assert "Traceback" not in err


def test_many_tiles_at_once(long):
    rng = np.random.default_rng(0)
    asked = []
    for layer, head, row, col in rng.integers((4, 8, 7900, 7900), size=(PARALLEL, 4)):
        span = {"rows": f"{row}:{row + 256}", "cols": f"{col}:{col + 256}"}
        asked.append({"layer": layer, "head": head, **span, "height": 256, "width": 256, "step": 27})
    with command(long) as (client, process), ThreadPoolExecutor(PARALLEL) as pool:
        ask = lambda query: client.tile(**query).status  # noqa: E731
        assert set(pool.map(ask, asked)) == {200}
        first = memory(process)
        for _ in range(2):
            assert set(pool.map(ask, [{**query, "step": 9} for query in asked])) == {200}
        assert memory(process) - first < 64
        assert memory(process) < 400
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read().strip() == ""


def memory(process):
    """The most that it had at once, in MiB."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[1]) / 1024


def test_ports(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(server, "PORT", port)
        found = serve.server_of(record(5), title="")
        assert found.port != port
        assert found.server_address[0] == "127.0.0.1"
        found.server_close()
        with pytest.raises(OptionError, match=f"port {port} cannot be had"):
            serve.server_of(record(5), title="", port=port)
    with pytest.raises(OptionError, match="70000"):
        serve.server_of(record(5), title="", port=70000)


def test_one_connection_too_many(monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)
    with serving(record(5)) as client:
        idle = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(2)]
        reply = None
        for _ in range(50):
            reply = client.ask("/description?record=0")
            if reply.status == 503:
                break
        assert reply.status == 503
        assert reply.error
        for one in idle:
            one.close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.regard"], "there is no such file"),
        (["--port", "70000"], "ports are 0 to 65535"),
        ([__file__], "no record"),
    ],
)
def test_what_cannot_be_served(run, arguments, words):
    code, out, err = run("serve", *arguments, "--no-browser")
    assert code in (1, 2)
    assert words in err
    assert not out


def test_a_browser_is_opened_where_there_is_a_screen(monkeypatch, capsys):
    opened = threading.Event()
    monkeypatch.setattr(serve.webbrowser, "open", lambda address: opened.set())
    monkeypatch.setenv("DISPLAY", ":0")
    one = serve.server_of(record(5), title="", port=0)
    monkeypatch.setattr(one, "serve_forever", lambda: opened.wait(5))
    serve.serve(one)
    assert opened.is_set()
    assert one.address in capsys.readouterr().out


def test_the_built_in_model_reads(run):
    pytest.importorskip("tokenizers")
    with command() as (client, _):
        assert client.ask("/description", record=0).json["runs_text"] is True
        assert client.run(text="Attention is all you need").json == {"record": 1}
        assert client.run(text="a", generate=2).status == 400
        told = client.ask("/description", record=1).json
        assert "attention" in "".join(told["tokens"][0]["texts"]).lower()
