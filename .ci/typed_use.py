"""What a type checker says of code that uses the package; see `.ci/run`. It is never run.

The lines with an ignored error are mistakes: under `mypy --strict` one that goes unnoticed is an error.
"""

from typing import assert_type

import numpy as np

from skdplda import (
    VIPSLDA,
    DPCountVectorizer,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateCGSLDA,
    ReleasedTopicModel,
    load_released,
    make_fdptm_pipeline,
    privacy_guarantee,
    release,
)
from skdplda.metrics import make_coherence_scorer, topic_diversity
from skdplda.model_selection import PrivateSearchCV, search_cost

X = np.ones((10, 5), dtype=int)
model = assert_type(
    PrivateCGSLDA(5, epsilon=1.0, delta=1e-6, mechanism="laplace").fit(X, groups=[1] * 10), PrivateCGSLDA
)
assert_type(model.privacy_cost(), PrivacyGuarantee)
assert_type(model.transform(X), np.ndarray)
assert_type(model.perplexity(X, method="fold-in"), float)
assert_type(topic_diversity(X), float)
assert_type(VIPSLDA(learning_method="online", max_visits=1).fit(X), VIPSLDA)
assert_type(DPCountVectorizer(epsilon=2).fit(["a text"]).get_feature_names_out(), np.ndarray)
assert_type(privacy_guarantee(make_fdptm_pipeline(1.0)), PrivacyGuarantee)
assert_type(make_fdptm_pipeline(1.0).privacy_guarantee_, PrivacyGuarantee)
assert_type(release(model), ReleasedTopicModel)
assert_type(load_released("topics.zip"), ReleasedTopicModel)
assert_type(PrivateSearchCV(model, {"n_components": [5]}).fit(X), PrivateSearchCV)
assert_type(search_cost(model), PrivacyGuarantee)
with PrivacyAccountant(epsilon=3.0) as accountant:
    assert_type(accountant.total, PrivacyGuarantee | None)

PrivateCGSLDA("five")  # type: ignore[arg-type]
PrivateCGSLDA(5, epsilon="1")  # type: ignore[arg-type]

PrivateCGSLDA(5, 1.0)  # type: ignore[call-arg]
VIPSLDA(learning_method="offline")  # type: ignore[arg-type]
model.score(X, method="bound")  # type: ignore[arg-type]
make_coherence_scorer("npmi")  # type: ignore[arg-type]
