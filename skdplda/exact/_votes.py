"""Without noise: the prior of topic proportions with which documents are read best, by words that they hold out."""

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import total
from skdplda._rows import rows_of
from skdplda.rounds._adaptive import PRIORS
from skdplda.rounds._bounds import shortened
from skdplda.rounds._held_out import own_parts
from skdplda.rounds._queries import LARGEST_GAIN, nats_of_unseen

# What a document added to topics is taken out of them so many times: with it, others have moved. Chosen on 20
# Newsgroups, KOS, NIPS and Enron's mails, cut to 7 and 12 words and whole; judged on package titles and docstrings.
MOVED = 2.0
# Of the documents that have words one in n is asked, the largest n that leaves so many of them, or of their words, if
# that is fewer: more cost as much as a fit. And different words of a document, on average, above which none is asked:
# they say of themselves which topics they have.
DOCUMENTS_ASKED, WORDS_ASKED, MOST_WORDS = 2000, 50_000, 200


def voted_factor(X, components, beta, prior, n_threads):
    """Return the factor of the prior, (n_topics,), of topics whose counts are `components`, (n_topics, n_words).

    These have `beta` too many. X is in memory, or what is read by its method `blocks`.
    """
    if X.nnz > MOST_WORDS * X.shape[0] or not X.nnz:
        return 1.0
    have_words = np.flatnonzero(np.diff(X.indptr) if sp.issparse(X) else X.lengths())
    asked = np.zeros(X.shape[0], bool)
    asked[have_words[:: max(1, len(have_words) // DOCUMENTS_ASKED, X.nnz // WORDS_ASKED)]] = True
    if sp.issparse(X):
        some = rows_of(X, np.flatnonzero(asked))
    else:
        some = sp.csr_array(sp.vstack([shortened(block) for _, block in X.blocks(asked)]))
    table = np.empty(components.shape[::-1])
    np.subtract(components.T, beta, out=table)
    table += np.finfo(np.float32).tiny
    own = own_parts(some, table, np.full((1, len(prior)), MOVED), None, np.ones(some.shape[0]), prior, n_threads)
    nats = nats_of_unseen(some, table, own, 1.0, np.outer(PRIORS, prior), n_threads)
    gains = np.clip(nats - nats[:, :1], -LARGEST_GAIN, LARGEST_GAIN)
    return PRIORS[int(np.argmax(total(gains, axis=0)))]
