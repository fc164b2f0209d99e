"""Reports as bytes: what a client with nothing but the documented layout writes is read; what is foreign is not."""

import hashlib
import math
import random
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skdplda import PrivacyGuarantee, PrivacyLeakWarning, ReleasedTopicModel
from skdplda.local import LocalRandomizer, make_report, make_reports, read_reports, report_size

WORDS = [f"word{i}" for i in range(21)]
EXACT = LocalRandomizer(math.inf)


def client_report(words, vocabulary, epsilon):
    """A report by the standard library alone, from the layout in the documentation."""
    flip = 1 / (1 + math.exp(epsilon))
    bits = bytearray((len(vocabulary) + 7) // 8)
    secret = random.SystemRandom()
    for i, word in enumerate(vocabulary):
        if (word in words) != (secret.random() < flip):
            bits[i // 8] |= 1 << i % 8
    digest = hashlib.sha256("\0".join(vocabulary).encode()).digest()[:16]
    content = struct.pack("<4sBBHIId", b"SKLR", 1, 1, 1, len(vocabulary), 0, epsilon) + digest + bytes(bits)
    return content + struct.pack("<I", zlib.crc32(content))


def test_a_client_without_this_package_is_understood():
    randomizer = LocalRandomizer(2.0)
    batch = read_reports([client_report({"word3"}, WORDS, 2.0)], WORDS, randomizer)
    assert batch.data.shape == (1, 21)
    assert batch.rejected == []
    own = make_report(["word3"], WORDS, randomizer)
    assert own[:40] == client_report({"word3"}, WORDS, 2.0)[:40]
    assert len(own) == report_size(21) == 47


def test_what_is_written_is_read():
    X = np.random.default_rng(0).poisson(0.3, (30, 21))
    reports = make_reports(X, WORDS, EXACT)
    batch = read_reports([row.tobytes() for row in reports], WORDS, EXACT)
    assert_array_equal(batch.data.toarray(), X > 0)
    assert_array_equal(batch.sources, np.arange(30))
    single = make_report([w for w, n in zip(WORDS, X[4], strict=True) for _ in range(n)] + ["other"], WORDS, EXACT)
    assert single == reports[4].tobytes()


def test_files_with_many_reports(tmp_path):
    X = np.eye(21, dtype=int)
    for part in range(3):
        (tmp_path / f"{part}.bin").write_bytes(make_reports(X[7 * part : 7 * part + 7], WORDS, EXACT).tobytes())
    batch = read_reports(sorted(tmp_path.iterdir()), WORDS, EXACT)
    assert_array_equal(batch.data.toarray(), X)
    assert_array_equal(batch.sources, np.repeat([0, 1, 2], 7))


@pytest.mark.parametrize(
    ("vocabulary", "randomizer", "message"),
    [
        (WORDS[::-1], LocalRandomizer(1.0), "made for another vocabulary"),
        (WORDS[:20], LocalRandomizer(1.0), "its number of words is 20, agreed was 21"),
        (WORDS, LocalRandomizer(1.1), "its epsilon of a bit is 1.1, agreed was 1.0"),
        (WORDS, LocalRandomizer(1.0, mechanism="asymmetric"), "its mechanism is 'asymmetric', agreed was 'symmetric'"),
        (WORDS, LocalRandomizer(1.0, max_words_per_document=5), "its most words of a document is 5, agreed was 0"),
        (WORDS, LocalRandomizer(1.0, reports_per_user=2), "its reports a user is 2, agreed was 1"),
    ],
)
def test_foreign_reports_are_refused_and_good_ones_kept(vocabulary, randomizer, message):
    agreed = LocalRandomizer(1.0)
    files = [make_report([], WORDS, agreed), make_report([], vocabulary, randomizer), make_report([], WORDS, agreed)]
    batch = read_reports(files, WORDS, agreed)
    assert batch.data.shape[0] == 2
    assert_array_equal(batch.sources, [0, 2])
    [(number, reason)] = batch.rejected
    assert number == 1
    assert message in reason


@pytest.mark.parametrize("cut", [1, 3, 20, 40, 46])
def test_a_truncated_file(cut):
    good = make_report(["word1"], WORDS, EXACT)
    batch = read_reports([good[:cut], good, good + good[:cut]], WORDS, EXACT)
    assert batch.data.shape[0] == 2
    assert [number for number, _ in batch.rejected] == [0, 2]
    assert all("truncated" in reason or "no report" in reason for _, reason in batch.rejected)


def test_every_damaged_byte_is_noticed():
    good = make_report(["word1", "word9"], WORDS, EXACT)
    for i in range(len(good)):
        damaged = bytearray(good)
        damaged[i] ^= 0x10
        batch = read_reports([good + bytes(damaged) + good], WORDS, EXACT)
        assert_array_equal(batch.data.toarray(), np.tile(batch.data.toarray()[:1], (2, 1)))
        assert len(batch.rejected) == 1


def test_bits_beyond_the_vocabulary_are_damage():
    content = bytearray(make_report([], WORDS, EXACT)[:-4])
    content[-1] |= 0x80
    content += struct.pack("<I", zlib.crc32(bytes(content)))
    assert "beyond the vocabulary" in read_reports([bytes(content)], WORDS, EXACT).rejected[0][1]


def test_nothing_to_read(tmp_path):
    (tmp_path / "empty").touch()
    batch = read_reports([tmp_path / "empty"], WORDS, EXACT)
    assert batch.data.shape == (0, 21)
    assert batch.rejected == [(0, "empty: no report in it")]
    assert read_reports([], WORDS, EXACT).data.shape == (0, 21)


def test_misuse_is_refused(tmp_path):
    with pytest.raises(TypeError, match="put a single one into a list"):
        read_reports(tmp_path / "one", WORDS, EXACT)
    with pytest.raises(TypeError, match="Split it first"):
        make_report("word1 word2", WORDS, EXACT)
    with pytest.raises(ValueError, match="got 'a' 2 times"):
        make_report(["a"], ["a", "b", "a"], EXACT)
    with pytest.raises(ValueError, match="at least one word"):
        make_report(["a"], [], EXACT)
    with pytest.raises(ValueError, match="must have the channel's 2 words"):
        make_reports(np.eye(3), ["a", "b"], EXACT)
    with pytest.raises(FileNotFoundError):
        read_reports([tmp_path / "missing"], WORDS, EXACT)


def test_what_read_reports_says_of_hostile_input_is_bounded():
    batch = read_reports([b"x", b"SKLR" * 50_000, b"y"], WORDS, EXACT)
    assert len(batch.rejected) == 1001
    assert batch.rejected[0][0] == 0 and batch.rejected[-1] == (1, "and 49,002 more, from this file on")


def test_a_file_of_overlapping_reports_is_not_summed_up_over_and_over():
    words = [f"word{i}" for i in range(80_000)]
    good = make_report([], words, EXACT)
    hostile = good[:40] * 20_000 + good[:-1]  # 20,000 checksums of 10 kB each, if all were made
    batch = read_reports([good + hostile, good], words, EXACT)
    assert batch.sources.tolist() == [0, 1]
    assert batch.rejected[-1][1].startswith("given up at byte")
    assert len(batch.rejected) < 1001


def test_a_long_vocabulary_with_a_repeated_last_word_is_refused_in_linear_time():
    words = [*map(str, range(200_000)), "199999"]
    with pytest.raises(ValueError, match="got '199999' 2 times"):
        make_report([], words, EXACT)
    with pytest.raises(ValueError, match="distinct words"):
        ReleasedTopicModel(
            np.full((1, len(words)), 1 / len(words)), words, privacy_guarantee=PrivacyGuarantee(epsilon=1.0)
        )


def test_a_device_loads_nothing_of_the_server():
    """In an interpreter of its own: this one has imported everything."""
    code = "import sys, skdplda.local; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages = {name.split(".")[1] for name in done.stdout.split() if name.startswith("skdplda.")}
    checks = {"_arithmetic", "_checks", "_files", "_kernels", "_types", "_warnings", "exceptions"}
    assert packages == checks | {"local", "privacy"}


def test_a_seeded_report_warns():
    with pytest.warns(PrivacyLeakWarning, match="LocalRandomizer was given random_state=5"):
        make_report([], WORDS, LocalRandomizer(1.0, random_state=5))
