"""What single draws of collapsed Gibbs sampling lose: the monitor's number, and the truth, as formulas."""

import numpy as np


def monitor_draw(word_counts, topic_totals, doc_counts, n_removed, alpha, beta, n_words):
    """Return the epsilon, in nats, that the monitor gives to one draw.

    With r_k the weight of topic k and q_k the same with `n_removed` tokens taken from the total of the topic, it is 2
    max(xi_1, ..., xi_K, xi): Zhao et al. (2019), equation (7) and Algorithm 1. Counts are of the drawn token's word, of
    all tokens and of its document, by topic, without the drawn token. A topic loses at most the tokens it has: the
    paper's denominator would be zero or negative where `n_removed` passes the topic's total.
    """
    mass = np.asarray(topic_totals) + n_words * beta
    r = (np.asarray(word_counts) + beta) / mass * (np.asarray(doc_counts) + alpha)
    q = r * mass / (mass - np.minimum(n_removed, topic_totals))
    growth = (r.sum() - r + q) / r.sum()
    largest = np.argmax(np.abs(r - q))
    return float(2 * max(np.abs(np.log(growth * r / q)).max(), np.log(growth[largest])))


def exact_draw_loss(word_counts, topic_totals, doc_counts, alpha, beta, n_words, *, twin_counts=0):
    """Return the worst privacy loss of one draw, max_k |ln p'_k / p_k|, over the corpora that lack one other token.

    All other assignments are equal on both corpora. Removing a token changes the total of its topic, and also the word
    count if it shares the drawn token's word (a factor of up to 1 + 1 / beta), and the document count if it shares its
    document (up to 1 + 1 / alpha). `monitor_draw` knows only the first change; the arguments are as there.
    `twin_counts` has the tokens of the same word **and** document, without the drawn token.
    """
    arrays = (word_counts, topic_totals, doc_counts, twin_counts, alpha)
    word, topic, doc, twins, alpha = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in arrays))
    word_mass, topic_mass, doc_mass = word + beta, topic + n_words * beta, doc + alpha
    r = word_mass / topic_mass * doc_mass
    p = r / r.sum()
    neighbours = (  # how many tokens of a topic may go; whether they share the type; whether the document
        (topic - word - doc + twins, 0, 0),
        (word - twins, 1, 0),
        (doc - twins, 0, 1),
        (twins, 1, 1),
    )
    loss = 0.0
    for n_tokens, same_word, same_doc in neighbours:
        for k in np.flatnonzero(n_tokens > 0):
            factor = topic_mass[k] / (topic_mass[k] - 1)
            factor *= (1 - same_word / word_mass[k]) * (1 - same_doc / doc_mass[k])
            others = -np.log1p(p[k] * (factor - 1))
            loss = max(loss, abs(others), abs(others + np.log(factor)))
    return float(loss)
