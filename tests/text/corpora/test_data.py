"""Real data sets, where they are beside the repository: as many examples as each one's README says."""

import re
from pathlib import Path

import pytest

from regard.text.corpora import questions, read

DATA = Path(__file__).parents[4] / "shared" / "data"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the data sets are not here: {DATA}")

PAIRS = {"source": "en", "target": "zh"}
SETS = [
    ("en-zh/ted_dev.tsv.xz", {"fields": PAIRS}),
    ("en-zh/tatoeba_test.tsv.xz", {"fields": PAIRS}),
    ("en-zh/newstest2017.tsv.xz", {"fields": PAIRS}),
    ("multi30k/valid.tsv.xz", {"fields": {"source": "en", "target": "cs"}}),
    ("imdb/test.jsonl.xz", {"fields": ["text", "label"]}),  # its texts hold U+0085 and U+2028
    ("listops/valid.tsv.xz", {"fields": ["source", "target"]}),
    ("sst2/sent_dev.tsv.xz", {"fields": ["text", "label"]}),
    ("sst2/trees_dev.txt.xz", {}),
    ("summarization/csl_zh_dev.jsonl.xz", {"fields": {"source": "text", "target": "summary"}}),
    ("word-align/zhen.tsv.xz", {"fields": {"source": "src", "target": "tgt"}}),
]


def told(name):
    """The number of examples in the table of the README."""
    folder, file = name.split("/")
    readme = (DATA / folder / "README.md").read_text(encoding="utf-8")
    return int(re.search(rf"^\| {re.escape(file)} \| (\d+)", readme, flags=re.M)[1])


@pytest.mark.parametrize(("name", "options"), SETS, ids=[name for name, _ in SETS])
def test_counts(name, options):
    corpus = read(DATA / name, **options)
    assert sum(1 for _ in corpus) == told(name)
    assert corpus.skipped.count == 0


def test_questions():
    name = "qa/xquad_zh.json.xz"
    corpus = questions(DATA / name)
    assert sum(1 for _ in corpus) == told(name)
    assert corpus.skipped.count == 0


def test_blank_lines_are_no_examples():
    name = "wikitext2/valid.txt.xz"
    texts = [example["text"] for example in read(DATA / name)]
    assert len(texts) < told(name)
    assert sum(len(text.split()) for text in texts) + told(name) == 217_646  # its tokens, with an end for every line
