"""Texts of other languages than English: public stop words, scripts without spaces, signs of vowels, emoji."""

import re
import warnings

import numpy as np
import pytest
from internals import LETTERS, QUICK_PATTERN
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from skdplda import DPCountVectorizer, load_released, make_fdptm_pipeline, release
from skdplda.datasets import stop_words
from skdplda.semantics import WordVectorEmbedder

LARGEST = ("en", "zh", "hi", "es", "fr", "ar", "bn", "pt", "ru", "ur")
CHINESE = ["我们喜欢喝茶，也喜欢喝牛奶和咖啡。", "这座工厂生产钢铁和铜。"]
JAPANESE = ["私はお茶と牛乳とコーヒーを飲むのが好きです。", "この工場は鉄と銅を生産しています。"]
THAI = ["ฉันชอบดื่มชาและนมกับกาแฟทุกวันตอนเช้า", "โรงงานแห่งนี้ผลิตเหล็กและทองแดงเป็นจำนวนมาก"]


def optional(name):
    """Return an optional package, whose import may warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


@pytest.mark.parametrize("language", LARGEST)
def test_the_largest_languages_have_stop_words_that_fit_the_vectorizer(language):
    if language != "en":
        optional("stopwordsiso")
    words = stop_words(language)
    assert words == sorted(set(words)) and {"http", "amp", "rt"} <= set(words) and len(words) > 150
    assert set(stop_words(language, web=False)) < set(words)
    DPCountVectorizer(9.0, stop_words=words).fit(["iron zinc"] * 500)  # scikit-learn warns of lists that do not fit


def test_stop_words_of_languages_add_up():
    optional("stopwordsiso")
    assert set(stop_words()) < set(stop_words("en")) and set(stop_words("en")) > ENGLISH_STOP_WORDS
    assert set(stop_words("en", "de")) == set(stop_words("en")) | set(stop_words("de"))
    assert {"qu", "est"} <= set(stop_words("fr"))
    for wrong in ("xx", "english", 3):
        with pytest.raises(ValueError, match="languages must be among"):
            stop_words(wrong)


def test_words_of_indic_scripts_and_accents_of_their_own_are_whole():
    texts = "हिन्दी में लिखा है। বাংলা ভাষা cafe\u0301 2nd a1 don't"
    assert re.findall(LETTERS, texts) == ["हिन्दी", "में", "लिखा", "है", "বাংলা", "ভাষা", "cafe\u0301", "a1", "don"]
    assert DPCountVectorizer(9.0).fit([texts] * 500).get_feature_names_out().tolist() == sorted(
        ["हिन्दी", "में", "लिखा", "है", "বাংলা", "ভাষা", "cafe\u0301", "a1", "don"]
    )
    before = re.compile(r"(?u)\b[^\W\d_]\w+\b")
    assert all(re.findall(LETTERS, text) == before.findall(text) for text in ("naïve façade_2 _x 3d x-ray", "слово äß"))


def test_vectors_of_words_with_vowel_signs_and_accents_are_found_whole():
    words = {"हिन्दी": [0.0, 1.0], "cafe\u0301": [1.0, 0.0], "iron": [1.0, 1.0]}
    rows = WordVectorEmbedder(words).transform(["हिन्दी में लिखा", "a cafe\u0301!", "हिन् cafe"])
    assert (rows[0] / rows[0].max()).tolist() == [0, 1] and (rows[1] / rows[1].max()).tolist() == [1, 0]
    assert not rows[2].any()  # parts are no words


@pytest.mark.parametrize("texts", [CHINESE, JAPANESE, THAI], ids=["Chinese", "Japanese", "Thai"])
@pytest.mark.parametrize("options", [{}, {"ngram_range": (1, 2)}], ids=["words", "levels"])
def test_texts_without_spaces_are_warned_of(texts, options):
    with pytest.warns(UserWarning, match="the texts have no spaces between words.*Give tokenizer"):
        DPCountVectorizer(9.0, **options).fit(texts * 500)


@pytest.mark.parametrize("options", [{"tokenizer": list}, {"analyzer": "char"}])
def test_texts_that_are_cut_are_not_warned_of(options):  # warnings are errors
    DPCountVectorizer(9.0, **options).fit(CHINESE * 500)


def test_texts_with_spaces_are_not_warned_of():
    DPCountVectorizer(9.0).fit(["我们 喜欢 喝茶", "ฉัน ชอบ ดื่ม ชา", "iron and zinc"] * 500)


def test_tokens_that_are_no_words_are_refused_before_anything_is_spent():
    for options in ({"tokenizer": lambda text: [(text, "noun")]}, {"analyzer": lambda text: [(text,)]}):
        for more in ({}, {"ngram_range": (1, 2)} if "tokenizer" in options else {}):
            with pytest.raises(ValueError, match=r"must make str of a text; got a tuple.*Nothing was spent"):
                DPCountVectorizer(9.0, lowercase=False, **options, **more).fit(["iron"] * 500)


def chinese(text):
    return [word for word in optional("jieba").lcut(text) if word.isalnum() and len(word) > 1]


def japanese(text):
    return [word for word in CUTTERS["janome"].tokenize(text, wakati=True) if word.isalnum() and len(word) > 1]


CUTTERS = {}


@pytest.mark.parametrize(
    ("package", "cut", "texts", "word"),
    [("jieba", chinese, CHINESE, "咖啡"), ("janome", japanese, JAPANESE, "コーヒー")],
    ids=["Chinese", "Japanese"],
)
def test_a_language_without_spaces_goes_through_a_file(package, cut, texts, word, tmp_path):
    optional(package)
    if package == "janome":
        CUTTERS["janome"] = optional("janome.tokenizer").Tokenizer()
    pipeline = make_fdptm_pipeline(
        9.0, 1e-5, n_components=2, vectorizer=DPCountVectorizer(tokenizer=cut, stop_words=None)
    ).fit(texts * 500)
    release(pipeline).save(tmp_path / "topics.zip")
    model = load_released(tmp_path / "topics.zip", tokenizer=cut)
    assert word in model.vocabulary_
    np.testing.assert_array_equal(model.transform(texts), pipeline.transform(texts))


def test_emoji_are_words_where_the_pattern_says_so(tmp_path):
    pattern = LETTERS + r"|[\U0001F300-\U0001FAFF\u2600-\u27BF]"
    words = DPCountVectorizer(token_pattern=pattern)
    pipeline = make_fdptm_pipeline(9.0, 1e-5, n_components=2, vectorizer=words).fit(
        ["good tea 😀☕", "iron 🔥🔥"] * 500
    )
    release(pipeline).save(tmp_path / "topics.zip")
    model = load_released(tmp_path / "topics.zip")
    assert {"😀", "☕", "🔥"} <= set(model.vocabulary_)
    np.testing.assert_array_equal(model.transform(["🔥 iron"]), pipeline.transform(["🔥 iron"]))


def test_patterns_of_two_forms_are_quick_and_no_others():
    for pattern in (LETTERS, LETTERS + "|[ab]", r"\b\w+\b|\u2600", r"\w|\d+"):
        assert QUICK_PATTERN.fullmatch(pattern)
    for pattern in ("(a+)+b|c", "a+b|c", "c|a+b", "a|b|c", r"[\u26]+"):
        assert not QUICK_PATTERN.fullmatch(pattern)
