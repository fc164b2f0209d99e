"""What tests may import of modules with an underscore: here and nowhere else, and why.

Other tests know what users know, and the names by which packages know each other: `tests/test_layers.py` keeps it so. A
row has a module and its names; "* as name" is the module itself. Names are imported when they are asked for.
"""

from importlib import import_module

INTERNALS = {
    # Kernels, against references in plain numpy: bits, threads, sizes at which single precision would fail.
    "_kernels._foldin": "fold_in",
    "_kernels._foldin_rows": "LEAST_TOLERANCE, fold_in_rows, probabilities, word_rows",
    "_kernels._gibbs": "TokenBlocks",
    "_kernels._held_out": "* as held_out_kernel",
    "_kernels._listed": "ListedTokens",
    "_kernels._mixture": "responsibilities, scaled_sums",
    "_kernels._noise": "* as noise_kernel, keystream",
    "_kernels._partition": "* as partition_kernel",
    "_kernels._released": "count_topics, order_tokens, released_sweep",
    "_kernels._reports": "* as reports_kernel, positions",
    "_kernels._sequential": "* as sequential_kernel",
    "_kernels._variational": "MIN_EXP_DIGAMMA, e_step, exp_digamma, expected_topics",
    "_kernels._words": "TextReader, Words, tally",
    "_kernels._zeta": "zeta",
    # Arithmetic of the same bits everywhere, against mpmath; checks that all estimators share.
    "_arithmetic": "* as arithmetic, eigen, log, mixture_weights",
    "_files": "fingerprint, whole_file",
    "_reading": "* as reading, PATTERNS, count_words, read_texts",
    "_rows": "* as rows, rows_of",
    "_texts": "LETTERS",
    "_validation": "* as validation, check_counts, check_groups, tokens_of",
    # Inner bounds: what a unit contributes, in integers, with and without it, for every query and hostile values.
    "esteps._adaptive": "AdaptiveEStep",
    "esteps._clusters": (
        "* as clusters, APART, ClusterEStep, ClusterVotes, ClusterWords, DirectionSums, EmbeddedWords, Embeddings, "
        "FINE, FINEST, LENGTH, SIZE, SOFT_LENGTH, SOFT_STEP, STEP, WEIGHTS, grid_directions, soft_weights, weight_table"
    ),
    "esteps._documents": "* as documents, cut_documents",
    "esteps._gibbs": "GibbsEStep",
    "esteps._listed": "ListedEStep",
    "esteps._methods": "UnitEStep",
    "esteps._segments": "SegmentEStep",
    "esteps._sharded": "PartialEStep",
    "esteps._variational": "FEW_TOPICS, TOKEN_WEIGHT, VariationalEStep",
    "rounds._bounds": (
        "* as bounds, MOST_TOKENS, bounded_by_kernel, shortened, some_tokens, total_of, unit_weights, word_weights"
    ),
    "rounds._queries": (
        "ClusterCounts, PriorVotes, TopicVotes, VectorSums, VectorVotes, WordTotals, divided, normalized_rows"
    ),
    # The conversation: what strategies make of answers that no documents give, and how a budget is divided.
    "models._base": "settings_of",
    "models._cluster_rounds": "* as cluster_rounds, ClusterKnowledge, ClusterPlan, PublicStart, cluster_shares",
    "models._hdp_accounting": "HybridPlan, RESERVE",
    "models._labels": "LabelEStep",
    "rounds._adaptive": "* as adaptive, FIRST_SMOOTHING, Knowledge",
    "rounds._checkpoint": "* as checkpoint",
    "rounds._held_out": "gains_of_unseen, own_parts, scaled_to_frequencies, unseen",
    "rounds._loop": "converse, rounds_of",
    "rounds._plans": "* as plans",
    "rounds._prices": "* as prices, LATE_SHARE, least_share, model_noise, planned_noise",
    "rounds._tables": "SmoothedTables, initial_table",
    "rounds._transcript": "Transcript",
    # Proofs of the ledger, of accounting, of selections and of noise: formulas against exact ones.
    "privacy._accounting": (
        "* as accounting, _loss_distribution as loss_distribution, parts_of, renyi_accountant, rounded_up"
    ),
    "privacy._budget_charge": "* as budget_charge",
    "privacy._filter": "Rule, _equal_precision as equal_precision, choose_filter",
    "privacy._guarantee": "joint_epsilon",
    "privacy._ledger_file": "LedgerFile, MARK, pack",
    "privacy._noise": "* as noise, _is_below as is_below",
    "privacy._open_ledgers": "* as open_ledgers",
    "privacy._partition": "FILLS, MOST_ADAPTIVE, MOST_UNITS_REROUTED, REROUTED, ROUNDS, discount, equal_share, reroute",
    "privacy._spending": "divided as divided_budget",
    "privacy._survivors": "* as survivors, MeanOfRounds, _binomial as binomial, _mean_weights as mean_weights, passing",
    # Steps of estimators against their equations: a whole fit would show a mistake in its last digits only.
    "exact._expected": "* as expected, ExpectedTopics, LEAST_ALPHA, expected_table, first_expected",
    "exact._inferred": "fixed_point",
    "exact._loop": "answer_exactly",
    "exact._seeds": "drawn_seeds",
    "exact._tables": "ExactTables, annealed, constant",
    "exact._votes": "* as exact_votes",
    "local._channel": "* as local_channel, _gap_tables as gap_tables",
    "models._cgs": "* as cgs, GAMMA_SHAPE, inference",
    "models._cluster_names": (
        "NEAR, N_CANDIDATES, candidates_of, closeness, expected_counts, proven_counts, keyword_scores, rms_of"
    ),
    "models._embedding": "* as embedding",
    "models._hdp_sampler": "DelayedCountSweeps, PartOfTokens",
    "models._local": "* as local_model",
    "models._local_estimators": (
        "bayes_estimate, document_lengths, moment_estimate, moment_variance, reconstruct, split_variance"
    ),
    "models._local_sampler": "like_length, refuse_raw",
    "models._pctd": "* as pctd",
    "models._pctd_noise": "* as pctd_noise, noisy_segments",
    "models._pctd_tables": "ConsistentTables, LastTable, consistent",
    "models._periods": "* as periods",
    "models._topics": "distinct_triples",
    "models._transcripts": "* as transcripts",
    "models._vips_tables": "OnlineTables",
    "priors._seeding": "order_of_topics, starting_topics",
    "priors._shrinkage": (
        "ABOVE, AT_MEAN, BELOW, DIMENSIONS, FREQUENCY_STEPS, GRID_WIDTH, LEAST_FREQUENCY, MISFIT, MOST_FACTOR, "
        "MOST_LOG, ONE, PENALTY, PSEUDO_RATIOS, PSEUDO_WORDS, RATIOS, RATIO_STEPS, WIDTH, loglinear, principal, "
        "shrink_frequencies, shrink_ratios, unit_columns"
    ),
    "published._gibbs_sampler": "PUBLISHED, fit_published, laplace",
    "published._pctd_noise": "NoisySegmentEStep, likelihood_noise, sum_noise",
    # Bounds of audits and searches, whose error rates are counted over more draws than there can be fits.
    "audit._audit": "best_threshold",
    "audit._bounds": "mu_lower_bound, one_run_p_value",
    "audit._checks": "accounted, contribution",
    "audit._designs": "design_of",
    "audit._mechanisms": "MECHANISMS as MECHANISM_AUDITS, audited_estimators, is_of_package",
    "audit._one_fit_bounds": "DEPENDENT, INDEPENDENT, largest_refuted, refutes, right_guesses",
    "audit._pairs": "Composition",
    "audit._released_checks": "drawn_reports, drawn_topics, replaced_token, report_law",
    "model_selection._search": "* as search",
    "model_selection._trials": "* as trials, draw_trials, private_score",
    # Parts whose whole is slow, random or another process: the command line, files, pages, words, sizes of blocks.
    "cli._corpus": "Texts, read_corpus",
    "cli._demo": "* as demo, run_demo",
    "cli._insights": "refuse_foreign",
    "cli._main": "_parser as parser",
    "cli._models": "* as cli_models",
    "cli._paths": "OUTPUT, OUTPUTS, READ, WRITTEN",
    "datasets._disk": "* as disk",
    "datasets._synthetic": "* as synthetic, _alias_table as alias_table",
    "distributed._actor": "added",
    "distributed._pool": "* as pool",
    "distributed._spark": "* as spark",
    "metrics._likelihood": "* as likelihood",
    "releases._guarantee": "* as release_guarantee",
    "releases._model": "QUICK_PATTERN",
    "reports._pictures": "layout",
    "reports._report": "neighbours",
    "semantics._similarity": "* as similarity, _points as points",
    "vocabulary._levels": "Tokens",
}

PLACES = {}  # of each name: its module, and what it is called there
for module, names in INTERNALS.items():
    for name, _, alias in (name.partition(" as ") for name in names.split(", ")):
        PLACES[alias or name] = f"skdplda.{module}", name


def __getattr__(name):
    if name not in PLACES:
        raise AttributeError(f"tests/internals.py has no {name!r}")
    module, there = PLACES[name]
    found = import_module(module)
    return found if there == "*" else getattr(found, there)
