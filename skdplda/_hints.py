"""What people pass who know scikit-learn's or gensim's LDA, and what to write here; doc/migration.rst has the rest."""

import re
from functools import wraps
from typing import Any, Self

PARAMETERS = {
    "evaluate_every": "it has no use here: a stopping rule on training data would be a release; leave it out",
    "perp_tol": "it has no use here: a stopping rule on training data would be a release; leave it out",
    "total_samples": "VIPSLDA has nominal_size, a public estimate of the number of documents",
    "mean_change_tol": "VIPSLDA has it; other models sweep a fixed number of times",
    "max_doc_update_iter": "VIPSLDA has it",
    "learning_method": "VIPSLDA has it",
    "batch_size": "VIPSLDA has it",
    "num_topics": "write n_components",
    "alpha": "write doc_topic_prior",
    "eta": "write topic_word_prior",
    "beta": "write topic_word_prior",
    "passes": "write max_iter, or leave it out: more rounds have more noise each",
    "iterations": "write max_iter, or leave it out: more rounds have more noise each",
    "chunksize": "VIPSLDA has batch_size",
    "id2word": "give the words to top_words, to_gensim or release",
    "corpus": "give counts to fit; skdplda.datasets.load_gensim_corpus makes them",
    "workers": "write n_jobs",
}


class HintsMixin:
    """Errors for parameters of other packages say what to write instead, and scikit-learn's methods take a line each.

    What `help` shows of an estimator is then about it.
    """

    def __init_subclass__(cls, **options):
        """Give the constructor its hints."""
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = hinting(cls.__init__)
        for name, request in list(vars(cls).items()):
            if name.startswith("set_") and name.endswith("_request") and not isinstance(request, _BriefRequest):
                setattr(cls, name, _BriefRequest(request, name.removeprefix("set_").removesuffix("_request")))

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Call `fit(X, y, **fit_params)`, then `transform(X)`."""
        return super().fit_transform(X, y, **fit_params)  # type: ignore[misc]

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, those of an estimator in a parameter as `parameter__name`; returns self."""
        return super().set_params(**params)  # type: ignore[misc]

    def set_output(self, *, transform: str | None = None) -> Self:
        """Let `transform` return "pandas" or "polars" data frames, or arrays by "default"; returns self."""
        return super().set_output(transform=transform)  # type: ignore[misc]

    def get_metadata_routing(self) -> Any:
        """Return what a meta-estimator passes on, as in scikit-learn's guide."""
        return super().get_metadata_routing()  # type: ignore[misc]


class _BriefRequest:
    """A `set_..._request` method of scikit-learn, with a docstring of a line in place of thirty in `help`."""

    def __init__(self, request, method):
        self.request, self.method = request, method

    def __get__(self, instance, owner=None):
        found = self.request.__get__(instance, owner)
        found.__doc__ = f"Say which metadata a meta-estimator passes to `{self.method}`, as in scikit-learn's guide."
        return found


def hinting(init, hints=PARAMETERS):
    """Return a constructor, whose error for a parameter of another package says what to write here."""

    @wraps(init)
    def __init__(self, *values, **parameters):
        try:
            init(self, *values, **parameters)
        except TypeError as error:
            found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
            if found is None or found[1] not in hints:
                raise
            raise TypeError(f"{type(self).__name__} has no parameter {found[1]!r}: {hints[found[1]]}.") from None

    return __init__
