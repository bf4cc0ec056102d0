"""The one file: scripts joined, nothing allowed but them, hostile texts kept as data; where it is written and shown."""

import base64
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from regard.commands import main  # noqa: F401  the fixture `run` calls it
from regard.errors import FileError, OptionError
from regard.record import Tokens
from regard.view import page as page_room
from regard.view.page import page, show
from regard.view.page.document import APP, document, read_block
from regard.view.page.joining import joined

from .pages import app_folder, description_of, layer_of, map_of, page_of, record_of

HOSTILE = (
    "</script>", "<!--", "<script>", "]]>", "<img src=x onerror=alert(1)>", "\"'`&amp;", "\u2028\u2029", "\u202eabc",
    "\0", "\ud800", "x" * 10_000, "{{data}}{{script}}",
)  # fmt: skip


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Pages are made of small scripts."""
    folder = tmp_path / "app"
    folder.mkdir()
    monkeypatch.setattr(sys.modules["regard.view.page.document"], "APP", app_folder(folder))
    return folder


class Elements(HTMLParser):
    """The elements of a page, each with what is in it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=False)
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag):
        self.found.append(("", {}, ""))

    def handle_data(self, data):
        if self.found:
            tag, attributes, text = self.found[-1]
            self.found[-1] = (tag, attributes, text + data)

    def of(self, tag, **attributes):
        return [one for one in self.found if one[0] == tag and attributes.items() <= one[1].items()]


def hash_of(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_policy_allows_this_script_and_this_style_alone(small):
    for served in (False, True):
        elements = Elements(b"".join(document({"title": "t"}, served=served)).decode())
        ((_, meta, _),) = elements.of("meta")
        allowed = dict(part.strip().split(" ", 1) for part in meta["content"].split(";"))
        ((_, _, script),) = elements.of("script", type="module")
        ((_, _, style),) = elements.of("style")
        assert allowed == {
            "default-src": "'none'", "script-src": hash_of(script), "style-src": hash_of(style),
            "img-src": "data: blob:", "worker-src": "blob:", "connect-src": "'self'" if served else "'none'",
            "base-uri": "'none'", "form-action": "'none'",
        }  # fmt: skip


def test_hostile_tokens_stay_data(tmp_path):
    side = [Tokens.of(HOSTILE)]
    layer = layer_of(map_of(queries=len(HOSTILE), keys=len(HOSTILE)), queries=side, keys=side)
    whole = page_of(record_of(layer, model="</title><script>alert(1)</script>"), tmp_path)
    elements = Elements(whole.decode())
    assert len(elements.of("script", type="module")) == 1
    assert not elements.of("img")
    assert {one[1].get("type") for one in elements.of("script")} == {"module", "text/plain", "application/json"}
    ((_, _, told),) = elements.of("script", id="description")
    assert tuple(json.loads(told)["tokens"][0]["texts"]) == HOSTILE
    assert told.isascii()
    assert not set("<>&") & set(told)
    assert description_of(whole)["model"] == "</title><script>alert(1)</script>"


def test_the_first_head_and_the_thumbnails_come_first(tmp_path):
    layers = [layer_of(map_of(heads=3), index=index) for index in range(2)]
    whole = page_of(record_of(*layers), tmp_path)
    names = re.findall(rb'id="block:([^"]*)"', whole)
    assert names[:5] == [b"queries:0:0", b"keys:0:0", b"sums:0:0", b"thumbnails:0", b"thumbnails:1"]
    assert len(names) == len(set(names)) == 2 + 2 * 3 * 3


def test_blocks_keep_their_order_and_come_back(small):
    contents = {f"n:{number}": bytes([number]) * number * 1000 for number in range(20)}
    whole = b"".join(document({}, [(name, lambda content=content: content) for name, content in contents.items()]))
    assert [name.decode() for name in re.findall(rb'id="block:([^"]*)"', whole)] == list(contents)
    assert all(read_block(whole, name) == content for name, content in contents.items())


class TestJoining:
    def test_what_is_needed_comes_first(self, tmp_path):
        assert joined(app_folder(tmp_path), "main.js") == (
            "/** One. */\nconst one = 1;\n\n/** All. */\nconst two = one + 1;\n"
        )

    def test_a_module_is_there_once(self, tmp_path):
        app_folder(
            tmp_path,
            main_js='import { one } from "./one.js";\nimport {\n  four,\n  five,\n} from "./more.js";\n',
            more_js='import { one } from "./one.js";\nexport async function four() {}\nexport class five {}\n',
        )
        assert joined(tmp_path, "main.js").count("const one") == 1

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('import one from "./one.js";', 'main.js has "import one from'),
            ('import * as all from "./one.js";', "nothing else"),
            ('import { one as two } from "./one.js";', "nothing else"),
            ('import "./one.js";', "nothing else"),
            ('import { one } from "elsewhere";', "nothing else"),
            ("export default 1;", "nothing else"),
            ("const a = 1;\nexport { a };", "nothing else"),
            ('export { one } from "./one.js";', "nothing else"),
            ("export let a = 1;", "nothing else"),
            ('const a = await import("./one.js");', "nothing else"),
            ("const a = import.meta.url;", "nothing else"),
            ('import { two } from "./one.js";', "imports two from one.js, which does not export it"),
            ('import { two } from "./none.js";', "none.js is a part of every page and cannot be read"),
            ('import { one } from "./one.js";\nconst one = 2;', "one is declared in one.js and in main.js"),
            ('import { one } from "./one.js";\nconst [a, one] = [1, 2];', "one is declared in one.js and in main.js"),
        ],
    )
    def test_other_forms_are_refused(self, tmp_path, text, message):
        app_folder(tmp_path, main_js=text + "\n")
        with pytest.raises(FileError, match=re.escape(message)):
            joined(tmp_path, "main.js")

    def test_types_may_be_imported_in_comments(self, tmp_path):
        text = '/** All. */\n\n/** @typedef {import("./a.js").A} A */\n\n/**\n * @param {import("./a.js").B} b\n */\n'
        app_folder(tmp_path, main_js=text + "const a = /** @type {import('./one.js').One} */ (1);\n")
        assert joined(tmp_path, "main.js") == "/** All. */\nconst a = /** @type {import('./one.js').One} */ (1);\n"

    def test_lines_that_a_page_does_not_need(self, tmp_path):
        text = "/** All. */\n\n// why\nif (a) {\n  /* because */\n  b(); // so\n  /** @type {X} */ (c).d();\n}\n"
        app_folder(tmp_path, main_js=text)
        assert joined(tmp_path, "main.js") == "/** All. */\nif (a) {\nb(); // so\n/** @type {X} */ (c).d();\n}\n"

    def test_texts_over_several_lines_stay(self, tmp_path):
        text = "/** All. */\nconst a = `\n  // no comment\n`;\n"
        assert joined(app_folder(tmp_path, main_js=text), "main.js") == text

    def test_circles(self, tmp_path):
        app_folder(tmp_path, one_js='import { two } from "./main.js";\nexport const one = 1;\n')
        with pytest.raises(FileError, match=r"circle: main.js → one.js → main.js"):
            joined(tmp_path, "main.js")

    @pytest.mark.parametrize(
        "changes",
        [
            {"main_js": 'const a = "</script>";\n'}, {"worker_js": "// <!-- \n"}, {"style_css": "/* </STYLE> */"},
            {"main_js": "const a = '\0';\n"}, {"page_html": "{{title}}"},
            {"page_html": "<script>\n{{script}}</script>{{title}}{{policy}}{{style}}{{worker}}"
                          "{{description}}{{first}}{{data}}"},
        ],
    )  # fmt: skip
    def test_what_would_break_the_page(self, tmp_path, changes):
        with pytest.raises(FileError):
            list(document({}, app=app_folder(tmp_path, **changes)))


class TestOurs:
    """The scripts that ship."""

    def test_they_join(self, tmp_path):
        whole = b"".join(document({"title": "t"}))
        assert len(whole) < 350_000  # of every page
        if shutil.which("node"):
            for name in ("main.js", "worker.js"):
                (tmp_path / f"{name}.mjs").write_text(joined(APP, name), encoding="utf-8")
                subprocess.run(["node", "--check", tmp_path / f"{name}.mjs"], check=True)

    def test_every_file_is_used(self):
        used = "".join(joined(APP, name) for name in ("main.js", "worker.js"))
        for file in APP.glob("*.js"):
            first = file.read_text(encoding="utf-8").splitlines()[0]
            assert first.startswith("/**"), file
            assert first in used, f"{file.name} is imported by nobody"


class TestPage:
    """Where it goes."""

    record = staticmethod(lambda: record_of(layer_of(map_of())))

    def test_written_at_once_and_whole(self, small, tmp_path):
        target = tmp_path / "a page"
        self.record().page(target, title="A & B")
        text = target.read_text(encoding="utf-8")
        assert "<title>A &amp; B</title>" in text
        assert description_of(text.encode())["title"] == "A & B"
        before = target.read_bytes()
        (small / "style.css").unlink()
        with pytest.raises(FileError):
            self.record().page(target)
        assert target.read_bytes() == before
        assert sorted(file.name for file in tmp_path.iterdir()) == ["a page", "app"]

    def test_places_that_cannot_be(self, small, tmp_path):
        with pytest.raises(FileError, match=r"no folder .*nowhere; make it first"):
            page(self.record(), tmp_path / "nowhere" / "page.html")
        with pytest.raises(FileError, match="is a folder; name a file"):
            page(self.record(), tmp_path)
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(FileError, match="is no plain file; name a file"):
            page(self.record(), tmp_path / "pipe")

    def test_shown_in_the_browser(self, small, monkeypatch, capsys):
        opened = []
        monkeypatch.setattr(page_room.webbrowser, "open", lambda address: opened.append(address) or True)
        file = self.record().show()
        assert opened == [file.as_uri()]
        assert file.read_bytes().startswith(b"<!doctype html>")
        assert capsys.readouterr().out == ""
        shutil.rmtree(file.parent)

    def test_where_there_is_no_browser(self, small, monkeypatch, capsys):
        monkeypatch.setattr(page_room.webbrowser, "open", lambda address: False)
        file = show(self.record())
        assert capsys.readouterr().out == f"page: {file}, open it in a browser\n"
        shutil.rmtree(file.parent)

    def test_shown_in_a_notebook(self, small, monkeypatch):
        shown = []
        shell = SimpleNamespace(kernel=object())
        display = SimpleNamespace(display=lambda data, raw: shown.append(data))
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display))
        assert self.record().show(heads=1) is None
        ((_, frame, _),) = Elements(shown[0]["text/html"]).of("iframe")
        assert frame["sandbox"] == "allow-scripts allow-downloads"
        assert frame["height"] == "720"
        assert description_of(html.unescape(frame["srcdoc"]).encode())["layers"][0]["heads"] == [1]
        assert shown[0]["text/plain"] == "Record(random, 1 layers)"


class TestCommand:
    def test_see_and_open(self, small, run, tmp_path):
        pytest.importorskip("tokenizers")
        target, record = tmp_path / "cat.html", tmp_path / "run.regard"
        code, out, err = run("see", "The cat sat", "--page", target, "--save", record)
        assert (code, err) == (0, "")
        assert f"page: {target}, open it in a browser\n" in out
        told = description_of(target.read_bytes())
        assert told["title"] == "encoder"
        assert told["tokens"][0]["texts"] == ["[CLS]", " The", " cat", " sat", "[SEP]"]
        assert [len(layer["heads"]) for layer in told["layers"]] == [8] * 6
        code, out, err = run("open", record, "--page", target, "--layer", 2, "--head", 3)
        assert (code, err) == (0, "")
        assert [(layer["index"], layer["heads"]) for layer in description_of(target.read_bytes())["layers"]] == [
            (2, [3])
        ]

    def test_a_folder_that_is_not_there(self, run, tmp_path):
        code, _, err = run("see", "The cat sat", "--page", tmp_path / "no" / "cat.html")
        assert code == 1
        assert "make it first" in err


def test_what_is_drawn_has_the_colours_of_what_is_around_it():
    """A canvas cannot read the style's variables as they are for a theme: its colours stand in view.js once more."""
    style, view = ((APP / name).read_text(encoding="utf-8") for name in ("style.css", "view.js"))
    around = {name: both for name, *both in re.findall(r"--(\w+): light-dark\((#\w+), (#\w+)\);", style)}
    night, day = (dict(re.findall(r'(\w+): "(#\w+)"', line)) for line in re.findall(r"[?:] (\{ paper: .*\})", view))
    assert day.keys() == night.keys() >= {"paper", "ink", "accent"}
    assert all(around[name] == [day[name], night[name]] for name in day)


def test_a_title_that_is_no_text(tmp_path):
    with pytest.raises(OptionError, match="title is b'x'; it must be text"):
        page(TestPage().record(), tmp_path / "a.html", title=b"x")
    with pytest.raises(FileError, match="is no name of a file"):
        page(TestPage().record(), tmp_path / "\ud800")
