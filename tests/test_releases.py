"""What leaves: released models hold covered values only, survive a file, and refuse what is not safe."""

import json
import pickle
import re
import subprocess
import sys
import time
import zipfile
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from forged_files import checksum, members_of, write_members
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Binarizer

from skdplda import (
    DPCountVectorizer,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    PrivateCGSLDA,
    ReleasedTopicModel,
    load_released,
    privacy_guarantee,
    release,
)
from skdplda.metrics import coherence, gensim_dictionary
from skdplda.privacy import PrivacyAccountant
from skdplda.published import InherentPrivacyLDA, PriTopLDA

WORDS = ["plum", "pear", "apple", "zinc", "iron", "copper"]  # public, and in no order
FRUIT, METAL = "Apple pear plum pear", "iron zinc, and copper"
TEXTS = [FRUIT, METAL] * 400
NEW = ["plum and apple", "zinc or iron or zinc", ""]


def pipeline(vectorizer=None, **parameters):
    vectorizer = CountVectorizer(vocabulary=WORDS) if vectorizer is None else vectorizer
    model = PrivateCGSLDA(2, **{"epsilon": 3.0, "max_iter": 5, **parameters})
    return Pipeline([("words", vectorizer), ("topics", model)])


@pytest.fixture(scope="module")
def fitted():
    """Five noisy rounds without a seed now and then end with topics of mixed words: the next one of many, then."""
    for _ in range(30):
        found = pipeline().fit(TEXTS)
        top = found[-1].topic_word_.argsort(axis=1)[:, -3:]
        if {tuple(sorted(words)) for words in top.tolist()} == {(0, 1, 2), (3, 4, 5)}:
            return found
    raise AssertionError("no fit of thirty found the topics")


@pytest.fixture(scope="module")
def released(fitted):
    return release(fitted)


def toy(**options):
    options = {"privacy_guarantee": PrivacyGuarantee(epsilon=1.0), **options}
    return ReleasedTopicModel([[0.5, 0.5, 0.0], [0.0, 0.2, 0.8]], **options)


# --- what it does -------------------------------------------------------------------------------------


def test_it_does_what_the_pipeline_does(fitted, released):
    counts = fitted[0].transform(NEW)
    expected = fitted.transform(NEW)
    for X in (
        NEW,
        tuple(NEW),
        np.array(NEW),
        pd.Series(NEW),
        iter(NEW),
        counts,
        counts.toarray(),
        counts.toarray().tolist(),
    ):
        np.testing.assert_array_equal(released.transform(X), expected)
    assert released.score(TEXTS[:20]) == fitted.score(TEXTS[:20])
    assert released.perplexity(TEXTS[:20]) == fitted[-1].perplexity(fitted[0].transform(TEXTS[:20]))
    np.testing.assert_array_equal(released.get_topics(), fitted[-1].topic_word_)
    assert released.privacy_guarantee_ == privacy_guarantee(fitted)
    pd.testing.assert_frame_equal(
        released.top_words(3).reset_index(drop=True), fitted[-1].top_words(3, WORDS).reset_index(drop=True)
    )
    assert set(released.top_words(3).iloc[released.transform([FRUIT]).argmax()]) == {"apple", "pear", "plum"}


def test_unsorted_words_keep_their_columns(released):
    assert released.vocabulary_.tolist() == WORDS
    np.testing.assert_array_equal(released.make_vectorizer().transform(["pear"]).toarray(), [[0, 1, 0, 0, 0, 0]])


@pytest.mark.parametrize("words", [[*WORDS, "pear"], WORDS[1:], [*WORDS[:5], 6]])
def test_words_must_be_distinct_and_one_a_column(fitted, words):
    with pytest.raises(ValueError, match=r"must be 6 str|distinct words|must have 6 names"):
        ReleasedTopicModel(fitted[-1].topic_word_, words, privacy_guarantee=fitted[-1].privacy_guarantee_)


@pytest.mark.parametrize(
    "settings",
    [
        {"lowercase": False},
        {"binary": True, "strip_accents": "unicode"},
        {"ngram_range": (1, 2), "vocabulary": ["apple pear", "zinc", "iron"], "stop_words": ["and"]},
        {"analyzer": "char", "vocabulary": ["a", "z", "p"]},
        {"token_pattern": r"\w{4}", "vocabulary": ["appl", "zinc", "iron"], "stop_words": ["pear", "plum"]},
    ],
)
def test_texts_are_cut_as_before(settings, tmp_path):
    pipe = pipeline(CountVectorizer(**{"vocabulary": WORDS, **settings})).fit(TEXTS)
    release(pipe).save(tmp_path / "model.zip")
    np.testing.assert_array_equal(load_released(tmp_path / "model.zip").transform(TEXTS[:2]), pipe.transform(TEXTS[:2]))


def test_a_nested_pipeline(fitted):
    nested = make_pipeline(
        Pipeline([("inner", CountVectorizer(vocabulary=WORDS).fit(TEXTS)), ("empty", "passthrough")]), fitted[-1]
    )
    assert release(nested).transform(NEW).tolist() == fitted.transform(NEW).tolist()


def test_a_model_without_a_pipeline():
    X = CountVectorizer(vocabulary=WORDS).transform(TEXTS)
    model = PrivateCGSLDA(2, max_iter=5).fit(X)
    with pytest.raises(ValueError, match="pass feature_names"):
        release(model)
    bare = release(model, feature_names=WORDS)
    np.testing.assert_array_equal(bare.transform(X[:4]), model.transform(X[:4]))
    with pytest.raises(ValueError, match="without text settings: pass counts of its 6 words"):
        bare.transform(NEW)
    framed = PrivateCGSLDA(2, max_iter=5).fit(pd.DataFrame(X.toarray(), columns=WORDS))
    assert release(framed).vocabulary_.tolist() == WORDS
    assert release(framed, feature_names=WORDS).vocabulary_.tolist() == WORDS
    with pytest.raises(ValueError, match="must be those that 'privatecgslda' was fitted with"):
        release(framed, feature_names=sorted(WORDS))
    with pytest.raises(ValueError, match="feature_names must be None: 'words' names"):
        release(pipeline().fit(TEXTS), feature_names=WORDS)


def test_bad_input(released):
    with pytest.raises(ValueError, match="Put it into a list"):
        released.transform("one text")
    with pytest.raises(ValueError, match="row 1, counted from 0, has none"):
        released.transform(pd.Series(["plum", None]))
    with pytest.raises(ValueError, match="features"):
        released.transform([[1, 2]])
    with pytest.raises(ValueError, match="in the order of vocabulary_"):
        released.transform(pd.DataFrame([[1] * 6], columns=sorted(WORDS)))
    with pytest.raises(ValueError, match="Negative values"):
        released.transform([[-1] * 6])
    frame = pd.DataFrame([[1] * 6], columns=WORDS, index=["d"])
    assert released.transform(frame).shape == (1, 2)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"vocabulary": ["a", "b"]}, "vocabulary must be 3 str"),
        ({"vocabulary": "abc"}, "vocabulary must be 3 str"),
        ({"text": {}}, "need a vocabulary"),
        ({"vocabulary": list("abc"), "text": {"input": "filename"}}, "got \\['input'\\]"),
        ({"doc_topic_prior": [1.0]}, "doc_topic_prior must be"),
    ],
)
def test_the_constructor_refuses(options, match):
    with pytest.raises(ValueError, match=match):
        toy(**options)


@pytest.mark.parametrize("topics", [[1.0], [[0.5, 0.6]], [[-0.5, 1.5]], [[np.nan, 1.0]], [[]]])
def test_topics_are_distributions(topics):
    with pytest.raises(ValueError, match="topic_word must"):
        ReleasedTopicModel(topics, privacy_guarantee=PrivacyGuarantee(epsilon=1.0))
    with pytest.raises(TypeError, match="privacy_guarantee must be"):
        ReleasedTopicModel([[1.0]], privacy_guarantee="epsilon=1")


# --- as an estimator ----------------------------------------------------------------------------------


def test_it_stands_before_a_classifier(released):
    classifier = make_pipeline(clone(released), LogisticRegression())
    labels = [0, 1] * 400
    assert classifier.fit(TEXTS, labels).score(TEXTS, labels) == 1.0
    assert classifier[0] is released  # nothing to train, nothing to copy
    assert clone(classifier)[0] is released


def test_pandas_output(released):
    frame = release_of(released).set_output(transform="pandas").transform(pd.Series(NEW, index=[7, 8, 9]))
    assert list(frame.columns) == ["topic_0", "topic_1"]
    assert list(frame.index) == [7, 8, 9]
    assert list(released.top_words(2).index) == list(frame.columns)


def release_of(model):
    return pickle.loads(pickle.dumps(model))


def test_values_are_read_only(released):
    for array in (released.topic_word_, released.vocabulary_, released.doc_topic_prior_, released.get_topics()):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


def test_only_the_threads_can_be_set(released):
    assert released.get_params() == {"n_jobs": None}
    with pytest.raises(ValueError, match="Invalid parameter 'topic_word'"):
        released.set_params(topic_word=None)
    assert "2 topics, 6 words" in repr(released)


def test_plots_and_gensim(released):
    import matplotlib

    matplotlib.use("agg")
    from gensim.models import CoherenceModel

    from skdplda.plots import TopWordsDisplay

    display = TopWordsDisplay.from_estimator(released, n_words=3)
    top = released.top_words(3).to_numpy()
    assert [*map(sorted, display.words.tolist())] == [*map(sorted, top.tolist())]  # bars are in the order of length
    analyze = released.make_vectorizer().build_analyzer()
    texts = [analyze(text) for text in TEXTS]
    judge = CoherenceModel(model=released, texts=texts, coherence="c_npmi", topn=3, processes=1)
    value = coherence(released, texts, released, measure="c_npmi", n_words=3)
    assert value == pytest.approx(judge.get_coherence())
    assert value > 0.9
    assert gensim_dictionary(released).token2id["pear"] == 1
    assert not hasattr(toy(), "id2word")


# --- the file -----------------------------------------------------------------------------------------


def test_a_file_brings_back_the_model(released, tmp_path):
    released.save(tmp_path / "model.zip")
    again = load_released(str(tmp_path / "model.zip"))
    np.testing.assert_array_equal(again.topic_word_, released.topic_word_)
    np.testing.assert_array_equal(again.transform(NEW), released.transform(NEW))
    assert again.vocabulary_.tolist() == WORDS
    assert again.privacy_guarantee_ == released.privacy_guarantee_
    assert again.details_ == released.details_
    assert again.text_ == released.text_
    again.save(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "model.zip").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "again.card.json",
        "again.card.md",
        "again.zip",
        "model.card.json",
        "model.card.md",
        "model.zip",
    ]


def test_the_least_of_models_survives(tmp_path):
    toy(vocabulary=None).save(tmp_path / "toy", card=False)
    again = load_released(tmp_path / "toy")
    assert again.vocabulary_ is None
    assert again.text_ is None
    assert again.transform([[5, 1, 0], [0, 1, 5]]).argmax(axis=1).tolist() == [0, 1]
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]


def test_odd_words_survive(tmp_path):
    words = ["naïve | `code`", "a\nb\u2028\udc80", "<b>𝒳</b>"]
    model = toy(vocabulary=words)
    model.save(tmp_path / "odd.zip")
    assert load_released(tmp_path / "odd.zip").vocabulary_.tolist() == words
    card = (tmp_path / "odd.card.md").read_text(encoding="utf-8")
    assert "&lt;b&gt;𝒳" in card
    assert "naïve \\| \\`code\\`" in card


def test_the_cards(released, tmp_path):
    released.save(tmp_path / "model.zip")
    card = json.loads((tmp_path / "model.card.json").read_text())
    assert card == json.loads(released.card("json"))
    assert PrivacyGuarantee.from_json(json.dumps(card["privacy_guarantee"])) == released.privacy_guarantee_
    with zipfile.ZipFile(tmp_path / "model.zip") as archive:
        assert archive.read("sha256.txt").decode() == card["sha256"]
    assert card["top_words"] == released.top_words(6).to_numpy().tolist()
    text = (tmp_path / "model.card.md").read_text()
    assert text == released.card()
    assert str(released.privacy_guarantee_) in text
    assert "topic proportions of training documents" in text
    assert "random" not in card["details"]["parameters"]
    with pytest.raises(ValueError, match="form must be one of"):
        released.card("html")


SLOW = [r"(a+)+b", r"(?:a|a)*b", r"\w+\w+\w+\w+!", r"(\w*)*$", r"(?:a?){30}a{30}", r"(?=(a+)+b)a", r"\w+\b", 5, "[z-a]"]


@pytest.mark.parametrize("pattern", SLOW)
def test_a_pattern_that_takes_years_on_one_word_is_refused(pattern, tmp_path):
    with pytest.raises(ValueError, match="token_pattern must be like"):
        toy(vocabulary=["a", "b", "c"], text={"token_pattern": pattern})
    forged(tmp_path / "model.zip", text={"token_pattern": pattern})
    with pytest.raises(ValueError, match="token_pattern must be like"):
        load_released(tmp_path / "model.zip")


QUICK = [
    r"(?u)\b\w\w+\b",
    r"\w{4}",
    r"[a-z]+",
    r"\S+",
    r"(?u)\b[^\W\d_]\w{2,}\b",
    r"\b[\w'-]+\b",
    r"(?i)[a-z]{2,20}",
    None,
]


@pytest.mark.parametrize("pattern", QUICK)
def test_patterns_in_use_are_quick_on_long_words(pattern):
    model = toy(vocabulary=["a", "b", "c"], text={"token_pattern": pattern, "analyzer": "word" if pattern else "char"})
    words = model.make_vectorizer().build_analyzer()
    for part in ("a", "a-", "a1'", "é", "-"):
        text, began = part * 100_000 + "1!", time.process_time()
        assert words(text) == (re.findall(pattern, text) if pattern else list(text))
        assert time.process_time() - began < 30  # those above take years


def forged(path, array=None, **values):
    """Write a model whose header or array was edited, its checksum made anew."""
    model = toy(vocabulary=["a", "b", "c"])
    members = members_of(model)
    header = json.loads(members["header.json"]) | values
    members["header.json"] = json.dumps(header).encode()
    members["topic_word.npy"] = array or members["topic_word.npy"]
    write_members(path, members)
    return path


@pytest.mark.parametrize("shape", [(2**34, 3), (1, 2**34), (2, 4), (-1, -6), (6,), (), (2**70, 2**70)])
def test_an_array_that_claims_another_size_is_refused_before_it_is_allocated(shape, tmp_path):
    array = BytesIO()
    np.lib.format.write_array_header_1_0(array, {"descr": "<f8", "fortran_order": False, "shape": shape})
    array.write(np.full(6, 1 / 3).tobytes())
    with pytest.raises(ValueError, match="cannot be read"):
        load_released(forged(tmp_path / "model.zip", array=array.getvalue()))


@pytest.mark.parametrize(
    "values",
    [
        {"text": []},
        {"text": "lowercase"},
        {"text": {"ngram_range": [1, 10**9]}},
        {"text": {"ngram_range": 3}},
        {"text": {"analyzer": "os.system"}},
        {"text": {"encoding": "no such"}},
        {"text": {"lowercase": 1}},
        {"text": {"stop_words": [3]}},
        {"details": []},
        {"details": [["estimator", "x"]]},
        {"vocabulary": 3},
        {"vocabulary": {"a": 0, "b": 1, "c": [2]}, "details": 3},
        {"doc_topic_prior": "much"},
        {"privacy_guarantee": None},
        {"topic_sizes": [0.5, 0.4]},
        {"topic_sizes": [2.0, -1.0]},
        {"topic_sizes": {"a": 1}},
        {"topic_names": ["a", "a"]},
        {"topic_names": ["a", 3]},
        {"topic_names": 3},
    ],
)
def test_settings_of_another_kind_are_refused(values, tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        load_released(forged(tmp_path / "model.zip", **values))


def test_what_is_told_of_topics_is_kept_in_the_file(fitted, released, tmp_path):
    fitted_info = fitted[-1].topic_info(3, WORDS)
    released.save(tmp_path / "first.zip")
    load_released(tmp_path / "first.zip").rename_topics({0: "fruit", "topic_1": "metal"}).save(tmp_path / "model.zip")
    again = load_released(tmp_path / "model.zip")
    pd.testing.assert_frame_equal(again.topic_info(3).drop(columns="name"), fitted_info.drop(columns="name"))
    assert again.topic_info().name.tolist() == ["fruit", "metal"]
    assert again.top_words(6, mark_noise=True).to_numpy().tolist() == (
        released.top_words(6, mark_noise=True).to_numpy().tolist()
    )
    card = json.loads(again.card("json"))
    assert [topic["name"] for topic in card["topics"]] == ["fruit", "metal"]
    assert card["topics"][0]["size"] == again.topic_info()["size"][0] and "| fruit |" in again.card()
    assert again.merge_topics([["fruit", "metal"]]).topic_info()["size"].tolist() == pytest.approx([1.0])
    with pytest.raises(ValueError, match="control characters"):
        again.rename_topics({0: "a\x1b[2J"})
    with pytest.raises(ValueError, match="signal_to_noise must be finite"):
        toy(signal_to_noise=[[np.nan] * 3] * 2)


HOSTILE = "\x1b]0;you are root\x07", "a\x00b", "\x9b2J", "\u202etxt.exe", "\u2066x"


@pytest.mark.parametrize("text", HOSTILE)
def test_control_characters_reach_no_terminal(text, tmp_path):
    guarantee = json.loads(toy(vocabulary=None).privacy_guarantee_.to_json())
    for values in (
        {"vocabulary": ["a", "b", text]},
        {"details": {"estimator": text}},
        {"details": {"parameters": {text: 3}}},
        {"text": {"stop_words": [text]}},
        {"privacy_guarantee": guarantee | {"mechanism": text}},
        {"privacy_guarantee": guarantee | {"assumptions": [text]}},
    ):
        with pytest.raises(ValueError, match="control characters") as error:
            load_released(forged(tmp_path / "model.zip", **values))
        assert text not in str(error.value)
    with pytest.raises(ValueError, match="control characters"):
        toy(vocabulary=["a", "b", text])


FACTS = {"label": "Tea & iron", "owner": "A library", "date": "2030-01-31", "purpose": "to see", "region": "Europe"}
# Of schemas/deployments-schema.yaml, commit 3e9c812 of github.com/opendp/deployments-registry-data: what may be said.
REGISTRY = {
    "basic": "name data_curators intended_use data_product_type data_product_region description publication_date"
    " data_product_sector",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters privacy_parameters_details",
    "deployment_model": "model_name model_name_details actors release_type release_type_details data_source_type"
    " data_source_type_details access_type access_type_details",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources notes registry_authors",
}
WORDS_OF_REGISTRY = {
    "data_product_type": {"Machine learning model"},
    "variant_name": {"Pure DP", "Approximate DP"},
    "model_name": {"Local", "Central"},
    "release_type": {"One release", "Many releases"},
    "data_source_type": {"Static"},
    "access_type": {"Non-interactive"},
}


def test_a_card_tells_who_released_what_and_what_was_released_before(tmp_path):
    guarantee = PrivacyGuarantee(epsilon=1.0, delta=1e-6, status="proven", reference="x")
    details = {"estimator": "LDA", "parameters": {"epsilon": 0.5, "alpha": None}}
    ledger = PrivacyAccountant(epsilon=3.0, delta=1e-5)
    with pytest.raises(ValueError, match=r"a registry entry needs describe\(label=..., owner=..., date=..."):
        toy(privacy_guarantee=guarantee).card("registry")
    for label in ("words", "topics"):
        ledger.spend(guarantee, label=label)
    model = toy(privacy_guarantee=guarantee, details=details).describe(ledger=ledger, **FACTS)
    model.save(tmp_path / "model.zip")
    again = load_released(tmp_path / "model.zip")
    text = again.card()
    assert text == model.card()
    for said in ("* Owner: A library", "* Date: 2030-01-31", "* Label: Tea &amp; iron", "words; epsilon = 1, delta"):
        assert said in text
    assert "keep together: epsilon = 3, delta = 1e-5 per document" in text
    assert "| epsilon, in all | 1 |" in text and "| epsilon of the topics alone | 0.5 |" in text and "alpha" not in text
    entry = json.loads(again.card("registry"))
    assert (entry["status"], entry["tier"], entry["url_slug"]) == ("Draft", 3, "tea_iron")
    for part, fields in entry["deployment"].items():
        assert set(fields) <= set(REGISTRY[part].split())
        for name, value in fields.items():
            assert value in WORDS_OF_REGISTRY.get(name, [value])
    assert set(REGISTRY["basic"].split()) - set(entry["deployment"]["basic"]) == {"data_product_sector"}
    loss = entry["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6} and loss["privacy_unit"] == "document"
    assert entry["deployment"]["deployment_model"]["release_type"] == "Many releases"


@pytest.mark.parametrize("facts", [{"color": "red"}, {"owner": ""}, {"owner": 3}, {"date": "31.1.2030"}])
def test_facts_of_a_card_are_named_and_checked(facts):
    with pytest.raises(ValueError, match=r"facts must be str, named label, owner|date must be a day, YYYY-MM-DD"):
        toy().describe(**facts)
    with pytest.raises(ValueError, match="control characters"):
        toy().describe(owner="a\x1b[2J")
    with pytest.raises(ValueError, match="unit"):
        toy().describe(ledger=PrivacyAccountant(epsilon=1.0, unit="user"))
    with pytest.raises(ValueError, match="only a proven, finite guarantee can be registered"):
        toy().card("registry")


def test_markup_in_any_string_is_inert_on_the_cards():
    evil = "</pre>```<script>alert(1)</script> & more"
    guarantee = PrivacyGuarantee(
        epsilon=1.0, mechanism=evil, reason=evil, released=(evil,), not_covered=(evil,), assumptions=(evil,)
    )
    model = toy(
        vocabulary=[evil, "b", "c"],
        privacy_guarantee=guarantee,
        details={"estimator": evil, "parameters": {evil: evil}},
    )
    for form in ("markdown", "json"):
        assert "<script" not in model.card(form) and "</pre>`" not in model.card(form)
    assert json.loads(model.card("json"))["details"]["estimator"] == evil
    assert model.card().count("<pre>") == model.card().count("</pre>") == 1


def test_every_truncated_file_is_refused(released, tmp_path):
    whole = released._content()
    path = tmp_path / "part.zip"
    for length in [*range(0, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"part\.zip' cannot be read"):
            load_released(path)
    with pytest.raises(FileNotFoundError):
        load_released(tmp_path / "none.zip")
    with pytest.raises(FileNotFoundError, match=r"There is no folder: .*/none'$"):
        released.save(tmp_path / "none" / "part.zip")


def test_every_edited_file_is_refused(released, tmp_path):
    """A bit changed anywhere is an error that names the file, or ornament of the archive: the values are the same."""
    whole = np.frombuffer(released._content(), dtype=np.uint8)
    path = tmp_path / "edited.zip"
    rng = np.random.default_rng(0)
    refused = 0
    for position in rng.choice(len(whole), 400, replace=False):
        edited = whole.copy()
        edited[position] ^= 1 << rng.integers(8)
        path.write_bytes(edited.tobytes())
        try:
            again = load_released(path)
        except ValueError as error:
            assert "edited.zip' cannot be read" in str(error)
            refused += 1
        else:
            assert again._content() == whole.tobytes()
    assert refused > 350


def test_a_consistent_zip_with_another_content_is_refused(released, tmp_path):
    path = tmp_path / "model.zip"

    def rewrite(changes, compression=zipfile.ZIP_STORED):
        members = members_of(released)
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, data in {**members, **changes(members)}.items():
                archive.writestr(name, data)
        return path

    def header(**values):
        def changes(members):
            edited = json.dumps({**json.loads(members["header.json"]), **values}).encode()
            return {"header.json": edited, "sha256.txt": checksum({**members, "header.json": edited})}

        return changes

    def smaller_epsilon(members):
        return {"header.json": members["header.json"].replace(b'"epsilon": 3.0', b'"epsilon": 0.1')}

    stated = json.loads(released.privacy_guarantee_.to_json())
    for changes, match in (
        (smaller_epsilon, "checksum is wrong"),
        (lambda members: {"more.txt": b""}, "not a released model"),
        (header(privacy_guarantee=stated | {"epsilon": 0.001}), "epsilon must be at least what the event costs"),
        (header(version=4), "version 4.* update skdplda"),
        (header(format="other"), "not a released model"),
        (header(vocabulary=["plum"] * 6), "distinct words"),
        (header(text={"tokenizer": "os.system"}), "text: tokenizer must be True, or left out"),
        (header(text={"preprocessor": True}), "text must have keys"),
    ):
        with pytest.raises(ValueError, match=match):
            load_released(rewrite(changes))
    with pytest.raises(ValueError, match="compressed"):
        load_released(rewrite(dict, zipfile.ZIP_DEFLATED))
    with pytest.raises(ValueError, match="cannot be read"):
        path.write_bytes(pickle.dumps(released))
        load_released(path)


@pytest.mark.parametrize("name", ["model.zip", "model.card.md", "model.card.json"])
@pytest.mark.parametrize("kind", ["file", "broken link"])
def test_save_overwrites_nothing_without_being_told(released, tmp_path, name, kind):
    there = tmp_path / name
    there.write_text("precious") if kind == "file" else there.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError, match="is there already"):
        released.save(tmp_path / "model.zip")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    released.save(tmp_path / "model.zip", overwrite=True)
    assert not (tmp_path / "elsewhere").exists()
    np.testing.assert_array_equal(load_released(tmp_path / "model.zip").topic_word_, released.topic_word_)


def test_an_interrupted_save_leaves_the_former_file(released, tmp_path, monkeypatch):
    path = tmp_path / "model.zip"
    released.save(path)
    before = path.read_bytes()

    def interrupt(*values):
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "writestr", interrupt)
    with pytest.raises(KeyboardInterrupt):
        released.save(path, overwrite=True)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.partial"))


# --- what it refuses ----------------------------------------------------------------------------------


def test_seeded_fits_are_refused():
    with pytest.warns(PrivacyLeakWarning):
        seeded = pipeline(random_state=123454321).fit(TEXTS)
    with pytest.raises(ValueError, match="function of random_state"):
        release(seeded)
    forgotten = seeded.set_params(topics__random_state=None)  # the guarantee remembers
    with pytest.raises(ValueError, match="function of random_state"):
        release(forgotten)
    seeded.set_params(topics__random_state=123454321)
    model = release(seeded, allow_seeded=True)
    assert "the seed (random_state) is secret" in str(model.privacy_guarantee_).replace("\n" + " " * 16, " ")
    assert b"123454321" not in model._content() + pickle.dumps(model)  # the seed stays


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@pytest.mark.parametrize(
    "estimator",
    [PriTopLDA(2, max_iter=5), InherentPrivacyLDA(2, max_iter=5), PrivateCGSLDA(2, max_iter=5, epsilon=np.inf)],
    ids=repr,
)
def test_what_has_no_guarantee_is_refused(estimator, tmp_path):
    fitted = pipeline().set_params(topics=clone(estimator)).fit(TEXTS)
    with pytest.raises(ValueError, match="no proven, finite guarantee"):
        release(fitted)
    release(fitted, allow_unproven=True).save(tmp_path / "model.zip")
    assert load_released(tmp_path / "model.zip").privacy_guarantee_ == privacy_guarantee(fitted)
    card = " ".join((tmp_path / "model.card.md").read_text().split())
    assert "No proven, finite privacy guarantee covers these topics" in card
    assert ("CLAIMED by the publication" if isinstance(estimator, PriTopLDA) else "No privacy protection") in card


def test_functions_cannot_be_saved():
    vectorizer = CountVectorizer(vocabulary=WORDS, analyzer=str.split)
    fitted = pipeline(vectorizer).fit(TEXTS)
    with pytest.raises(ValueError, match="analyzer of 'words' is a function, which cannot be saved without pickle"):
        release(fitted)
    model = release(fitted, raw_text=False)
    np.testing.assert_array_equal(model.transform(fitted[0].transform(NEW)), fitted.transform(NEW))


def letters(text):
    return text.split()


@pytest.mark.parametrize("kind", [CountVectorizer, DPCountVectorizer])
def test_a_tokenizer_is_given_again_to_load(kind, tmp_path):
    own = {"vocabulary": WORDS, "token_pattern": None} if kind is CountVectorizer else {"public_vocabulary": WORDS}
    fitted = pipeline(kind(tokenizer=letters, **own)).fit(TEXTS)
    released, path = release(fitted), tmp_path / "model.zip"
    np.testing.assert_array_equal(released.transform(NEW), fitted.transform(NEW))
    released.save(path)
    assert "load_released(path, tokenizer=...)" in released.card() and b"letters" not in path.read_bytes()
    np.testing.assert_array_equal(load_released(path, tokenizer=letters).transform(NEW), fitted.transform(NEW))
    assert len(load_released(path, tokenizer=letters).merge_topics([[0, 1]]).transform(NEW)) == len(NEW)
    alone = load_released(path)
    np.testing.assert_array_equal(alone.top_words(), released.top_words())
    np.testing.assert_array_equal(alone.transform(fitted[0].transform(NEW)), fitted.transform(NEW))
    with pytest.raises(ValueError, match=r"give load_released\(path, tokenizer=...\)"):
        alone.transform(NEW)
    for other, said in ((list, "makes a released word of none"), ("split", "must be a function")):
        with pytest.raises(ValueError, match=said):
            load_released(path, tokenizer=other)


def test_a_tokenizer_is_refused_where_none_is_wanted(released, tmp_path):
    released.save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match="of a model that was released with one"):
        load_released(tmp_path / "model.zip", tokenizer=letters)


def test_other_steps_cannot_be_saved():
    fitted = make_pipeline(CountVectorizer(vocabulary=WORDS), Binarizer(), PrivateCGSLDA(2, max_iter=5)).fit(TEXTS)
    with pytest.raises(ValueError, match="'binarizer' cannot be saved for raw texts"):
        release(fitted)
    assert release(fitted, raw_text=False).text_ is None


def test_what_is_no_fitted_topic_model_is_refused(fitted):
    with pytest.raises(NotFittedError):
        release(pipeline())
    for thing in (fitted[:1], LogisticRegression(), Pipeline([("nothing", "passthrough")])):
        with pytest.raises(ValueError, match="the last step must be a private topic model"):
            release(thing)
    broken = pipeline(CountVectorizer(vocabulary=WORDS[:5]).fit(TEXTS))
    broken.steps[-1] = fitted.steps[-1]
    with pytest.raises(ValueError, match="must have 6 names; got 5"):
        release(broken)


# --- a new process ------------------------------------------------------------------------------------

LABEL = """
import json, sys
from skdplda import load_released
model = load_released(sys.argv[1])
print(json.dumps({"doc_topic": model.transform(sys.argv[2:]).tolist(), "top": model.top_words(3).to_numpy().tolist()}))
assert "sklearn.externals.joblib" not in sys.modules
"""


def in_a_new_process(path, texts):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LABEL, str(path), *texts], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_new_process_labels_new_documents(released, tmp_path):
    released.save(tmp_path / "model.zip")
    found = in_a_new_process(tmp_path / "model.zip", NEW)
    assert found["doc_topic"] == released.transform(NEW).tolist()
    fruit, metal, empty = found["doc_topic"]
    assert set(found["top"][int(np.argmax(fruit))]) == {"apple", "pear", "plum"}
    assert np.argmax(metal) != np.argmax(fruit)
    assert empty == [0.5, 0.5]
