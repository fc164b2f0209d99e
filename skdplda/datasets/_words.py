"""Public lists of words: the most frequent ones of public texts, and those that say nothing."""

import re
from collections.abc import Iterable
from typing import Any

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from skdplda._checks import is_integer
from skdplda._optional import import_optional
from skdplda._texts import LETTERS, most_frequent

# What is left of addresses, marks-up, entities and shared posts when a text is cut into words.
WEB = (
    "amp apos br com gif gt href htm html http https img jpeg jpg lt mailto mp4 nbsp net nofollow org pdf php png quot"
    " rel rt src url utm via webp www"
)


def frequent_words(texts: Iterable[str], n_words: int, **options: Any) -> list[str]:
    """Find the most frequent words of public texts, whose number breaks no tie by chance.

    `CountVectorizer(max_features=n)` takes the same words, but of words that are equally frequent at its end it takes
    those that an unstable sort puts first, which are others on another processor. Here it is those that come first in
    the alphabet.

    Parameters
    ----------
    texts : iterable of str
        Public texts: which words are frequent is not private. Affects privacy: no, if they do not depend on the private
        texts.
    n_words : int
        How many; all where there are fewer.
    **options : dict
        Of `sklearn.feature_extraction.text.CountVectorizer`, which cuts the texts into words; with `binary=True` a word
        counts once a text.

    Returns
    -------
    words : list of str
        In alphabetical order, as the vocabulary of a vectorizer with the same options.

    Raises
    ------
    ValueError
        If `n_words` is not a positive integer, or the texts have no words.

    Examples
    --------
    >>> from skdplda.datasets import frequent_words
    >>> frequent_words(["plum pear", "plum apple", "cherry"], 2)
    ['apple', 'plum']
    """
    if not is_integer(n_words) or n_words < 1:
        raise ValueError(f"n_words must be an integer from 1; got {n_words!r}.")
    vectorizer = CountVectorizer(**options)
    X = vectorizer.fit_transform(texts)
    words = vectorizer.get_feature_names_out()
    return [str(words[column]) for column in most_frequent(X, n_words)]


def stop_words(*languages: str, web: bool = True) -> list[str]:
    """Public stop words of languages, and what web pages and posts leave between words, such as "http" and "amp".

    English is the list of scikit-learn. Other languages are those of the package stopwordsiso, 57 of them, which is
    installed by ``pip install stopwordsiso``.

    Parameters
    ----------
    *languages : str
        Codes of two letters (ISO 639-1): "de", "zh", "hi". None: only the words of the web.
    web : bool, default=True
        Whether the words of the web are among them.

    Returns
    -------
    words : list of str
        In alphabetical order and lower case, with their parts, as `DPCountVectorizer` cuts them: of "c'est" also "est".
        Give it as `stop_words`. Affects privacy: no, the lists are public.

    Raises
    ------
    ValueError
        If a language has no list.
    ImportError
        If a language is not English and stopwordsiso is not installed.

    Examples
    --------
    >>> from skdplda import DPCountVectorizer
    >>> from skdplda.datasets import stop_words
    >>> DPCountVectorizer(stop_words=stop_words("en")).build_analyzer()("RT http iron &amp; zinc of it")
    ['iron', 'zinc']
    """
    found = set(WEB.split() if web else ())
    for language in languages:
        if language == "en":
            found |= ENGLISH_STOP_WORDS
            continue
        lists = import_optional(
            "stopwordsiso", purpose="stop_words of other languages than English", install="stopwordsiso"
        )
        if not isinstance(language, str) or not lists.has_lang(language):
            raise ValueError(f"languages must be among {', '.join(sorted(lists.langs()))}; got {language!r}.")
        found |= lists.stopwords(language)
    found = {word.lower() for word in found}
    return sorted(found.union(*(re.findall(LETTERS, word) for word in found)))
