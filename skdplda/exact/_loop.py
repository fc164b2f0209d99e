"""The loop of fits without noise. They promise nothing, and no part of it is in the loop that adds noise."""

import numpy as np

from skdplda.exact._seeds import drawn_seeds
from skdplda.rounds._bounds import total_of
from skdplda.rounds._loop import active_units, talk

# The first round without noise sees parts of the units that grow by a factor. With so many topics, units a topic, and
# tokens a document, the first part is GROWTH units a topic, given topics that are documents, and else a share:
# doc/kernels.rst, "How soon".
GROWTH, SEEDED_TOPICS, SEEDED_UNITS, SEEDED_TOKENS, FIRST_SHARE = 4, 32, 3, 25, 1 / 256


def answer_exactly(strategy, e_step, spending, randomness, *, tables=None, mean_length=0.0, **options):
    """Run a fit without noise, which promises nothing: each answer is the sum itself.

    The parameters are those of `converse`; `tables`, which the strategy asks by, or None; and the `mean_length` of
    documents in tokens. The first of several rounds of tables meets documents as topics, if both are many. If
    the tables grow, parts of the units of growing size follow one another there, each unit in one of them, so that all
    but the first meet tables that hold topics. The strategy is sent the last of their sums.
    """

    def collected(*asked):
        return total_of(e_step.collect(*asked), None)

    def answer(ask, number):
        spending.take(ask.share)
        query, n_units = ask.query, e_step.n_units
        active = active_units(spending.plan, randomness, number, n_units)
        if tables is not None and number == 0 and ask.n_planned > 1:
            seeds, share, before = None, FIRST_SHARE, np.zeros(n_units, np.uint8)
            n_topics = query.table.shape[1]
            if n_topics >= SEEDED_TOPICS and n_units >= SEEDED_UNITS * n_topics and mean_length >= SEEDED_TOKENS:
                seeds = collected(drawn_seeds(query.table.shape, n_units, randomness.key), 0, None)
                query, share = tables.begin(seeds), GROWTH * n_topics / n_units
            while tables.grow and share < 0.5:  # samples of one round at growing rates contain each other
                upto = randomness.sample(0, n_units, share)
                found, before = collected(query, 0, upto - before), upto
                query, share = tables.begin(found if seeds is None else found + seeds), share * GROWTH
            active = 1 - before if tables.grow else active
        return collected(query, number, active)

    return talk(strategy, answer, e_step, spending, randomness, **options)
