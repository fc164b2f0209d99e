"""What the server makes of noisy presence bits: estimates of word counts, and bits that agree with them.

All of it is post-processing of reports, free of privacy cost. Formulas and proofs are in doc/theory/local.rst.
"""

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import mean as mean_of


def moment_estimate(ones, n_reports, channel, clip=True):
    """Estimate in how many documents each word is: (n_t - q M) / (p - q), of shape (n_words,).

    `ones` has the number of reports with each word's bit, called n_t in the papers, of M = `n_reports`, whose law is
    the channel. With `clip`, estimates are moved into [0, M]; the unclipped ones are unbiased.
    """
    p, q = channel.one_if_present, channel.one_if_absent
    present = (np.asarray(ones, dtype=np.float64) - q * n_reports) / (p - q)
    return np.clip(present, 0, n_reports) if clip else present


def moment_variance(present, n_reports, channel):
    """Variance of the unclipped moment estimate, given the true counts N = `present`.

    (N p (1 - p) + (M - N) q (1 - q)) / (p - q)^2; for "symmetric" (2 - f) f M / (4 (1 - f)^2).
    """
    p, q = channel.one_if_present, channel.one_if_absent
    present = np.asarray(present, dtype=np.float64)
    return (present * p * (1 - p) + (n_reports - present) * q * (1 - q)) / ((p - q) * (p - q))


def split_variance(present, n_reports, shares, channel):
    """Variance of a topic's count of each word, if the reports were divided among topics at random.

    Of M = `n_reports` reports, M r have the word's bit, where r = q + (p - q) N / M, and N = `present` documents have
    the word. A topic with a share s of the documents, drawn without looking at the bits, has a hypergeometric number of
    them, of variance M s (1 - s) r (1 - r) nearly. A word counts p - q there, as in the likelihood. Returns an array of
    shape (n_words, n_topics).
    """
    p, q = channel.one_if_present, channel.one_if_absent
    rate = np.clip(q + (p - q) * np.asarray(present, dtype=np.float64) / max(n_reports, 1), 0, 1)
    shares = np.asarray(shares, dtype=np.float64)
    return n_reports * (rate * (1 - rate))[:, None] * (shares * (1 - shares))


def bayes_estimate(moment, n_reports, channel, mean, weight=None):
    """Shrink unclipped moment estimates towards a prior mean, called mu_t; return values in [0, M].

    `weight` is that of the prior, called omega. None: variance / (variance + s^2), with the prior's variance s^2
    estimated from how far the estimates lie from their prior means.
    """
    if weight is None:
        variance = moment_variance(np.clip(mean, 0, n_reports), n_reports, channel)
        spread = max(0.0, mean_of((moment - mean) ** 2 - variance))
        weight = variance / np.maximum(variance + spread, 1e-300)
    return np.clip(weight * mean + (1 - weight) * moment, 0, n_reports)


def document_lengths(sizes, n_words, channel):
    """Estimate how many words each document has, in [0, n_words], from the number of ones of its report (`sizes`).

    A report is to its words what a word is to its documents, so the formulas are the same: the moment estimate, shrunk
    towards the mean of all.
    """
    moment = moment_estimate(sizes, n_words, channel, clip=False)
    return bayes_estimate(moment, n_words, channel, np.full(len(sizes), mean_of(moment)))


def reconstruct(reports, present, rng):
    """Insert or delete random bits until each word is in as many documents as estimated; return an int32 csr_array.

    `present` has the estimates, in [0, n_reports]. The column sums of the result are these, rounded.
    """
    n, columns = reports.shape[0], sp.csc_array(reports)
    indices, kept = columns.indices, []
    for w in range(reports.shape[1]):
        documents = indices[columns.indptr[w] : columns.indptr[w + 1]]
        difference = round(float(present[w])) - len(documents)
        if difference < 0:
            documents = rng.choice(documents, len(documents) + difference, replace=False)
        elif difference > 0:
            absent = np.delete(np.arange(n, dtype=indices.dtype), documents)
            documents = np.concatenate([documents, rng.choice(absent, difference, replace=False)])
        kept.append(documents)
    start = np.concatenate([[0], np.cumsum([len(documents) for documents in kept])])
    rows = np.concatenate(kept)
    return sp.csr_array(sp.csc_array((np.ones(len(rows), np.int32), rows, start), shape=reports.shape))
