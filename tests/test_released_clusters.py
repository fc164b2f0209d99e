"""Released clusters of embeddings: a colleague places new embeddings with the file alone."""

import zipfile

import numpy as np
import pytest
from forged_files import members_of, write_members

from skdplda import EmbeddingTopics, PrivacyGuarantee, ReleasedClusterModel, load_released, release
from skdplda.reports import report

WORDS = ["tea", "milk", "iron", "zinc"]
PARTS = ("cluster_centers", "centre", "cluster_sizes", "size_deviation", "concentration")


@pytest.fixture(scope="module", params=[None, 4, np.eye(6)[:, :4]], ids=["whole", "projected", "matrix"])
def fitted(request):
    rng = np.random.default_rng(0)
    labels = np.arange(3000) % 2
    X = np.eye(6)[labels] + rng.normal(scale=0.1, size=(3000, 6))
    words = np.array([[1.0, 1.0, 0.1, 0.1], [0.1, 0.1, 1.0, 1.0]])
    model = EmbeddingTopics(2, epsilon=5.0, public_rows=np.eye(6)[:2], projection=request.param)
    return model.fit(X, counts=rng.poisson(words[labels])), X


def toy(**changes):
    given = {
        "topic_word": [[1.0, 0.0], [0.0, 1.0]],
        "vocabulary": ["tea", "iron"],
        "cluster_centers": np.eye(3)[:2],
        "centre": np.zeros(3),
        "cluster_sizes": [10.0, -1.0],
        "size_deviation": 2.0,
        "concentration": 5.0,
        "privacy_guarantee": PrivacyGuarantee(epsilon=1.0),
    }
    return ReleasedClusterModel(**given | changes)


def test_a_file_places_new_embeddings_as_the_model_does(fitted, tmp_path):
    model, X = fitted
    release(model, feature_names=WORDS).save(tmp_path / "clusters.zip")
    again = load_released(tmp_path / "clusters.zip")
    assert isinstance(again, ReleasedClusterModel) and again.n_features_in_ == 6
    new = np.vstack([X[:50], np.zeros((1, 6)), np.full((1, 6), np.nan)])
    np.testing.assert_array_equal(again.transform(new), model.transform(new))
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert again.predict(new)[-2:].tolist() == [-1, -1]
    assert again.score(X) == model.score(X)
    for name in ("cluster_centers_", "centre_", "cluster_sizes_", "topic_word_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    for column in ("documents", "documents_deviation", "size"):
        assert again.topic_info(2)[column].equals(model.topic_info(2, WORDS)[column])
    assert again.top_words(2).equals(model.top_words(2, WORDS))
    counts = np.eye(4, dtype=int) * 9
    assert again.perplexity(counts) == model.perplexity(counts) and again.n_features_in_ == 6
    assert again.privacy_guarantee_ == model.privacy_guarantee_
    with pytest.raises(ValueError, match="features"):
        again.transform(X[:, :4])


def test_nothing_of_a_text_is_in_the_file(fitted, tmp_path):
    model, _ = fitted
    released = release(model, feature_names=WORDS)
    released.save(tmp_path / "clusters.zip")
    with zipfile.ZipFile(tmp_path / "clusters.zip") as archive:
        names = {*archive.namelist()} - {"projection.npy"}
    arrays = {"topic_word", "signal_to_noise", "cluster_centers", "centre", "cluster_sizes", "scale"}
    assert names == {"header.json", "sha256.txt", *(f"{name}.npy" for name in arrays)}
    assert "model.transform(embeddings" in released.card() and "ReleasedClusterModel" in repr(released)
    released.save(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "clusters.zip").read_bytes()
    renamed = released.rename_topics({0: "drinks"})
    renamed.save(tmp_path / "named.zip")
    assert load_released(tmp_path / "named.zip").get_feature_names_out()[0] == "drinks"
    page = report(load_released(tmp_path / "named.zip"), tmp_path / "page.html").read_text()
    assert "drinks" in page and "zinc" in page


@pytest.mark.parametrize("unit", ["document", "user"])
def test_a_page_speaks_of_clusters_and_marks_those_below_the_noise(unit, tmp_path):
    guarantee = PrivacyGuarantee(epsilon=1.0, unit=unit)
    model = toy(cluster_sizes=[40.0, -1.0], privacy_guarantee=guarantee)
    page = report(model, tmp_path / "page.html").read_text()
    shown = ["40 \u00b1 4", "-1 \u00b1 4"] if unit == "document" else ["100.0 \u00b1 10.0 %", "-2.5 \u00b1 10.0 %"]
    for said in ("<h1>Clusters</h1>", "found 2 clusters", "1 of the 2 clusters do not", *shown):
        assert said in page
    for unsaid in ("Topic", "topics", "Jensen-Shannon", "often used together", "released counts", "width:-"):
        assert unsaid not in page
    assert page.count("<summary>1 cluster that may be noise</summary>") == 1
    assert model.topic_info()["noise"].tolist() == [False, True]
    alike = toy(cluster_centers=[[1.0, 0, 0], [0.8, 0.6, 0]], cluster_sizes=[40.0, 30.0])  # of other words
    assert "distance 0.20" in report(alike, tmp_path / "alike.html").read_text()
    report(toy(cluster_centers=np.zeros((2, 3)), cluster_sizes=[-1.0, -2.0]), tmp_path / "nothing.html")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cluster_centers": np.eye(3)}, "cluster_centers must have finite numbers and the shape"),
        ({"cluster_centers": 2 * np.eye(3)[:2]}, "of length 1"),
        ({"centre": np.zeros(2)}, "centre must have"),
        ({"centre": np.ones(3)}, "length 1 at most"),
        ({"cluster_sizes": [np.nan, 1.0]}, "cluster_sizes must have finite numbers"),
        ({"size_deviation": -1.0}, "must be from 0"),
        ({"projection": np.ones((5, 2))}, "projection must have"),
    ],
)
def test_values_that_are_no_clusters_are_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        toy(**changes)


def test_a_file_without_one_of_its_arrays_is_refused(tmp_path):
    model = toy(projection=np.ones((5, 3)))
    for gone in ("centre", "scale", "cluster_sizes"):
        members = {name: data for name, data in members_of(model).items() if name != f"{gone}.npy"}
        write_members(tmp_path / f"{gone}.zip", members)
        with pytest.raises(ValueError, match="cannot be read"):
            load_released(tmp_path / f"{gone}.zip")


def test_merged_clusters_are_one_of_added_sizes_and_words(fitted, tmp_path):
    model, X = fitted
    for one in (model, release(model, feature_names=WORDS)):
        merged = one.merge_topics([[0, 1]])
        assert len(one.cluster_centers_) == 2 and merged.cluster_centers_.shape == (1, one.cluster_centers_.shape[1])
        np.testing.assert_allclose(merged.cluster_sizes_, [one.cluster_sizes_.sum()])
        np.testing.assert_allclose(merged.size_deviation_, [one.size_deviation_ * np.sqrt(2)])
        assert set(merged.predict(X)) == {0} and merged.topic_word_.sum() == pytest.approx(1.0)
        assert merged.topic_info(2, WORDS if one is model else None)["size"].tolist() == [1.0]
    merged.save(tmp_path / "merged.zip")
    assert load_released(tmp_path / "merged.zip").topic_info(2).equals(merged.topic_info(2))
    assert (
        release(model.reduce_topics(1), feature_names=WORDS).cluster_sizes_.tolist() == merged.cluster_sizes_.tolist()
    )


def test_merged_clusters_have_an_error_each_that_their_file_keeps(tmp_path):
    centers = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.6, 0.8]])
    model = toy(
        topic_word=np.array([[0.8, 0.2], [0.5, 0.5], [0.0, 1.0]]),
        cluster_centers=centers,
        cluster_sizes=[10.0, 30.0, 10.0],
        keyword_scores=[[2.0, -1.5], [-1.2, -1.3], [3.0, 1.0]],
        topic_names=["a", "b", "c"],
        signal_to_noise=[[5.0, 1.0], [2.0, 2.0], [0.0, 4.0]],
    )
    merged = model.reduce_topics(2)
    assert merged.get_feature_names_out().tolist() == ["a", "b"]
    whole = 30 * centers[1] + 10 * centers[2]
    np.testing.assert_allclose(merged.cluster_centers_, [centers[0], whole / np.linalg.norm(whole)])
    np.testing.assert_allclose(merged.topic_word_[1], 0.75 * np.array([0.5, 0.5]) + 0.25 * np.array([0.0, 1.0]))
    np.testing.assert_allclose(merged.topic_info()["documents_deviation"], [2.0, 2 * np.sqrt(2)])
    assert merged.keyword_scores_.tolist() == [[2.0, -1.5], [3.0, 1.0]]  # asked for in one of the two
    np.testing.assert_allclose(merged.signal_to_noise_[1], np.array([2.0, 6.0]) / np.sqrt(2), rtol=1e-6)
    merged.save(tmp_path / "merged.zip")
    again = load_released(tmp_path / "merged.zip")
    assert again.topic_info().equals(merged.topic_info())
    np.testing.assert_allclose(again.reduce_topics(1).size_deviation_, [2 * np.sqrt(3)])
    assert "b" in report(again, tmp_path / "page.html").read_text()
    with pytest.raises(ValueError, match="size_deviation must have finite numbers"):
        toy(size_deviation=[1.0, 2.0, 3.0])
