"""Attacks on what was released: who was in the training data, and what it said. Arrays and traces are all they know.

`__all__` is for users. The other names are for the other packages of skdplda only.
"""

# ruff: noqa: F401

from skdplda.attacks._classifier import ClassifierAttack, shadow_classifier_attack
from skdplda.attacks._experiment import ExperimentResults, membership_experiment
from skdplda.attacks._few_models import bayesian_ratio_attack, quantile_attack, relative_attack
from skdplda.attacks._lira import likelihood_ratio_attack
from skdplda.attacks._poisoning import PoisoningResult, poisoning_attack, threshold_keywords
from skdplda.attacks._result import AttackResult, RateAt, binomial_interval, check_confidence
from skdplda.attacks._shadow import ShadowModels, released_topics, train_shadow_models
from skdplda.attacks._simple import ReconstructedCounts, reconstruct_counts, threshold_attack, vocabulary_attack
from skdplda.attacks._statistics import check_documents, document_statistics, max_log_likelihood
from skdplda.attacks._trace import TopicTraceAttack

__all__ = [
    "AttackResult",
    "ClassifierAttack",
    "ExperimentResults",
    "PoisoningResult",
    "RateAt",
    "ReconstructedCounts",
    "ShadowModels",
    "TopicTraceAttack",
    "bayesian_ratio_attack",
    "document_statistics",
    "likelihood_ratio_attack",
    "max_log_likelihood",
    "membership_experiment",
    "poisoning_attack",
    "quantile_attack",
    "reconstruct_counts",
    "relative_attack",
    "shadow_classifier_attack",
    "threshold_attack",
    "train_shadow_models",
    "vocabulary_attack",
]
