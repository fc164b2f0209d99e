"""The loop of fits without noise. They promise nothing, and no part of it is in the loop that adds noise."""

import numpy as np

from skdplda.rounds._bounds import total_of
from skdplda.rounds._loop import active_units, talk

# Parts of the units that the first round without noise has seen after each of its steps but the last, which sees the
# others: doc/kernels.rst, "How soon".
GROWTH = 1 / 256, 1 / 64, 1 / 16, 1 / 4


def answer_exactly(strategy, e_step, spending, randomness, *, grows=None, **options):
    """Run a fit without noise, which promises nothing: each answer is the sum itself.

    The parameters are those of `converse`; and `grows`, the tables that the strategy asks by, or None. In the first of
    several rounds of these, parts of the units of growing size follow one another, each unit in one of them, so that
    all but the first meet tables that hold topics. The strategy is sent the last of their sums.
    """

    def collected(*asked):
        return total_of(e_step.collect(*asked), None)

    def answer(ask, number):
        spending.take(ask.share)
        query, n_units = ask.query, e_step.n_units
        active = active_units(spending.plan, randomness, number, n_units)
        if grows is not None and number == 0 and ask.n_planned > 1:
            before = np.zeros(n_units, np.uint8)
            for rate in GROWTH:  # samples of one round at growing rates contain each other
                upto = randomness.sample(0, n_units, rate)
                grows.update(collected(query, 0, upto - before), 0)
                query, before = grows.query(), upto
            active = 1 - before
        return collected(query, number, active)

    return talk(strategy, answer, e_step, spending, randomness, **options)
