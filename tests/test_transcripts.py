"""A transcript holds what was released, and the same model comes of it; other models of it cost nothing."""

import io
import json
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skdplda import PCTD, VIPSLDA, EmbeddingTopics, PrivacyAccountant, PrivateCGSLDA, PublicPrior, release
from skdplda.datasets import make_lda_corpus

pytestmark = pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning", "ignore::UserWarning")

X = make_lda_corpus(1500, 60, 4, random_state=0).data
WORD_VECTORS = np.random.default_rng(0).integers(-9, 10, (60, 8)).astype(float)
USERS = np.arange(1500) // 2
SEED = 2**200 + 5
ONLINE = {"learning_method": "online", "batch_size": 300, "nominal_size": 1500, "max_iter": 4}
SEEDS = PublicPrior.from_seed_words({"first": ["w0", "w1"], "second": ["w2"]}).for_words([f"w{i}" for i in range(60)])


def clusters(**settings):
    return EmbeddingTopics(3, epsilon=4.0, random_state=SEED, **settings)


def fitted(path, model, **options):
    options = {name: value for name, value in options.items() if value is not None}
    return model.fit(X @ np.random.default_rng(0).integers(-9, 10, (60, 8)) if "counts" in options else X,
                     transcript=path, **options)  # fmt: skip


FITS = {
    "vips": (VIPSLDA(4, epsilon=4.0), {}),
    "vips, one topic": (VIPSLDA(1, epsilon=4.0), {}),
    "vips, little budget": (VIPSLDA(4, epsilon=0.1), {}),
    "vips of users, prior asked for": (VIPSLDA(4, epsilon=9.0, doc_topic_prior="infer"), {"groups": USERS}),
    "vips, samples": (VIPSLDA(4, epsilon=9.0, **ONLINE), {}),
    "cgs": (PrivateCGSLDA(4, epsilon=4.0, doc_topic_prior=[0.1, 0.2, 0.3, 0.4]), {}),
    "cgs, laplace": (PrivateCGSLDA(4, epsilon=9.0, mechanism="laplace", max_iter=3), {}),
    "pctd": (PCTD(4, epsilon=4.0, max_iter=3), {}),
    "clusters and words": (EmbeddingTopics(3, epsilon=4.0), {"counts": X}),
    "clusters and words near them": (EmbeddingTopics(3, epsilon=4.0), {"counts": X, "word_vectors": WORD_VECTORS}),
    "clusters, public start": (EmbeddingTopics(3, epsilon=4.0, public_rows=np.eye(3, 8)), {"counts": X}),
}


@pytest.mark.parametrize("name", FITS)
def test_the_same_model_comes_of_a_transcript_and_no_data(name, tmp_path):
    model, options = FITS[name]
    path = tmp_path / "topics.transcript"
    fitted(path, model, **options)
    with PrivacyAccountant(1e-9, 1e-12) as accountant:  # which could pay for nothing
        again = type(model).from_transcript(path)
    assert accountant.ledger == ()
    ours, theirs = ({n: v for n, v in vars(m).items() if n.endswith("_")} for m in (model, again))
    assert ours.keys() == theirs.keys()
    for attribute, value in ours.items():
        if isinstance(value, np.ndarray):
            assert_array_equal(theirs[attribute], value, err_msg=attribute)
        else:
            assert theirs[attribute] == value, attribute
    names = [f"w{i}" for i in range(60)]
    assert release(again, feature_names=names).privacy_guarantee_ == model.privacy_guarantee_


def test_seeds_come_again_with_their_prior_alone(tmp_path):
    path = tmp_path / "t"
    model = VIPSLDA(4, epsilon=4.0, prior=SEEDS).fit(X, transcript=path)
    again = VIPSLDA.from_transcript(path, prior=SEEDS)
    assert_array_equal(again.components_, model.components_)
    assert_array_equal(again.topic_names_, model.topic_names_)
    other = PublicPrior.from_seed_words({"first": ["w0", "w3"]}).for_words([f"w{i}" for i in range(60)])
    for prior in (None, other):
        with pytest.raises(ValueError, match="prior must be that of the fit"):
            VIPSLDA.from_transcript(path, prior=prior)
    VIPSLDA(4, epsilon=4.0).fit(X, transcript=tmp_path / "none")
    with pytest.raises(ValueError, match="prior must be that of the fit"):
        VIPSLDA.from_transcript(tmp_path / "none", prior=SEEDS)


def test_other_models_of_the_same_releases(tmp_path):
    model = VIPSLDA(4, epsilon=9.0).fit(X, transcript=tmp_path / "t")
    said = model.privacy_guarantee_
    smooth = VIPSLDA.from_transcript(tmp_path / "t", topic_word_prior=7.0)
    np.testing.assert_allclose(smooth.components_ - model.components_, 7.0 - model._topic_word_prior(), rtol=1e-6)
    few = VIPSLDA.from_transcript(tmp_path / "t", n_apart=2)
    assert few.topic_signal_to_noise_[:2].all() and not few.topic_signal_to_noise_[2:].any()
    others = few.topic_word_[2:]
    np.testing.assert_allclose(others[0], others[1])
    last, whole = (VIPSLDA.from_transcript(tmp_path / "t", forget=forget) for forget in (1.0, 0.0))
    # The mean of all releases has less noise than the last one.
    assert whole.topic_signal_to_noise_.mean() > last.topic_signal_to_noise_.mean()
    assert {m.privacy_guarantee_ for m in (smooth, few, last, whole)} == {said}


@pytest.mark.parametrize(
    "options", [{"forget": 1.5}, {"forget": np.nan}, {"n_apart": 0}, {"n_apart": 5}, {"n_apart": "2"}]
)
def test_options_out_of_range_are_refused(options, tmp_path):
    VIPSLDA(4, epsilon=4.0).fit(X, transcript=tmp_path / "t")
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be a number from"):
        VIPSLDA.from_transcript(tmp_path / "t", **options)


def test_options_that_do_not_fit_are_refused(tmp_path):
    PCTD(4, epsilon=4.0, max_iter=2).fit(X, transcript=tmp_path / "t")
    with pytest.raises(ValueError, match="releases divide the budget"):
        PCTD.from_transcript(tmp_path / "t", n_apart=2)
    with pytest.raises(ValueError, match="of VIPSLDA; this one is of PCTD"):
        VIPSLDA.from_transcript(tmp_path / "t")


def test_what_cannot_be_kept_is_refused_before_the_charge(tmp_path):
    (tmp_path / "there").write_text("a paid model")
    cases = [
        (VIPSLDA(4, epsilon=np.inf), tmp_path / "t", "without noise"),
        (PCTD(4, epsilon=4.0, noise_on="units"), tmp_path / "t", "published forms"),
        (VIPSLDA(4), tmp_path / "nowhere" / "t", "transcript must name a new file"),
        (VIPSLDA(4), tmp_path / "there", "there"),
    ]
    for model, path, message in cases:
        with PrivacyAccountant(100.0, 1e-2) as accountant, pytest.raises((ValueError, OSError), match=message):
            model.fit(X, transcript=path)
        assert accountant.ledger == ()
    assert (tmp_path / "there").read_text() == "a paid model" and len(list(tmp_path.iterdir())) == 1


def test_a_transcript_holds_no_secret(tmp_path):
    """Neither the seed, nor the key of the noise or of hidden draws, nor documents: the kinds of its arrays say so."""
    VIPSLDA(4, epsilon=4.0, random_state=SEED).fit(X, transcript=tmp_path / "t", groups=USERS)
    content = (tmp_path / "t").read_bytes()
    header, arrays = parts(tmp_path / "t")
    assert str(SEED) not in json.dumps(header) and "random_state" not in header["parameters"]
    assert SEED.to_bytes(26, "little")[:16] not in content
    assert set(arrays) == {f"a_{number}" for number in range(len(header["kinds"]))}
    public = {"format", "version", "model", "parameters", "columns", "words", "named", "grouped", "prior"}
    assert set(header) == public | {"guarantee", "table_key", "kinds", "multipliers"}


def parts(path):
    with zipfile.ZipFile(path) as archive:
        arrays = {name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name))) for name in archive.namelist()}
    return json.loads(str(arrays.pop("header"))), arrays


def written(path, header, arrays):
    with open(path, "wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)


def changed(header, arrays, number):
    """Return a damaged transcript, one of many kinds."""
    header, arrays = dict(header), dict(arrays)
    n = len(header["kinds"])
    if number == 0:
        del arrays[f"a_{n - 1}"]
    elif number == 1:
        arrays["a_1"] = arrays["a_1"][:-1]
    elif number == 2:
        arrays["a_1"] = arrays["a_1"].astype(np.float64)
    elif number == 3:
        header["multipliers"] = [0.5 * scale for scale in header["multipliers"]]
    elif number == 4:
        header |= {name: header[name][:-1] for name in ("kinds", "multipliers")}
    elif number == 5:
        header |= {name: [*header[name], header[name][-1]] for name in ("kinds", "multipliers")}
        arrays[f"a_{n}"] = arrays[f"a_{n - 1}"]
    elif number == 6:
        header["parameters"] = header["parameters"] | {"epsilon": 8.0}
    elif number == 7:
        header["parameters"] = header["parameters"] | {"n_components": "four"}
    elif number == 8:
        header["columns"] = [61, None]
    elif number == 9:
        header["kinds"] = header["kinds"][::-1]
    elif number == 10:
        header["guarantee"] = {}
    elif number == 11:
        header["parameters"] = header["parameters"] | {"no_such": 1}
    elif number == 12:
        header["version"] = 99
    else:
        del header["table_key"]
    return header, arrays


@pytest.mark.parametrize("number", range(14))
def test_damaged_transcripts_are_refused(number, tmp_path):
    VIPSLDA(4, epsilon=4.0, random_state=SEED).fit(X, transcript=tmp_path / "t")
    written(tmp_path / "d", *changed(*parts(tmp_path / "t"), number))
    with pytest.raises(ValueError):
        VIPSLDA.from_transcript(tmp_path / "d")


def test_a_resumed_fit_keeps_the_whole_transcript(tmp_path):
    def stop(report):
        if report.n_done == 4:
            raise KeyboardInterrupt

    for settings in ({}, {"mechanism": "laplace", "max_iter": 6}):
        model = PrivateCGSLDA(3, epsilon=4.0, random_state=SEED, checkpoint=tmp_path / "c", **settings)
        with pytest.raises(KeyboardInterrupt):
            model.set_params(callback=stop).fit(X, transcript=tmp_path / "t")
        assert not (tmp_path / "t").exists()
        model.set_params(callback=None).fit(X, transcript=tmp_path / "t")
        whole = PrivateCGSLDA(3, epsilon=4.0, random_state=SEED, **settings).fit(X)
        assert_array_equal(model.components_, whole.components_)
        assert_array_equal(PrivateCGSLDA.from_transcript(tmp_path / "t").components_, whole.components_)
        assert not (tmp_path / "c").exists()
        (tmp_path / "t").unlink()
