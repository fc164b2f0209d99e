"""Strategies driven by hand: what they ask, and what they make of answers that no documents gave."""

from skdplda.rounds import Spending, TopicWordCounts

__all__ = ["Conversation", "kind_of"]


def kind_of(query):
    """Return what a query asks for: topics of some words only, "frequent", where its table has rows of zeros."""
    return "frequent" if isinstance(query, TopicWordCounts) and not query.words.all() else query.kind


class Conversation:
    """A strategy and the budget of a plan, which each of its asks takes its share of: `Spending` refuses too much.

    Attributes
    ----------
    ask : Ask or None
        What the strategy asks now; None after its end.
    multiplier : float
        Scale of the noise that the answer would have.
    kinds, shares, answers : list
        Of all asks so far, this one included, and of the answers given.
    known : object
        What the strategy knows so far.
    """

    def __init__(self, known, plan):
        self.known, self._strategy, self._spending = known, known.strategy(), Spending(plan)
        self.kinds, self.shares, self.answers = [], [], []
        self._go_on(None)

    def answer(self, noisy):
        """Send an answer, and let the strategy ask again."""
        assert noisy.shape == self.ask.query.shape and noisy.dtype == "int64"
        self.answers.append(noisy)
        self._go_on(noisy)

    def _go_on(self, noisy):
        try:
            self.ask = self._strategy.send(noisy)
        except StopIteration as end:
            self.ask = None
            assert end.value is self.known
            return
        self.kinds.append(kind_of(self.ask.query))
        self.shares.append(self.ask.share)
        self.multiplier = self._spending.take(self.ask.share)
        assert self.ask.n_planned >= len(self.kinds)
