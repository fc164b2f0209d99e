"""The E-step of the adaptive loop: documents that answer every query."""

from functools import partial

import numpy as np

from skdplda.esteps._documents import CutDocuments
from skdplda.rounds._checkpoint import checked_array
from skdplda.rounds._queries import TopicWordCounts


def first_priors(priors, n_topics, round_):
    """Return the priors of a round, of the first topics alone."""
    alpha, beta = priors(round_)
    return alpha[:n_topics], beta


class AdaptiveEStep:
    """E-step of the private loop that answers every `Query`; topics are summed by the E-step of the model.

    `make` returns that E-step; it takes what this one does, of which X is as in `CutDocuments`. It cuts documents to
    `max_length` as is done here for the other queries. Some words alone are summed over documents from which the others
    are taken out, before anything else is done.

    Queries read `documents`, cut and with the weights of their units, and `n_threads`.
    """

    def __init__(self, X, units=None, *, make, randomness, n_threads, first_document=0, max_length=None):
        self._make = partial(make, randomness=randomness, n_threads=n_threads)
        self._topics = self._make(X, units, first_document=first_document)
        self.n_units, self.n_threads = self._topics.n_units, n_threads
        # Some words, or fewer topics, and the E-step of these.
        self._words, self._n_topics, self._of_words = None, None, None
        self._units, self._first = units, first_document
        self.documents = CutDocuments(
            X, units, max_length=max_length, key=randomness.key, first_document=first_document
        )

    def collect(self, query, round_, active):
        """Return the sum of the units' contributions."""
        if not isinstance(query, TopicWordCounts):
            return query.collect(self)
        words, n_topics = query.words, query.table.shape[1]
        if words.all() and n_topics == self._make.keywords["n_topics"]:
            self._words, self._of_words, e_step = None, None, self._topics
        else:
            e_step, query = self._some_topics(words, n_topics), TopicWordCounts(query.table[words])
        return e_step.collect(query, round_, active)

    def _some_topics(self, words, n_topics):
        """Return the E-step of documents of these words alone, for so many topics."""
        if self._words is None or self._n_topics != n_topics or not np.array_equal(words, self._words):
            some, priors = self.documents.only(words), partial(first_priors, self._make.keywords["priors"], n_topics)
            make = partial(self._make, n_topics=n_topics, priors=priors)
            self._words, self._n_topics = words, n_topics
            self._of_words = make(some, self._units, first_document=self._first)
        return self._of_words

    def arrays(self):
        """Return the hidden state."""
        if self._words is None:
            return self._topics.arrays()
        return {"words": self._words, "n_topics": np.array(self._n_topics)} | self._of_words.arrays()

    def restore(self, arrays):
        """Restore the hidden state."""
        arrays = dict(arrays)
        if "words" not in arrays:
            self._topics.restore(arrays)
            return
        words = checked_array(arrays, "words", self.documents.shape[1:], bool)
        n_topics = int(checked_array(arrays, "n_topics", (), int, least=1, most=self._make.keywords["n_topics"]))
        if not words.any():
            raise ValueError("its array 'words' asks for no words")
        e_step = self._some_topics(words, n_topics)
        e_step.restore({name: a for name, a in arrays.items() if name not in ("words", "n_topics")})
