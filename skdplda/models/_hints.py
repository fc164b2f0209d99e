"""What people look for who know scikit-learn's or gensim's LDA or BERTopic, and what to write here."""

import re
from functools import wraps

__all__ = ["HintsMixin"]

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
ATTRIBUTES = {
    "partial_fit": "partial_fit is for streams: VIPSLDA(learning_method='online') has it",
    "bound_": "a bound on training documents would be a release without noise; score(X) judges other documents",
    "exp_dirichlet_component_": "topic_word_ has the distributions, components_ the pseudo-counts",
    "n_batch_iter_": "n_iter_ counts the releases of a fit",
    "update": "partial_fit of VIPSLDA(learning_method='online') takes the next batch",
    "show_topics": "top_words(10, words) is a data frame; to_gensim(words).show_topics() is gensim's",
    "print_topics": "top_words(10, words) is a data frame; to_gensim(words).print_topics() is gensim's",
    "get_document_topics": "transform(X) has all topics of each document",
    "log_perplexity": "score(X) is the mean log-likelihood of a held-out token",
    "num_topics": "n_components is the number of topics",
    "get_topic_info": "topic_info() has names, sizes, words and signal",
    "get_topic": "top_words(10).loc['topic_3'] has the words of a topic",
    "get_representative_docs": "a document is what is protected; transform tells which public texts belong to a topic",
    "set_topic_labels": "rename_topics gives topics names",
    "generate_topic_labels": "name_topics() names topics by their top words, or by a function of these",
    "reduce_topics": "topic_hierarchy() tells which topics are near, merge_topics([[1, 2]]) makes them one",
    "hierarchical_topics": "topic_hierarchy() is a tree for scipy's dendrogram",
    "visualize_barchart": "skdplda.plots.TopWordsDisplay.from_estimator(model) draws it",
    "visualize_topics": "skdplda.reports.report(model, 'topics.html') has a map of topics, and all else",
    "visualize_hierarchy": "skdplda.reports.report(model, 'topics.html') has it; topic_hierarchy() is the tree",
    "visualize_topics_over_time": "topics_over_time(...).shares is a data frame, and its plot() draws it",
}


class HintsMixin:
    """Errors for names of other packages say what to write instead."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _hinting(cls.__init__)

    def __getattr__(self, name):
        hint = ATTRIBUTES.get(name)
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}{f': {hint}.' if hint else ''}",
            name=name,
            obj=self,
        )


def _hinting(init):
    """Return the constructor, whose error for a parameter of another package says what to write here."""

    @wraps(init)
    def __init__(self, *values, **parameters):
        try:
            init(self, *values, **parameters)
        except TypeError as error:
            found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
            if found is None or found[1] not in PARAMETERS:
                raise
            raise TypeError(f"{type(self).__name__} has no parameter {found[1]!r}: {PARAMETERS[found[1]]}.") from None

    return __init__
