"""Fuzz the readers of files, guided by coverage: `pip install atheris; python tests/fuzz_readers.py [READER...]`.

A reader is given any bytes. It reads them, or raises ValueError; any other end is printed, with the file of the input.
Where a checksum would refuse all that is not whole, the part that it protects is what is changed, and sealed again.
`--seconds N` is for each reader, 60 by default. test_fuzz.py reads the seeds, and them damaged by chance.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
from forged_files import members_of, read_checkpoint, write_checkpoint, write_members

__all__ = ["READERS", "read"]

READERS = {}  # name -> (function that returns good content, function that reads content by way of a path)
COUNTS = np.array([[1, 0, 2], [0, 3, 1], [2, 1, 0]] * 4)
WORDS = [f"word{i}" for i in range(21)]


def reader(good):
    """Note a reader, whose good content is what `good` returns."""

    def note(function):
        READERS[function.__name__] = (good, function)
        return function

    return note


def read(name, content, folder):
    """Let a reader read content. A ValueError is a refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            READERS[name][1](content, Path(folder) / name)
        except ValueError:
            return False
    return True


@cache
def model():
    """Return a released model."""
    from skdplda import PrivateCGSLDA, ReleasedTopicModel

    topics = [[0.5, 0.5, 0.0], [0.0, 0.2, 0.8]]
    return ReleasedTopicModel(
        topics,
        ["pear", "plum", "zinc"],
        privacy_guarantee=PrivateCGSLDA(2).privacy_cost(),
        text={"lowercase": True, "ngram_range": (1, 2), "token_pattern": r"(?u)\b\w\w+\b"},
        details={"estimator": "PrivateCGSLDA", "parameters": {"epsilon": 3.0}},
    )


def ledger():
    """Return the JSON of a ledger of two fits, one of a part of the data."""
    from skdplda import PrivacyAccountant
    from skdplda.privacy import PrivacyGuarantee, pure_event

    accountant = PrivacyAccountant(3.0, 1e-6, max_parts=1)
    for part in ("May", "June"):
        with accountant.part(part):
            accountant.spend(PrivacyGuarantee(epsilon=0.5, event=pure_event(0.5), status="proven"), label="topics")
    return accountant.to_json().encode()


@reader(lambda: model()._content())
def release(content, path):
    """A released model."""
    from skdplda import load_released

    path.write_bytes(content)
    load_released(path).card()


@reader(lambda: members_of(model())["header.json"])
def release_header(content, path):
    """The header of a released model."""
    from skdplda import load_released

    write_members(path, members_of(model()) | {"header.json": content})
    found = load_released(path)
    np.testing.assert_allclose(found.topic_word_.sum(axis=1), 1)
    assert "\x1b" not in found.card() + found.card("json")


@reader(ledger)
def ledger_entries(content, path):
    """What a ledger holds."""
    from skdplda import PrivacyAccountant

    found = PrivacyAccountant.from_json(content.decode())
    assert found.total.epsilon >= 0
    str(found.to_frame()) + repr(found)


@reader(ledger)
def ledger_file(content, path):
    """The file of a ledger."""
    from internals import pack

    from skdplda import PrivacyAccountant

    try:
        path.write_bytes(pack(content.decode()))
    except RecursionError:
        raise ValueError("no JSON") from None
    repr(PrivacyAccountant.open(path).total)


@reader(lambda: model().privacy_guarantee_.to_json().encode())
def guarantee(content, path):
    """A guarantee."""
    from skdplda.privacy import PrivacyGuarantee

    found = PrivacyGuarantee.from_json(content.decode())
    assert PrivacyGuarantee.from_json(found.to_json()) == found
    assert str(found) and found.caption


@cache
def transcript_parts():
    """Return the header and the arrays of a transcript."""
    from skdplda import VIPSLDA

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        VIPSLDA(2, epsilon=3.0, max_iter=2).fit(COUNTS, transcript=f"{folder}/t")
        with np.load(f"{folder}/t") as file:
            arrays = dict(file)
    return str(arrays.pop("header")).encode(), arrays


@reader(lambda: transcript_parts()[0])
def transcript(content, path):
    """The header of a transcript."""
    from skdplda import VIPSLDA

    with open(path, "wb") as file:
        np.savez(file, header=np.array(content.decode()), **transcript_parts()[1])
    found = VIPSLDA.from_transcript(path)
    assert found.components_.shape[1] == 3


def resumed(path, callback=None):
    """Fit with a checkpoint."""
    from skdplda import VIPSLDA

    return VIPSLDA(2, epsilon=3.0, max_iter=3, checkpoint=path, callback=callback).fit(COUNTS)


@cache
def checkpoint_parts():
    """Return the header and the arrays of the checkpoint of a fit that was interrupted."""

    def stop(*_):
        raise KeyboardInterrupt

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(KeyboardInterrupt):
            resumed(f"{folder}/c", stop)
        header, arrays = read_checkpoint(f"{folder}/c")
    return json.dumps(header).encode(), arrays


@reader(lambda: checkpoint_parts()[0])
def checkpoint(content, path):
    """The header of a checkpoint."""
    header = json.loads(content)
    if not isinstance(header, dict):
        raise ValueError("no header")
    with open(path, "wb") as file:
        write_checkpoint(file, header, checkpoint_parts()[1])
    resumed(path)


def device_reports():
    """Return reports of four devices."""
    from skdplda.local import LocalRandomizer, make_report

    return b"".join(make_report([word], WORDS, LocalRandomizer(float("inf"))) for word in WORDS[:4])


@reader(device_reports)
def reports(content, path):
    """Reports of devices: what is none is rejected, with a reason."""
    from skdplda.local import LocalRandomizer, read_reports

    found = read_reports([content], WORDS, LocalRandomizer(float("inf")))
    assert found.data.shape[1] == len(WORDS) and set(np.unique(found.data.data)) <= {0, 1}


def folder_header():
    """Return the header of a folder of counts."""
    import scipy.sparse as sp

    from skdplda.datasets import write_counts

    with tempfile.TemporaryDirectory() as folder:
        write_counts(f"{folder}/counts", [sp.csr_array(COUNTS)])
        return Path(folder, "counts", "header.json").read_bytes()


@reader(folder_header)
def counts(content, path):
    """The header of a folder of counts."""
    import scipy.sparse as sp

    from skdplda.datasets import open_counts, write_counts

    if not path.is_dir():
        write_counts(path, [sp.csr_array(COUNTS)])
    (path / "header.json").write_bytes(content)
    for _, block in open_counts(path).blocks():
        assert block.shape[1] == 3 and block.data.min(initial=0) >= 0


@reader(lambda: b"2\n3\n3\n1 1 2\n1 3 1\n2 2 4\n")
def docword(content, path):
    """A bag of words."""
    from skdplda.datasets import load_uci_bow

    path.write_bytes(content)
    found = load_uci_bow(path)
    assert found.data.min() >= 0


def fuzz(name, seconds):
    """Fuzz a reader; this does not return."""
    import atheris

    with atheris.instrument_imports(include=["skdplda"]):
        import skdplda.datasets
        import skdplda.local
        import skdplda.releases  # noqa: F401
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        seeds = Path(folder, "seeds")
        seeds.mkdir()
        (seeds / "good").write_bytes(READERS[name][0]())
        options = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=4096", "-max_len=8192", str(seeds)]
        atheris.Setup([sys.argv[0], *options], lambda content: read(name, content, folder))
        atheris.Fuzz()


def main():
    """Fuzz each reader in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"of {', '.join(READERS)}; default: all")
    parser.add_argument("--seconds", type=int, default=60, metavar="N", help="for each reader (default: 60)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if unknown := set(args.readers) - set(READERS):
        parser.error(f"there is no reader {', '.join(sorted(unknown))}; there are {', '.join(READERS)}")
    if args.here:
        fuzz(args.readers[0], args.seconds)
    failed = []
    for name in args.readers or READERS:
        command = [sys.executable, __file__, name, "--seconds", str(args.seconds), "--here"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
        *_, last = [line for line in done.stderr.splitlines() if line.startswith(("Done", "stat", "#"))] or [""]
        sys.stdout.write(f"{name}: {last or done.stderr[-300:]}\n")
        if done.returncode:
            failed.append(name)
            sys.stdout.write(done.stdout[-3000:] + done.stderr[-3000:])
        sys.stdout.flush()
    sys.exit(f"FAILED: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
