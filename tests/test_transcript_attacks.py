"""Attacks on transcripts: what is paid for is not lost, and a file promises no more than its settings do."""

import errno
import io
import json
import zipfile
from fractions import Fraction

import numpy as np
import pytest
from internals import transcripts as _transcripts
from numpy.testing import assert_array_equal

from skdplda import PCTD, VIPSLDA, EmbeddingTopics, PrivacyAccountant, PrivateCGSLDA
from skdplda.datasets import make_lda_corpus
from skdplda.published import PublishedVIPSLDA

pytestmark = pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning", "ignore::UserWarning")

X = make_lda_corpus(400, 60, 4, random_state=0).data
SEED = 2**200 + 41


class Outsider(VIPSLDA):
    """A class of another author, whose fits are claimed."""

    def _make_e_step(self, *args):
        return super()._make_e_step(*args)


Outsider.__name__ = Outsider.__qualname__ = "VIPSLDA"


@pytest.mark.parametrize("settings", [{"learning_offset": 0.0, "n_components": 1}, {"learning_decay": 0.0}])
def test_words_that_the_noise_took_from_all_topics_stay_in_the_question(settings, tmp_path):
    """Here the table is the positive part of a release, which has rows of zeros."""
    options = {"n_components": 2, "epsilon": 0.5, "learning_method": "online", "max_iter": 4, "random_state": SEED}
    model = VIPSLDA(**options | settings).fit(X, transcript=tmp_path / "t")
    assert_array_equal(VIPSLDA.from_transcript(tmp_path / "t").components_, model.components_)


@pytest.mark.parametrize(
    "model",
    [
        VIPSLDA(3, doc_topic_prior=[Fraction(1, 2)] * 3),
        VIPSLDA(3, doc_topic_prior=np.array([0.1, 0.2, 0.3], dtype=object)),
        EmbeddingTopics(3, public_rows=np.eye(3, 60).astype(object)),
    ],
)
def test_parameters_that_no_file_holds_are_refused_before_the_charge(model, tmp_path):
    with PrivacyAccountant(100.0, 1e-2) as accountant, pytest.raises(ValueError, match="which no transcript holds"):
        model.fit(X, transcript=tmp_path / "t")
    assert accountant.ledger == () and not list(tmp_path.iterdir())


def test_a_checkpoint_is_never_taken_for_a_transcript(tmp_path):
    """Of an interrupted fit, the file would hold the key of the noise."""
    (tmp_path / "link").symlink_to(tmp_path)
    model = VIPSLDA(3, checkpoint=tmp_path / "link" / "t")
    with PrivacyAccountant(100.0, 1e-2) as accountant, pytest.raises(ValueError, match="another file than checkpoint"):
        model.fit(X, transcript=tmp_path / "t")
    assert accountant.ledger == ()


def test_where_the_disk_is_full_the_model_is_fitted(tmp_path, monkeypatch):
    def full(path, header, arrays):
        raise OSError(errno.ENOSPC, "No space left on device")

    model = VIPSLDA(3, random_state=SEED)
    monkeypatch.setattr(_transcripts, "write_arrays", full)
    with pytest.raises(OSError, match="The model is fitted"):
        model.fit(X, transcript=tmp_path / "t")
    assert_array_equal(model.components_, VIPSLDA(3, random_state=SEED).fit(X).components_)
    assert not hasattr(model, "transcript")


def test_numbers_in_single_precision_buy_the_noise_of_their_values(tmp_path):
    """Else what a sampler's error costs is lost in the rounding of delta, and a transcript has other noise."""
    narrow = {"epsilon": np.float32(4.1), "delta": np.float32(1e-5)}
    wide = {name: float(value) for name, value in narrow.items()}
    for model in (
        VIPSLDA(3),
        VIPSLDA(3, max_norm=5.0),
        PCTD(3),
        EmbeddingTopics(3),
        PublishedVIPSLDA(3, accounting="zcdp"),
    ):
        narrow_cost = model.set_params(**narrow).privacy_cost()
        assert narrow_cost == model.set_params(**wide).privacy_cost()
    model = VIPSLDA(3, **narrow).fit(X, transcript=tmp_path / "t")
    assert_array_equal(VIPSLDA.from_transcript(tmp_path / "t").components_, model.components_)


def test_a_second_fit_does_not_write_over_the_transcript_of_the_first(tmp_path):
    VIPSLDA(2).fit(X, transcript=tmp_path / "t")
    written = (tmp_path / "t").read_bytes()
    with PrivacyAccountant(100.0, 1e-2) as accountant, pytest.raises(FileExistsError, match="one for each fit"):
        VIPSLDA(2).fit(X, transcript=tmp_path / "t")
    assert accountant.ledger == () and (tmp_path / "t").read_bytes() == written


def parts(path):
    with zipfile.ZipFile(path) as archive:
        arrays = {name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name))) for name in archive.namelist()}
    return json.loads(str(arrays.pop("header"))), arrays


def forged(path, change):
    """Change the header and the arrays of a transcript."""
    header, arrays = parts(path)
    change(header, arrays)
    with open(path, "wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)


def promise(**fields):
    return lambda header, arrays: header["guarantee"].update(fields)


FORGERIES = {
    "no noise is proven": promise(epsilon=5.0, event=None),
    "users for documents": promise(unit="user"),
    "less is assumed": promise(assumptions=[]),
    "more is covered": promise(released=["the documents"]),
    "nothing is left out": promise(not_covered=[]),
    "a path to write to": lambda header, arrays: header["parameters"].update(checkpoint="/tmp/x"),
    "a known seed": lambda header, arrays: header["parameters"].update(random_state=1),
    "a release more": lambda header, arrays: (
        header["multipliers"].append(1.0), arrays.update({f"a_{len(header['kinds'])}": arrays["a_0"]}),
    ),
    "more columns": lambda header, arrays: header.update(columns=[2**40, None]),
    "no columns": lambda header, arrays: header.update(columns=[0, None]),
    "columns of texts": lambda header, arrays: header.update(columns=["60", None]),
    "no list of columns": lambda header, arrays: header.update(columns=60),
    "no header": lambda header, arrays: header.clear(),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
@pytest.mark.parametrize("model", [VIPSLDA(3), PCTD(3, max_iter=2), EmbeddingTopics(3)])
def test_forged_transcripts_are_refused(model, name, tmp_path):
    model.set_params(random_state=None).fit(X, transcript=tmp_path / "t")
    type(model).from_transcript(tmp_path / "t")
    forged(tmp_path / "t", FORGERIES[name])
    with pytest.raises((ValueError, MemoryError)):
        type(model).from_transcript(tmp_path / "t")


@pytest.mark.parametrize("seed", [1, SEED, bytes(range(20))])
def test_what_a_seed_leaves_of_a_guarantee_is_kept(seed, tmp_path):
    model = PrivateCGSLDA(3, random_state=seed).fit(X, transcript=tmp_path / "t")
    assert PrivateCGSLDA.from_transcript(tmp_path / "t").privacy_guarantee_ == model.privacy_guarantee_


def test_a_claimed_guarantee_does_not_come_back_proven(tmp_path):
    model = PublishedVIPSLDA(3, accounting="zcdp", max_iter=4).fit(X, transcript=tmp_path / "t")
    assert PublishedVIPSLDA.from_transcript(tmp_path / "t").privacy_guarantee_ == model.privacy_guarantee_
    forged(tmp_path / "t", promise(status="proven", reason="", event=None))
    with pytest.raises(ValueError, match="guarantee is not that of its settings"):
        PublishedVIPSLDA.from_transcript(tmp_path / "t")


def test_a_class_of_another_author_is_not_taken_for_one_of_the_same_name(tmp_path):
    model = Outsider(3).fit(X, transcript=tmp_path / "t")
    assert model.privacy_guarantee_.status == "claimed"
    assert Outsider.from_transcript(tmp_path / "t").privacy_guarantee_ == model.privacy_guarantee_
    with pytest.raises(ValueError, match="path must name a transcript of VIPSLDA"):
        VIPSLDA.from_transcript(tmp_path / "t")
