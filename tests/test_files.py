"""What tells data apart: by content, never by a text that may be shortened."""

import datetime
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from internals import fingerprint, settings_of
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import PCTD, VIPSLDA, EmbeddingTopics, PrivateCGSLDA, PublicPrior
from skdplda.datasets import make_lda_corpus


def changed(array):
    other = np.array(array)
    other[tuple(size // 2 for size in other.shape)] += 1
    return other


LONG = np.arange(6000.0).reshape(1500, 4)
SPARSE = sp.csr_array(np.where(LONG % 3 == 0, LONG, 0))
OTHER = sp.csr_array(np.where(LONG % 3 == 0, changed(LONG), 0) + np.eye(1500, 4, k=-700))


def numbered(add):
    return lambda x: x + add


DIFFERENT = {
    "arrays": (LONG, changed(LONG)),
    "shapes": (LONG, LONG.reshape(750, 8)),
    "dtypes": (np.zeros(3, np.float32), np.zeros(3, np.int32)),
    "empty": (np.zeros((0, 3)), np.zeros((3, 0))),
    "frames": (pd.DataFrame(LONG), pd.DataFrame(changed(LONG))),
    "series": (pd.Series(LONG[:, 0]), pd.Series(changed(LONG[:, 0]))),
    "lists": (LONG.tolist(), changed(LONG).tolist()),
    "memory": (np.array(["2030-01-01"], "M8[D]"), np.array(["2030-01-02"], "M8[D]")),
    "objects": (np.array([1, "a"], object), np.array([1, "b"], object)),
    "csr": (SPARSE, OTHER),
    "coo": (SPARSE.tocoo(), OTHER.tocoo()),
    "lil": (SPARSE.tolil(), OTHER.tolil()),
    "dok": (SPARSE.todok(), OTHER.todok()),
    "wider": (SPARSE, sp.csr_array((SPARSE.data, SPARSE.indices, SPARSE.indptr), shape=(1500, 5))),
    "priors": tuple(PublicPrior.from_frequencies({"pear": p, "fig": 1 - p}) for p in (0.5, 0.6)),
    "dicts": ({"a": LONG}, {"a": changed(LONG)}),
    "estimators": (CountVectorizer(), CountVectorizer(vocabulary={"pear": 0})),
    "nested": (PCTD(similarity=SPARSE), PCTD(similarity=OTHER)),
    "functions": (lambda x: x + 1, lambda x: x + 2),
    "closures": (numbered(1), numbered(2)),
    "partials": (partial(max, LONG[0]), partial(max, LONG[1])),
    "dates": (datetime.date(2030, 1, 1), datetime.date(2030, 1, 2)),
    "texts": ("a", b"a"),
    "numbers": (1, True),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_what_differs_has_another_fingerprint(kind):
    one, other = DIFFERENT[kind]
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one) and fingerprint([other]) != fingerprint([one])
    if not callable(one):
        copied = one.copy() if hasattr(one, "copy") else one
        assert fingerprint(copied) == fingerprint(one)


def test_order_of_names_does_not_count_and_bounds_of_parts_do():
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint("ab", "c") != fingerprint("a", "bc") != fingerprint(["a", "bc"])
    assert fingerprint({"pear", "fig"}) == fingerprint({"fig", "pear"})
    assert fingerprint(np.random.default_rng(0)) == fingerprint(np.random.default_rng(1))
    whole = [1]
    whole.append(whole)
    assert fingerprint(whole) == fingerprint(whole)


def test_what_cannot_be_told_apart_is_refused():
    with pytest.raises(TypeError):
        fingerprint(number for number in (1, 2))


SETTINGS = {
    "public_rows": (EmbeddingTopics, pd.DataFrame(LONG), pd.DataFrame(changed(LONG))),
    "projection": (EmbeddingTopics, pd.DataFrame(LONG), pd.DataFrame(changed(LONG))),
    "init": (EmbeddingTopics, pd.DataFrame(LONG), pd.DataFrame(changed(LONG))),
    "centre": (EmbeddingTopics, pd.Series(LONG[:, 0]), pd.Series(changed(LONG[:, 0]))),
    "public_weights": (EmbeddingTopics, pd.Series(LONG[:, 1]), pd.Series(changed(LONG[:, 1]))),
    "doc_topic_prior": (VIPSLDA, pd.Series(LONG[:, 0]), pd.Series(changed(LONG[:, 0]))),
    "similarity": (PCTD, SPARSE, OTHER),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_checkpoint_sees_every_entry_of_a_parameter(name):
    kind, one, other = SETTINGS[name]
    assert settings_of(kind(**{name: one})) == settings_of(kind(**{name: one.copy()}))
    assert settings_of(kind(**{name: one})) != settings_of(kind(**{name: other}))


@pytest.mark.filterwarnings("ignore:X is a plain document-term matrix", "ignore::UserWarning")
@pytest.mark.parametrize("kind", [VIPSLDA, PrivateCGSLDA, PCTD], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("narrower", [True, False])
def test_a_checkpoint_belongs_to_the_shape_of_its_documents(kind, narrower, tmp_path):
    """Columns of zeros are not in the arrays of a sparse matrix."""

    def stop(report):
        raise KeyboardInterrupt

    X = sp.csr_array(make_lda_corpus(60, 20, 3, mean_length=20, random_state=0).data)
    wider = sp.csr_array((X.data, X.indices, X.indptr), shape=(60, 25))
    first, second = (wider, X) if narrower else (X, wider)
    model = kind(3, max_iter=3, checkpoint=tmp_path / "fit", callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(first)
    with pytest.raises(ValueError, match="other parameters or other data"):
        model.set_params(callback=None).fit(second)
    assert model.fit(first).n_features_in_ == first.shape[1]
