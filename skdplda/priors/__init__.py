"""Public knowledge that a private topic model may start from and be shrunk towards. It costs no privacy.

`__all__` is for users; `seeded_names` for pipelines.
"""

# ruff: noqa: F401

from skdplda.priors._public import PublicPrior, WordPrior, seeded_names

__all__ = ["PublicPrior", "WordPrior"]
