"""Public knowledge that a private topic model may start from and be shrunk towards. It costs no privacy.

`__all__` is for users; `nearest_words` for models, `seeded_names` for pipelines.
"""

# ruff: noqa: F401

from skdplda.priors._public import PublicPrior, WordPrior, nearest_words, seeded_names

__all__ = ["PublicPrior", "WordPrior"]
