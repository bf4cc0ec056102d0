"""A server in this process, on records made by hand, and a client that speaks plain HTTP to it."""

import http.client
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np

import regard
from regard.formula import masks
from regard.record import Layer, Record, Run, Tokens
from regard.record.map import Map
from regard.view.serve import server_of

HOSTILE = ("</script>", "<!--", "<img src=x onerror=alert(1)>", "\"'", "\u2028", "\u202e", "\0", "\ud800", "x" * 10_000)


def tokens(size):
    """Words of one, two and three pieces."""
    texts = tuple(HOSTILE[place] if place < len(HOSTILE) else f"t{place % 7}" for place in range(size))
    return Tokens(texts, tuple(place == 0 or place % 6 in (1, 3, 4) for place in range(size)))


def record(size=40, layers=2, heads=4, key_heads=2, width=8, dtype=np.float16, mask=None, keys=None):
    """Random queries and keys."""
    rng = np.random.default_rng(size)
    rows, cols = tokens(size), tokens(keys or size)
    mask = masks.causal() if mask is None else mask
    made = []
    for index in range(layers):
        queries, key = (
            2 * rng.standard_normal((count, length, width)) for count, length in ((heads, size), (key_heads, len(cols)))
        )
        one = Map(queries=queries.astype(dtype), keys=key.astype(dtype), scale=width**-0.5, mask=mask)
        numbers = tuple(range(heads))
        made.append(
            Layer(name=f"layers.{index}", kind="decoder", index=index, maps=(one,), queries=(rows,), keys=(cols,),
                  head_numbers=numbers)
        )  # fmt: skip
    return Record([Run(layers=tuple(made), model="by hand")])


def dense(one, layer, head):
    """All weights of a head in float64, from the formula."""
    found = one.layers[layer].map.head(head)
    return np.asarray(
        regard.formula.weights(
            found.queries.astype(np.float64), found.keys.astype(np.float64), found.mask, scale=found.scale
        )
    )[0]


@dataclass(frozen=True)
class Reply:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def numbers(self):
        assert self.status == 200, self.body
        return np.frombuffer(self.body, "<f4")

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        assert self.headers["Content-Type"].startswith("application/json")
        assert set(self.json) == {"error"}
        assert "Traceback" not in self.json["error"]
        return self.json["error"]


class Client:
    def __init__(self, port):
        self.port = port

    def ask(self, path, method="GET", body=None, headers=(), **query):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path + ("?" + urlencode(query) if query else ""), body, dict(headers))
            response = connection.getresponse()
            return Reply(response.status, response.headers, response.read())
        finally:
            connection.close()

    def tile(self, **query):
        return self.ask("/tile", **{"record": 0, "layer": 0, "head": 0, **query})

    def run(self, **order):
        return self.ask("/run", "POST", json.dumps(order), {"Content-Type": "application/json"})


@contextmanager
def serving(one, **options):
    """A client of a server that runs as long as the block."""
    server = server_of(one, title="by hand", port=0, **options)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield Client(server.port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
