"""The most frequent words of public texts."""

from collections.abc import Iterable
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer

from skdplda._checks import is_integer
from skdplda._texts import most_frequent

__all__ = ["frequent_words"]


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
