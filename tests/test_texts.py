"""Texts are checked before anything is spent on them."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from skdplda import PrivacyAccountant, make_fdptm_pipeline, release
from skdplda.vocabulary import DPCountVectorizer

FRUIT = ["the apple and the pear in 2020", "plum of pear with apple 1st"] * 400
FRAME = pd.DataFrame({"text": FRUIT})


def vectorizer(**options):
    return DPCountVectorizer(5.0, delta=1e-6, **options)


def test_a_frame_of_one_column_is_that_column():
    words = vectorizer().fit(FRAME)
    assert set(words.vocabulary_) == {"apple", "pear", "plum"}
    assert words.transform(FRAME.head(5)).shape == (5, 3)
    for same in (FRUIT, FRAME["text"], FRAME.to_numpy(), np.array(FRUIT), tuple(FRUIT), lambda: FRAME):
        assert (words.transform(same) != words.transform(FRUIT)).nnz == 0


def test_a_pipeline_and_its_release_take_frames():
    pipeline = make_fdptm_pipeline(8.0, 1e-6, n_components=2).fit(FRAME)
    model, five = release(pipeline), FRAME.head(5)
    assert pipeline.transform(five).shape == model.transform(five).shape == (5, 2)
    np.testing.assert_array_equal(model.transform(five), model.transform(FRUIT[:5]))
    with pytest.raises(ValueError, match="columns 'text', 'id'"):
        model.transform(five.assign(id=1))


NO_TEXTS = [
    (FRAME.assign(id=1), "a data frame with columns 'text', 'id'"),
    (FRAME.drop(columns="text"), "a data frame with columns"),
    (FRAME.assign(id=1).to_numpy(), re.escape("an array of shape (800, 2)")),
    (sp.eye_array(3, 1).tocsr(), "a sparse matrix"),
    ("apple pear", "got one string. Put it into a list"),
    (b"apple pear", "got one string"),
    (None, "got a NoneType"),
    (3, "got an int"),
    *(([*FRUIT[:7], missing, *FRUIT], "row 7, counted from 0") for missing in (None, float("nan"), pd.NA, pd.NaT, 3)),
    (pd.Series([*FRUIT[:7], None]), "row 7, counted from 0, has none"),
    ([["apple"]], "type list. Lists of words need analyzer=list"),
]


@pytest.mark.parametrize(("documents", "message"), NO_TEXTS, ids=[message[:30] for _, message in NO_TEXTS])
def test_what_is_no_text_is_refused_before_anything_is_spent(documents, message):
    with PrivacyAccountant(10, 1e-5) as ledger:
        for spend in (vectorizer().fit, vectorizer().fit_transform):
            with pytest.raises(ValueError, match=message):
                spend(documents)
    assert not ledger.ledger
    with pytest.raises(ValueError, match=message):
        vectorizer(public_vocabulary=["apple"]).fit(FRUIT).transform(documents)


def test_messages_do_not_show_a_text():
    with pytest.raises(ValueError, match="row 1") as caught:
        vectorizer().fit(["secret words", ["secret", "words"]])
    assert "secret" not in str(caught.value)


def test_a_users_own_function_takes_documents_of_any_kind_but_not_missing_ones():
    documents = [text.split() for text in FRUIT]
    assert set(vectorizer(analyzer=list).fit(documents).vocabulary_) > {"2020", "apple"}
    with pytest.raises(ValueError, match="row 800"):
        vectorizer(analyzer=list).fit([*documents, None])


def test_files_and_their_names(tmp_path):
    path = tmp_path / "text"
    path.write_text("apple")
    words = vectorizer().fit(FRUIT).set_params(input="filename")
    assert words.transform([path, str(path)]).sum() == 2
    with path.open() as file:
        assert words.set_params(input="file").transform([file]).sum() == 1
    with pytest.raises(ValueError, match="the name of a file in each row; row 1"):
        vectorizer(input="filename").fit([path, 3])
    with pytest.raises(ValueError, match="an open file in each row; row 0, counted from 0, is of type str"):
        vectorizer(input="file").fit([str(path)])


# --- what a word is ----------------------------------------------------------------------------------------------


def test_numbers_and_stop_words_are_no_words_by_default():
    analyze = DPCountVectorizer().build_analyzer()
    assert analyze("In 2020 the covid19 ward had 12 of 3rd-floor beds, b12 and _x_.") == [
        "covid19",
        "ward",
        "floor",
        "beds",
        "b12",
    ]
    assert not analyze(" ".join(ENGLISH_STOP_WORDS))


def test_none_turns_it_off():
    text = "In 2020 the covid19 ward had 12 beds, b12 and _x_."
    words = DPCountVectorizer(stop_words=None, token_pattern=None).build_analyzer()(text)
    assert words == CountVectorizer().build_analyzer()(text)
    assert DPCountVectorizer(token_pattern=None).build_analyzer()("the 12 beds") == ["12", "beds"]
    assert DPCountVectorizer(stop_words=None).build_analyzer()("the 12 beds") == ["the", "beds"]


def test_stop_words_of_other_languages_are_a_list():
    words = vectorizer(stop_words=["der", "und"]).fit(["der Apfel und die Birne"] * 400)
    assert set(words.vocabulary_) == {"apfel", "die", "birne"}
    with pytest.raises(ValueError, match="stop_words must be 'english', a list of words or None; got 'german'"):
        vectorizer(stop_words="german").fit(FRUIT)


@pytest.mark.parametrize("options", [{"analyzer": "char"}, {"analyzer": str.split}, {"tokenizer": str.split}])
def test_defaults_without_use_do_not_warn(options):  # warnings are errors
    assert DPCountVectorizer(**options).build_analyzer()("pear 12")
    released = DPCountVectorizer(5.0, stop_words=None, token_pattern=None, analyzer="char").fit(FRUIT)
    assert (
        released.get_feature_names_out().tolist()
        == CountVectorizer(analyzer="char").fit(FRUIT).get_feature_names_out().tolist()
    )


def test_a_release_cuts_texts_as_the_pipeline_did():
    for options in ({}, {"token_pattern": None, "stop_words": None}):
        words = vectorizer(**options)
        pipeline = make_fdptm_pipeline(9.0, 1e-6, n_components=2, vectorizer=words).fit(FRUIT)
        model = release(pipeline)
        assert (model.text_["token_pattern"] == CountVectorizer().token_pattern) == bool(options)
        np.testing.assert_array_equal(model.transform(FRUIT[:2]), pipeline.transform(FRUIT[:2]))
