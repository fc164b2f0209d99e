"""Mutation testing: change the package a little, in ways that break a guarantee, and see whether a test notices.

A row of the table is a piece of source text that stands once in the package, what takes its place, why the change would
matter, and the test files that ought to notice. Each change is made alone, in a copy of the repository; a change of a
kernel compiles the extensions that use the file. Tests stop at the first failure. A change that all tests survive is a
gap in the tests, or changes nothing that matters, and then does not belong here.

    python benchmarks/mutants.py                      # all changes that have no result
    python benchmarks/mutants.py --only "noise|seed"  # those whose names match, again
    python benchmarks/mutants.py --thorough           # what survived, against all tests

It needs the kernels compiled in place (`python setup.py build_ext --inplace`) and the extra `test`. Results stand in
results/mutants.csv, one row a change, and an interrupted run goes on. A row names the commit at which its change was
tried; --again tries those of other commits. Pieces of text, not line numbers, say where a change is made: if a piece is
not found exactly once, nothing runs, and the row has to be adapted.
"""

import argparse
import csv
import hashlib
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from results import STAMP, commit, stamp

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("results") / "mutants.csv"
COLUMNS = ["name", "digest", "file", "result", "seconds", "noticed_by", "why", *STAMP[1:]]
SOURCES = (".py", ".pyx", ".pxd", ".h")
COPIED = (
    "skdplda",
    "tests",
    "examples",
    "doc",
    "benchmarks",
    "setup.py",
    "pyproject.toml",
    "README.md",
    "CONTRIBUTING.md",
)
NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.c", "results", "_build", "generated", "auto_examples")
LIMIT = 1200  # seconds of a test run: a change that makes a test hang is noticed


class Mutant(NamedTuple):
    """One change."""

    name: str
    old: str
    new: str
    why: str
    tests: str

    @property
    def digest(self):
        """A name of its content, by which results are known again."""
        return hashlib.sha256("\0".join((self.old, self.new)).encode()).hexdigest()[:10]


ROUNDS = "test_tables test_loop test_plan test_sensitivity test_estep_gibbs test_randomness"
ADAPTIVE = "test_adaptive test_cgs"
EMBEDDING = "test_embedding"
GIBBS, HDP = "test_kernels test_gibbs", "test_hdp test_hdp_exact"
ACCOUNTING = "test_calibration test_guarantee test_selection"
MUTANTS = [
    # --- clusters of embeddings ---
    Mutant(
        "a user of several documents is not scaled",
        "    rows = np.trunc(rows * scale[unit, None])\n",
        "    rows = np.trunc(rows * np.maximum(scale, 1)[unit, None])\n",
        "one user with half of the texts moves the sums without a bound",
        EMBEDDING,
    ),
    Mutant(
        "size beside a whole direction",
        "STEP = int(NORM_BOUND * math.sqrt(1 - SIZE_SHARE) / LENGTH)",
        "STEP = int(NORM_BOUND / LENGTH)",
        "size and direction are bounded each, and not jointly",
        EMBEDDING,
    ),
    Mutant(
        "documents that share a user are taken as alone",
        "shared = np.diff(self._units[0])[self._unit] > 1",
        "shared = np.diff(self._units[0])[self._unit] > 2",
        "a user of two documents contributes twice the bound",
        EMBEDDING,
    ),
    Mutant(
        "rows that are not finite have a direction",
        "sound = np.isfinite(largest) & (largest > 0)",
        "sound = largest > 0",
        "one row makes sums of all documents NaN",
        EMBEDDING,
    ),
    # --- topics over time ---
    Mutant(
        "a unit's counts of topics are not checked",
        "sums.add_whole(self._rows, self._period, self._unit, self.n_units)",
        "sums.add_whole(self._rows, self._period, np.arange(len(self._rows)), len(self._rows))",
        "a user of several documents, or proportions that do not sum to one, move the counts beyond the bound",
        "test_periods",
    ),
    Mutant(
        "a user counts once a document",
        "NORM_BOUND * (1 - MARGIN) / documents",
        "NORM_BOUND * (1 - MARGIN) / np.minimum(documents, 1)",
        "the counts are zeros for users of several documents, or unbounded",
        "test_periods",
    ),
    # --- budgets that a law is calibrated to, and what the published deviation costs ---
    Mutant(
        "largest law of reports above epsilon",
        "return bit_epsilon <= epsilon and channel.guarantee(unit).epsilon <= epsilon",
        "return bit_epsilon <= epsilon",
        "reports lose more than the epsilon that was asked for",
        "test_local",
    ),
    Mutant(
        "price of the published deviation",
        "return epsilon_of(gaussian_event(sigma, rounds), self.delta)",
        "return epsilon_of(gaussian_event(2 * sigma, rounds), self.delta)",
        "the guarantee says less than the noise costs",
        "test_pctd_noise",
    ),
    # --- the private loop ---
    Mutant(
        "round noise times 0.6",
        "return self.law.sampler(multiplier * NORM_BOUND, shape",
        "return self.law.sampler(0.6 * multiplier * NORM_BOUND, shape",
        "less noise than is paid for",
        ROUNDS,
    ),
    Mutant(
        "no noise in the first round",
        "        noisy += total  # in place",
        "        noisy = noisy * (number > 0) + total  # in place",
        "a round is released as it is",
        ROUNDS,
    ),
    Mutant(
        "charge after the first noisy sum",
        "        before_release(transcript.run)\n",
        "        answer(ask, transcript.n_done)\n        before_release(transcript.run)\n",
        "a fit that the ledger refuses has released something",
        ROUNDS,
    ),
    Mutant(
        "precision ratio of rounds",
        "PRECISION_RATIO = 10.0",
        "PRECISION_RATIO = 5.0",
        "what noise_deviation says of single rounds",
        ROUNDS,
    ),
    Mutant(
        "rounds one percent too precise",
        "(multiplier / np.sqrt(shares / total(shares)) * (1 + ROUNDING)).tolist()",
        "(multiplier / np.sqrt(shares / total(shares)) * 0.99).tolist()",
        "the sum of the rounds costs more than the event",
        ROUNDS,
    ),
    Mutant(
        "deviation of Laplace noise",
        "self.multipliers[round_] * self.law.deviation",
        "self.multipliers[round_]",
        "what noise_deviation says, and the smoothing of tables",
        ROUNDS,
    ),
    Mutant(
        "slack not taken from delta",
        "return target, delta - slack",
        "return target, delta",
        "the samplers' numerical error is not paid for",
        ROUNDS,
    ),
    Mutant(
        "all units join",
        "return randomness.sample(number, n_units, plan.sampling_rate) if",
        "return randomness.sample(number, n_units, 1.0 - 2.0**-50) if",
        "the gain by sampling is claimed and not had",
        ROUNDS + " test_cgs",
    ),
    Mutant(
        "same sample in each round",
        "return randomness.sample(number, n_units, plan.sampling_rate) if",
        "return randomness.sample(0, n_units, plan.sampling_rate) if",
        "rounds are not sampled independently",
        ROUNDS + " test_cgs test_checkpoint",
    ),
    Mutant(
        "one round costs as much as all",
        "gaussian_event(multiplier, n_rounds if steps is None else steps, sampling_rate)",
        "gaussian_event(multiplier, 1, sampling_rate)",
        "the event tells less than happened",
        ROUNDS + " test_cgs test_vips",
    ),
    Mutant(
        "units weigh above the bound",
        "weight = np.floor(NORM_BOUND / (norm * (1 + MARGIN)))",
        "weight = np.ceil(NORM_BOUND / (norm * (1 + MARGIN)))",
        "a contribution is larger than the sensitivity",
        ROUNDS,
    ),
    Mutant(
        "documents of a user are bounded one by one",
        "        counts = members @ counts  # whole",
        "        counts = members @ counts * 0.5  # whole",
        "a user contributes more than the sensitivity",
        ROUNDS,
    ),
    Mutant(
        "sampled weights forgotten",
        "weight = self._weight if active is None else self._weight * active",
        "weight = self._weight",
        "documents outside the sample contribute",
        ROUNDS,
    ),
    Mutant(
        "self-count corrected in noisy tables",
        "self_count = 1.0 if self._exact else 0.0",
        "self_count = 1.0",
        "a token's draw reads what it was in the last round from a table that does not hold it",
        "test_checkpoint",
    ),
    Mutant(
        "a checkpoint of other data resumes",
        'if header["identity"] != self._identity:',
        'if header["identity"][:3] != self._identity[:3]:',
        "two data sets share one noise",
        "test_checkpoint",
    ),
    Mutant(
        "a resumed fit draws with a new key",
        'self.n_done, self.run, randomness.root = header["n_done"], header["run"], bytes.fromhex(header["key"])',
        'self.n_done, self.run = header["n_done"], header["run"]',
        "a resumed fit is another fit",
        "test_checkpoint",
    ),
    Mutant(
        "a resumed fit does a round again",
        "self._state.n_done = self.n_done\n",
        "self._state.n_done = self.n_done - 1\n",
        "one round is released twice and paid once",
        "test_checkpoint",
    ),
    Mutant(
        "a resumed fit asks once more what was answered",
        "for number in range(first, transcript.n_done):",
        "for number in range(first, transcript.n_done - 1):",
        "one answer is released twice and paid once",
        "test_checkpoint test_adaptive",
    ),
    Mutant(
        "answers are those of any noise",
        "if self._multipliers[number] != spending.take(ask.share):",
        "if spending.take(ask.share) is None:",
        "what was released with little noise is accounted for as if it had more",
        "test_checkpoint",
    ),
    Mutant(
        "answers that were not asked for are left aside",
        "if ask is None or found.shape != ask.query.shape",
        "if ask is not None and found.shape != ask.query.shape",
        "a checkpoint of other releases passes for one of this fit",
        "test_checkpoint",
    ),
    # --- the type of what gets noise, and the budget ---
    Mutant(
        "noise for any array",
        "    if norm is None:\n        return sums.total if",
        "    if norm is None or type(sums) is not Bounded:\n        return sums.total if",
        "a sum that nobody has bounded is released",
        "test_loop",
    ),
    Mutant(
        "noise whatever the norm is",
        "    if sums.norm > norm:\n",
        "    if sums.norm > 2:\n",
        "Laplace noise of the L1 norm hides contributions that are bounded in L2",
        "test_loop",
    ),
    Mutant(
        "noise whatever the shape is",
        "if total.shape != ask.query.shape:",
        "if total.ndim != len(ask.query.shape):",
        "the documents decide the shape of a release",
        "test_loop",
    ),
    Mutant(
        "a unit is bounded once in each call",
        "if first <= self._last:",
        "if False:",
        "a unit's values in two calls have twice the bound",
        "test_sensitivity",
    ),
    Mutant(
        "a bounded sum that can be changed",
        "np.frombuffer(total.tobytes(), total.dtype).reshape(total.shape)",
        "total",
        "what was bounded is something else when it gets noise",
        "test_sensitivity",
    ),
    Mutant(
        "arrays from workers are taken as bounded",
        "return dense(total_of(self._e_step.collect(query, round_, active), self._norm))",
        "return dense(total_of(self._e_step.collect(query, round_, active), None))",
        "on workers, a sum that nobody has bounded is released",
        "test_origin",
    ),
    Mutant(
        "rows beyond the bound are added",
        "rows = rows if sound.all() else rows[sound]",
        "rows = rows[:]",
        "votes, or products of directions, of any size",
        "test_sensitivity",
    ),
    Mutant(
        "documents of a user have the bound each",
        "sound = norms * n_parts**self._norm <= NORM_BOUND**self._norm",
        "sound = norms <= NORM_BOUND**self._norm",
        "a user contributes more than the sensitivity",
        "test_sensitivity",
    ),
    Mutant(
        "documents of no part of a unit",
        "np.maximum(np.ceil(np.asarray(n_parts, np.float64)), 1)",
        "np.asarray(n_parts, np.float64)",
        "a document that says that it has no part of a unit has no bound",
        "test_sensitivity",
    ),
    Mutant(
        "units whose numbers wrap around",
        "place, unit = np.asarray(place, np.int64), np.asarray(unit, np.int64)",
        "place, unit = np.asarray(place), np.asarray(unit)",
        "values of one unit are taken for those of others, and bounded with theirs",
        "test_sensitivity",
    ),
    Mutant(
        "adding to a sum that is bounded already",
        "total, self._total = self._open(), None",
        "total = self._open()",
        "what was bounded is something else when it gets noise",
        "test_sensitivity test_loop",
    ),
    Mutant(
        "noise for a class that derives from Bounded",
        "    if type(sums) is not Bounded:",
        "    if not isinstance(sums, Bounded):",
        "a class of its own claims that a sum is bounded",
        "test_loop",
    ),
    Mutant(
        "whole numbers beyond the bound are added",
        "self._add(values[sound], place[sound])",
        "self._add(values, place)",
        "a contribution is larger than the sensitivity",
        "test_sensitivity",
    ),
    Mutant(
        "a unit's values of one cell are bounded one by one",
        "if (np.diff(keys) > 0).all():",
        "if (np.diff(keys) >= 0).all():",
        "a unit that has a cell twice contributes more than the sensitivity",
        "test_sensitivity",
    ),
    Mutant(
        "places outside of the sum",
        "0 <= numbers.min() <= numbers.max() < n):",
        "0 <= numbers.min()):",
        "a value goes to another unit, whose bound it is no part of",
        "test_sensitivity",
    ),
    Mutant(
        "squares that wrap around",
        "rows = np.asarray(rows, np.float64).reshape(",
        "rows = np.asarray(rows).reshape(",
        "a large whole number has a small norm",
        "test_sensitivity",
    ),
    Mutant(
        "sums of kernels are not checked",
        "if not size <= n_units * NORM_BOUND * SLACK:",
        "if size != size:",
        "a kernel that does not scale goes unseen",
        "test_sensitivity",
    ),
    Mutant(
        "a share is not taken",
        "            self._shares.append(share)\n",
        "            self._shares = [share]\n",
        "releases together take more than the budget",
        ADAPTIVE,
    ),
    Mutant(
        "a planned release is taken twice",
        "multiplier = self.plan.multipliers[n_taken]\n",
        "multiplier = self.plan.multipliers[max(n_taken - 1, 0)]\n",
        "rounds have other noise than their event says",
        ROUNDS + " test_checkpoint",
    ),
    Mutant(
        "releases beyond the plan",
        "not (divides or n_taken < len(self.plan.multipliers))",
        "not (divides or n_taken <= len(self.plan.multipliers))",
        "one more release than is paid for",
        ROUNDS,
    ),
    Mutant(
        "a sweep beyond the plan",
        "            scale = self._spending.take()\n            key",
        "            scale = self._plan.scale\n            key",
        "one more noisy table than is paid for",
        "test_hdp",
    ),
    Mutant(
        "answers in another order",
        "found = self.answers[number]\n",
        "found = self.answers[len(self.answers) - 1 - number]\n",
        "a resumed fit, or a transcript, makes another model of the same releases",
        "test_checkpoint test_transcripts",
    ),
    # --- M-steps, and what is told of the noise ---
    Mutant(
        "forgetting of the model",
        '"model: no forgetting".\nFORGET = 0.2',
        '"model: no forgetting".\nFORGET = 0.3',
        "what noise_deviation says, and the measured utility",
        ROUNDS,
    ),
    Mutant(
        "precision weights",
        "precision = ratio * ratio",
        "precision = ratio",
        "the model has more noise than it need have",
        ROUNDS,
    ),
    Mutant(
        "model noise without the sampling rate",
        "/ total(weight) * bound_in_tokens / plan.sampling_rate",
        "/ total(weight) * bound_in_tokens",
        "what skdplda cost prints",
        ROUNDS,
    ),
    Mutant(
        "weights of the model noise",
        "forgotten[::-1] / deviation**2",
        "forgotten[::-1] / deviation",
        "what skdplda cost prints",
        ROUNDS,
    ),
    Mutant(
        "noise deviation without the sampling rate",
        "scale = BOUND_IN_TOKENS / plan.sampling_rate\n",
        "scale = BOUND_IN_TOKENS\n",
        "what skdplda cost prints",
        "test_cgs test_cli",
    ),
    Mutant(
        "noise deviation of the last round",
        '"last_round": scale * plan.deviation(-1)',
        '"last_round": scale * plan.deviation(0)',
        "what skdplda cost prints",
        "test_cgs test_cli",
    ),
    Mutant(
        "what the bound stands for",
        "\nBOUND_IN_TOKENS = 5.0\n",
        "\nBOUND_IN_TOKENS = 4.0\n",
        "what noise_deviation says",
        ROUNDS + " test_cgs",
    ),
    Mutant(
        "smoothing of tables",
        "smoothing = self._smoothing * sigma * frequency / mean(frequency)",
        "smoothing = self._smoothing * sigma * frequency / frequency.max()",
        "the measured utility",
        ROUNDS,
    ),
    Mutant(
        "online tables without the sampling rate",
        "self._scale, self._offset, self._decay = bound_in_tokens / NORM_BOUND / rate, offset, decay",
        "self._scale, self._offset, self._decay = bound_in_tokens / NORM_BOUND, offset, decay",
        "online models shrink",
        ROUNDS,
    ),
    Mutant(
        "weights of rare words",
        "return np.clip(power(frequency / mean(frequency), -0.25), 0.2, 5)",
        "return np.clip(power(frequency / mean(frequency), -0.3), 0.2, 5)",
        "the measured utility",
        ROUNDS,
    ),
    # --- a budget that releases divide ---
    Mutant(
        "shares beyond the budget",
        "if not (share > 0 and math.fsum([*self._shares, share]) <= 1 + ROUNDING):",
        "if not share > 0:",
        "a fault in a strategy would release more than is paid for",
        ADAPTIVE,
    ),
    Mutant(
        "all of the budget for each release",
        "self.plan.multipliers[0] * math.sqrt((1 + 2 * ROUNDING) / share)",
        "self.plan.multipliers[0] * math.sqrt(1 + 2 * ROUNDING)",
        "less noise than is paid for",
        ADAPTIVE,
    ),
    Mutant(
        "a spent share is forgotten",
        "            self._shares.append(share)\n",
        "            self._shares.append(share / 2)\n",
        "releases together take more than the budget",
        ADAPTIVE,
    ),
    Mutant(
        "votes are not clipped",
        "return np.clip(VOTES_PER_NAT * nats_of_unseen(X, table, own, blend, [prior], n_threads), -1, 1)",
        "return VOTES_PER_NAT * nats_of_unseen(X, table, own, blend, [prior], n_threads)",
        "a contribution is larger than the sensitivity",
        ADAPTIVE,
    ),
    Mutant(
        "votes for priors have any norm",
        "return gains / np.sqrt(np.maximum(total(gains * gains, axis=1), 1.0))[:, None]",
        "return gains",
        "a contribution is larger than the sensitivity",
        ADAPTIVE,
    ),
    Mutant(
        "documents judge what they made themselves",
        "rows_without(*entries, counts, masses, own, blend",
        "rows_without(*entries, counts, masses, 0 * own, blend",
        "topics of chance are called real",
        ADAPTIVE,
    ),
    Mutant(
        "words are seen that are held out",
        "for part in (~held_out, held_out))",
        "for part in (held_out >= 0, held_out))",
        "topics of chance are called real",
        ADAPTIVE,
    ),
    Mutant(
        "each of a user's documents votes on clusters",
        "sums.add_rows(np.trunc(votes * (NORM_BOUND * (1 - MARGIN) / sizes)[:, None]), sizes)",
        "sums.add_rows(np.trunc(votes * (NORM_BOUND * (1 - MARGIN))))",
        "a user contributes more than the sensitivity",
        "test_embedding",
    ),
    Mutant(
        "votes on clusters depend on other users",
        "squares = np.bincount(self._unit[document], weighted * weighted, self.n_units)",
        "squares = np.full(self.n_units, (weighted * weighted).sum())",
        "a user changes others' contributions",
        "test_embedding",
    ),
    Mutant(
        "held-out words depend on documents before",
        "_mixed((ends[X.indptr[1:]] - ends[X.indptr[:-1]]) ^ GOLDEN)",
        "_mixed(ends[X.indptr[1:]] ^ GOLDEN)",
        "a user changes others' contributions",
        "test_embedding",
    ),
    Mutant(
        "texts of a user have labels apart",
        "unit = np.repeat(unit_of_documents(units), lengths)",
        "unit = np.repeat(np.arange(len(found)), lengths)",
        "a user counts for more labels than is said",
        "test_labels",
    ),
    Mutant(
        "a label too many",
        "self._unit, self._label = unit[rank < most], label[rank < most]",
        "self._unit, self._label = unit[rank <= most], label[rank <= most]",
        "a unit counts for more labels than is said",
        "test_labels",
    ),
    Mutant(
        "each label has the whole bound",
        "math.floor(NORM_BOUND * (1 - MARGIN) / self._most)",
        "math.floor(NORM_BOUND * (1 - MARGIN))",
        "a unit of one label counts more than once, and one of several not at all",
        "test_labels",
    ),
    Mutant(
        "counts of labels with less noise",
        'NoisePlan.calibrate("laplace", check_epsilon(epsilon), 0.0, 1)',
        'NoisePlan.calibrate("laplace", 1.25 * check_epsilon(epsilon), 0.0, 1)',
        "less noise than is claimed",
        "test_labels",
    ),
    Mutant(
        "each of a user's documents votes",
        "scale = NORM_BOUND * (1 - MARGIN) / sizes\n            sums.add_rows(",
        "scale = NORM_BOUND * (1 - MARGIN) / (sizes := np.ones_like(sizes))\n            sums.add_rows(",
        "a user contributes more than the sensitivity",
        ADAPTIVE,
    ),
    Mutant(
        "share of word counts",
        "PRIORS_SHARE = 0.06, 0.02, 0.25",
        "PRIORS_SHARE = 0.08, 0.02, 0.25",
        "what noise_deviation says",
        "test_cgs test_cli",
    ),
    # --- randomness ---
    Mutant(
        "sampling probability rounded up",
        "np.uint64(int(rate * 2.0**53) << 11)",
        "np.uint64(min(int(rate * 1.05 * 2.0**53), 2**53 - 1) << 11)",
        "units join more often than is accounted",
        ROUNDS,
    ),
    Mutant(
        "one noise for all rounds of a seeded fit",
        'return self._derive("noise", int(round_), *given)',
        'return self._derive("noise", 0)',
        "the difference of two rounds has no noise",
        ROUNDS,
    ),
    # --- variational inference ---
    Mutant(
        "scaled soft counts above the bound",
        "self._norm = NORM_BOUND if max_norm is None and not exact else 0",
        "self._norm = NORM_BOUND + NORM_BOUND // 64 if max_norm is None and not exact else 0",
        "a contribution is larger than the sensitivity",
        "test_variational test_vips test_audit",
    ),
    Mutant(
        "a user's documents are scaled one by one",
        "yield self._all, documents, start",
        "yield self._all, documents, np.arange(len(documents) + 1)",
        "a user contributes as much as its documents together",
        "test_adaptive test_documents",
    ),
    Mutant(
        "a user's clusters are those of its documents",
        "sums.add_scaled(values, counts.indices, done + user[document], n_units)",
        "sums.add_scaled(values, counts.indices, document, n_units * counts.shape[0])",
        "a user contributes as much as its documents together",
        "test_adaptive test_documents",
    ),
    Mutant(
        "soft counts of a unit are left for the next",
        "u->place[u->word[i]] = -1;",
        "u->place[u->word[i]] = u->place[u->word[i]];",
        "a unit contributes to the words of others",
        "test_variational",
    ),
    Mutant(
        "long documents are cut too late",
        "return cut_to_tokens(X, max_length, tokens)",
        "return cut_to_tokens(X, max_length + 1, tokens)",
        "a document keeps more tokens than is said",
        "test_variational test_vips",
    ),
    Mutant(
        "a stream takes one step more",
        "stream.n_done >= plan.n_rounds:",
        "stream.n_done > plan.n_rounds:",
        "a release that nobody has paid for",
        "test_vips",
    ),
    Mutant(
        "a stream begins anew with each step",
        "tables.n_done = stream.n_done\n",
        "tables.n_done = 0\n",
        "releases that nobody has paid for",
        "test_vips",
    ),
    Mutant(
        "a claimed accounting passes for proven",
        '            "status": "claimed",\n            "reference": "Park et al. (2016)',
        '            "status": "proven",\n            "reference": "Park et al. (2016)',
        "a claim that does not hold is given as a theorem",
        "test_vips test_published",
    ),
    # --- PCTD ---
    Mutant(
        "segments contribute above the bound",
        "scaled_sums(*self._cells, self._responsibilities, NORM_BOUND, found, self._n_threads)",
        "scaled_sums(*self._cells, self._responsibilities, NORM_BOUND + NORM_BOUND // 64, found, self._n_threads)",
        "a contribution is larger than the sensitivity",
        "test_pctd test_audit",
    ),
    Mutant(
        "a replaced word changes one count",
        "TOKEN_L2 = math.sqrt(2) *",
        "TOKEN_L2 = 1.0 *",
        "noise for half of what a replaced word changes",
        "test_pctd test_pctd_noise",
    ),
    Mutant(
        "half the noise on segments",
        "            sigma * NORM_BOUND, exact.shape, randomness",
        "            sigma * NORM_BOUND / 2, exact.shape, randomness",
        "less noise than is paid for",
        "test_pctd_noise test_pctd",
    ),
    Mutant(
        "one noise for all blocks of segments",
        "exact.shape, randomness.noise(block, sigma, exact), n_threads",
        "exact.shape, randomness.noise(0, sigma, exact), n_threads",
        "the difference of two blocks has no noise",
        "test_pctd_noise test_pctd",
    ),
    Mutant(
        "noise of published segments",
        "along = sigma * normal(rng, (n_segments, len(size)))",
        "along = sigma / 2 * normal(rng, (n_segments, len(size)))",
        "the published form has other noise than it says",
        "test_pctd_noise",
    ),
    Mutant(
        "noise of published sums",
        "rest -= matmul(basis, matmul(basis.T, rest))",
        "rest -= 0 * matmul(basis, matmul(basis.T, rest))",
        "the published form has other noise than it says",
        "test_pctd_noise",
    ),
    # --- HDPLDA ---
    Mutant(
        "half the noise of HDPLDA",
        "return self.law.sampler(scale, shape, random_state, n_threads)",
        "return self.law.sampler(scale / 2, shape, random_state, n_threads)",
        "less noise than is paid for",
        HDP,
    ),
    Mutant(
        "Laplace scale of a sweep",
        "if delta else math.sqrt(moved) / left, eta",
        "if delta else 1 / left, eta",
        "less noise than is paid for",
        HDP,
    ),
    Mutant(
        "sensitivity of a Gaussian table",
        "MOVED = {1: 4, 2: 2}",
        "MOVED = {1: 4, 2: 1}",
        "noise for less than a token moves, and an event that says nothing of it",
        HDP,
    ),
    Mutant(
        "sensitivity of a Laplace table",
        "MOVED = {1: 4, 2: 2}",
        "MOVED = {1: 1, 2: 2}",
        "noise for less than a token moves, and an event that says nothing of it",
        HDP,
    ),
    Mutant(
        "draws of several tokens cost one",
        "draws = n_tokens * self.n_sweeps",
        "draws = self.n_sweeps",
        "document_cost states too small an epsilon",
        HDP,
    ),
    Mutant(
        "range of the draws doubled",
        "odds = exp(min(plan.eta / 2, 700.0))",
        "odds = exp(min(plan.eta, 700.0))",
        "draws tell more than is paid for",
        HDP,
    ),
    Mutant(
        "all sweeps read one stream",
        "self._draw(weights, self._alpha, rate, self._most, self._n)",
        "self._draw(weights, self._alpha, rate, self._most, 2 if self._n > 1 else 1)",
        "draws of different sweeps are not independent",
        HDP + " test_released",
    ),
    Mutant(
        "noise of a sweep drawn once",
        "key = self._randomness.noise(self._n, self._plan.mechanism",
        "key = self._randomness.noise(1, self._plan.mechanism",
        "the difference of two tables has no noise",
        HDP,
    ),
    Mutant(
        "tokens in the order of words",
        "        order_tokens(starts, words, sampler._key)\n        return sampler",
        "        return sampler",
        "the place of a token tells its word",
        HDP,
    ),
    # --- the search ---
    Mutant(
        "scores without noise",
        'noise = mechanism_of("gaussian").sampler(deviation * NORM_BOUND, (1,), seed)[0] if deviation else 0',
        "noise = 0",
        "a score tells of held-out documents",
        "test_model_selection",
    ),
    Mutant(
        "scores of users are summed",
        "total = np.bincount(unit, gain[documents]) / size if",
        "total = np.bincount(unit, gain[documents]) if",
        "a user changes a score by more than 1",
        "test_model_selection",
    ),
    # --- accounting ---
    Mutant(
        "Gaussian steps are counted once",
        "precision += count / sigma / sigma",
        "precision += 1 / sigma / sigma",
        "epsilon is far too small",
        ACCOUNTING,
    ),
    Mutant(
        "Gaussian delta",
        "upper, lower = ratio - mu / 2, ratio + mu / 2",
        "upper, lower = ratio - mu / 2.1, ratio + mu / 2",
        "epsilon is too small",
        ACCOUNTING,
    ),
    Mutant(
        "amplification of pure epsilon",
        "log1p(rate * expm1(epsilon)) * OUTWARDS",
        "rate * epsilon * OUTWARDS",
        "epsilon is too small",
        ACCOUNTING,
    ),
    Mutant(
        "cost of the best of several runs",
        "found.pure[(2 + event.shape) * run.pure_sum * OUTWARDS]",
        "found.pure[(1 + event.shape) * run.pure_sum * OUTWARDS]",
        "epsilon is too small",
        ACCOUNTING,
    ),
    Mutant(
        "zCDP of a pure mechanism",
        "add_up(e * e / 2 * n for e, n in self.pure)",
        "add_up(e * e / 8 * n for e, n in self.pure)",
        "epsilon is too small",
        ACCOUNTING,
    ),
    Mutant(
        "zCDP to epsilon",
        "return xi + rho * order + log_rest - (log_delta + log_order) / (order - 1)",
        "return xi + rho * order + 2 * log_rest - (log_delta + log_order) / (order - 1)",
        "epsilon is too small",
        ACCOUNTING,
    ),
    Mutant(
        "rate of a bounded range",
        "rho = eta * eta / 8",
        "rho = eta * eta / 16",
        "epsilon of released draws is too small",
        ACCOUNTING + " test_hdp",
    ),
    Mutant(
        "groups and Gaussian noise",
        "parts.append(gaussian_event(leaf.noise_multiplier / size, count))",
        "parts.append(gaussian_event(leaf.noise_multiplier / math.sqrt(size), count))",
        "the guarantee for a group is too strong",
        ACCOUNTING,
    ),
    Mutant(
        "groups and zCDP",
        "zcdp_event(size**2 * leaf.rho)",
        "zcdp_event(size * leaf.rho)",
        "the guarantee for a group is too strong",
        ACCOUNTING,
    ),
    Mutant(
        "slack of the samplers",
        "(1.0 + exp(float(epsilon))) * n_draws * SLACK",
        "n_draws * SLACK",
        "delta is too small",
        "test_noise",
    ),
    Mutant(
        "what an event leaves out",
        "left = math.fsum([delta, *(-g.delta for g in rest), *(-g.event_delta for g in parts)])",
        "left = math.fsum([delta, *(-g.delta for g in rest)])",
        "new words are not paid for in compositions",
        ACCOUNTING + " test_pipeline_guarantee",
    ),
    Mutant(
        "epsilon at a smaller delta",
        "left = delta if self.event_delta == 0 else delta - self.event_delta",
        "left = delta",
        "new words are not paid for in a profile",
        ACCOUNTING,
    ),
    Mutant(
        "a composition takes the best status",
        "status=max((g.status for g in guarantees), key=STRENGTH.index)",
        "status=min((g.status for g in guarantees), key=STRENGTH.index)",
        "a claim passes for a theorem",
        ACCOUNTING,
    ),
    Mutant(
        "sampled events under replacement",
        "if adjacency == Adjacency.REPLACE and _is_sampled(event):",
        "if adjacency == Adjacency.REPLACE and _is_sampled(event) and False:",
        "an accounting that does not hold is taken",
        ACCOUNTING,
    ),
    Mutant(
        "sampled events of a search under replacement",
        '(hasattr(leaf, "shape") and _is_sampled(leaf.event))',
        "False",
        "an accounting that does not hold is taken",
        "test_guarantee",
    ),
    Mutant(
        "rounding of sampled steps",
        "    return RENYI_ERROR * add_up(",
        "    return 0.0 * add_up(",
        "many steps cost less than is true",
        "test_accounting",
    ),
    Mutant(
        "Gaussian noise that underflows",
        "    sigma = min(sigma, LARGEST_SIGMA)  #",
        "    sigma = float(sigma)  #",
        "noise without a pure guarantee is pure",
        "test_accounting",
    ),
    Mutant(
        "words of an interrupted fit in another ledger",
        "        if paid != ledger:",
        "        if False:",
        "words are charged to no ledger",
        "test_cli",
    ),
    Mutant(
        "a ledger overspends",
        "        if cost > self._epsilon:\n",
        "        if cost > self._epsilon * 1.01:\n",
        "the budget is exceeded",
        "test_accountant",
    ),
    Mutant(
        "a ledger of Gaussian noise forgets what events leave out",
        "return precision, guarantee.event_delta",
        "return precision, 0.0",
        "words that one unit alone uses are told as often as one likes",
        "test_accountant",
    ),
    Mutant(
        "a ledger of divergences forgets what events leave out",
        "return _divergence(event, self.order), guarantee.event_delta",
        "return _divergence(event, self.order), 0.0",
        "words that one unit alone uses are told as often as one likes",
        "test_accountant",
    ),
    Mutant(
        "a ledger of divergences forgets the delta of what has no event",
        "_pure_divergence(guarantee.epsilon, self.order), guarantee.delta",
        "_pure_divergence(guarantee.epsilon, self.order), 0.0",
        "deltas add up without a limit",
        "test_accountant",
    ),
    Mutant(
        "the reserve pays for noise too",
        '        left = self.delta - self.reserve\n        if self.name == "gaussian":',
        '        left = self.delta\n        if self.name == "gaussian":',
        "a part of delta is spent twice",
        "test_accountant",
    ),
    Mutant(
        "groups and what an event leaves out",
        "if self.event is not None and not self.event_delta else None",
        "if self.event is not None else None",
        "new words of a group are paid for as those of one unit",
        ACCOUNTING,
    ),
    Mutant(
        "a word's first weight is rounded down",
        "first = np.ceil(coefficients[0] / np.sqrt(lows) * FINE)",
        "first = np.floor(coefficients[0] / np.sqrt(lows) * FINE)",
        "a threshold lets new words pass more often than delta says",
        "test_partition",
    ),
    Mutant(
        "a word's later weights are rounded down",
        "gains = np.ceil(coefficients[i] / np.sqrt(1 + rungs) * FINE)",
        "gains = np.floor(coefficients[i] / np.sqrt(1 + rungs) * FINE)",
        "a threshold lets new words pass more often than delta says",
        "test_partition",
    ),
    Mutant(
        "a unit's number of words is rounded up",
        'np.searchsorted(lows, n, side="right") - 1',
        "np.minimum(np.searchsorted(lows, n), len(lows) - 1)",
        "the weights of more words are smaller than those of the unit",
        "test_partition",
    ),
    # --- estimators of other authors ---
    Mutant(
        "a class of another author is believed",
        "    if is_of_package(type(owner)):\n        return not _replaced(owner)\n    return _added(owner) is not None",
        "    return is_of_package(type(owner)) or True",
        "raw counts pass for a theorem",
        "test_origin",
    ),
    Mutant(
        "whatever a class replaces",
        "if hooks is None or _replaced(owner) or not all(",
        "if hooks is None or not all(",
        "an E-step without a bound passes for a theorem",
        "test_origin",
    ),
    Mutant(
        "methods of other authors are not tried",
        "        if not np.array_equal(total, sum(parts)):\n",
        "        if not np.array_equal(total.shape, parts[0].shape):\n",
        "documents read what others left",
        "test_origin",
    ),
    Mutant(
        "a failure on a private document is raised",
        "            if self._strict:\n                raise\n",
        "            raise\n",
        "an error tells of one document",
        "test_origin",
    ),
    Mutant(
        "values of a unit that are not finite",
        "sound = (np.isfinite(largest) & (largest > 0))[unit]",
        "sound = (largest != 0)[unit]",
        "one document makes sums of all NaN, or fails the fit",
        "test_origin",
    ),
    Mutant(
        "a ledger of claims",
        "if guarantee.status != Status.PROVEN and not self._accept_claimed:",
        "if guarantee.status == Status.DIAGNOSTIC and not self._accept_claimed:",
        "a ledger of guarantees that do not hold",
        "test_accountant",
    ),
    Mutant(
        "a unit pays for the cheapest parts",
        "sorted(parts.values(), key=add_up, reverse=True)[:max_parts]",
        "sorted(parts.values(), key=add_up)[:max_parts]",
        "a ledger of months accepts more than a unit of the dearest has left",
        "test_ledger_parts",
    ),
    Mutant(
        "a thread takes the part of another",
        "return own[-1] if own else None",
        "return own[-1] if own else next((block.part for block in PROCESS.open), None)",
        "a fit of one month is charged to another",
        "test_ledger_parts",
    ),
    Mutant(
        "a stream goes on in another part",
        "if charged is not None and charged.part not in (None, part):",
        "if False:",
        "documents of a month that nobody paid for",
        "test_ledger_parts",
    ),
    Mutant(
        "a run is charged twice",
        "if self._has_run(run, part, guarantee):",
        "if False:",
        "a resumed fit is charged again",
        "test_accountant test_checkpoint",
    ),
    Mutant(
        "the monitor at document level",
        "by_document = max(by_document, _grow(p, topic_total[k], beta_sum, n_max))",
        "by_document = max(by_document, _grow(p, topic_total[k], beta_sum, 1))",
        "the published measurement is too small",
        "test_published_gibbs",
    ),
    # --- local reports ---
    Mutant(
        "bits flipped too rarely",
        "least = int(mpmath.ceil(whole * inverse(target - slack))) + 1",
        "least = int(mpmath.ceil(whole * inverse(target + 1e-4))) + 1",
        "a bit costs more than is said",
        "test_local_channel test_local_reports",
    ),
    Mutant(
        "words that come are free",
        "come = min(go, self.n_words - go)",
        "come = 0",
        "a document costs more than is said",
        "test_local_channel",
    ),
    Mutant(
        "several reports cost one",
        "epsilon=_up(Fraction(one) * self.reports_per_user)",
        "epsilon=_up(Fraction(one))",
        "a user costs more than is said",
        "test_local_channel",
    ),
    Mutant(
        "a word pushes another out",
        "return max(self.bit_epsilon, (both + log1p(expm1(-both) / (most + 1))) * OUTWARDS + slack)",
        "return max(self.bit_epsilon, (both + 2 * log1p(expm1(-both) / (most + 1))) * OUTWARDS + slack)",
        "a bit costs more than is said",
        "test_local_channel",
    ),
    Mutant(
        "moment estimate",
        "- q * n_reports) / (p - q)\n    return np.clip(present, 0, n_reports)",
        "- q * n_reports) / p\n    return np.clip(present, 0, n_reports)",
        "estimates are biased",
        "test_local",
    ),
    Mutant(
        "variance of the moment estimate",
        "(n_reports - present) * q * (1 - q)) / ((p - q) * (p - q))",
        "(n_reports - present) * q * (1 - q)) / (p - q)",
        "estimates are shrunk wrongly",
        "test_local",
    ),
    Mutant(
        "raw documents pass for reports",
        "if n_ones < least - 6.5 * math.sqrt(least):",
        "if n_ones < least - 65 * math.sqrt(least):",
        "raw data are taken for randomized ones",
        "test_local test_local_reports",
    ),
    Mutant(
        "more reports than a user has declared",
        "if np.diff(start).max() > most:",
        "if np.diff(start).max() > most + 1:",
        "a user has spent more than is said",
        "test_local",
    ),
    # --- selection of words ---
    Mutant(
        "equal weights of a unit's words",
        "equal_share(plan.grid, n + 1) for n in range(plan.max_items)",
        "equal_share(plan.grid, max(n, 1)) for n in range(plan.max_items)",
        "a unit gives more than the sensitivity",
        "test_partition test_vocabulary",
    ),
    Mutant(
        "threshold not strict",
        "passed = noisy > threshold",
        "passed = noisy >= threshold",
        "new words pass more often than delta says",
        "test_partition test_vocabulary",
    ),
    Mutant(
        "only the first new word counts",
        "return -expm1(log_hidden(first) + (n_words - 1) * np.maximum(log_hidden(other), -1000.0))",
        "return -expm1(log_hidden(first) + 0 * n_words * log_hidden(other))",
        "new words pass more often than delta says",
        "test_partition test_vocabulary",
    ),
    Mutant(
        "all of delta for the noise",
        "multipliers, event = law.calibrate(epsilon, delta / 2, shares, part)",
        "multipliers, event = law.calibrate(epsilon, delta, shares, part)",
        "delta is spent twice",
        "test_partition test_vocabulary",
    ),
    Mutant(
        "released words stay candidates",
        "        active[present[passed]] = 0\n",
        "        active[present[passed]] = 1\n",
        "a word is released twice",
        "test_partition test_vocabulary",
    ),
    Mutant(
        "truncated noise cut on one side",
        "np.flatnonzero(np.abs(noise) > threshold)).size",
        "np.flatnonzero(noise > threshold)).size",
        "absent and rare words are told apart",
        "test_partition",
    ),
    Mutant(
        "noise on half of the weight",
        "noise = sampler(scale, exact.size, randomness",
        "noise = sampler(scale / 2, exact.size, randomness",
        "less noise than is paid for",
        "test_partition test_vocabulary",
    ),
    Mutant(
        "one noise for all rounds of a selection",
        "    draws += 1\n    while plan.mechanism",
        "    while plan.mechanism",
        "the rounds of a selection share their noise",
        "test_partition test_vocabulary",
    ),
    Mutant(
        "words dropped from favourites",
        "np.lexsort((-self._counts, np.repeat",
        "np.lexsort((self._counts, np.repeat",
        "utility of item_frequency",
        "test_partition test_vocabulary",
    ),
    Mutant(
        "the ledger is not asked before a selection",
        "        if self.public_vocabulary is None:\n            charge.check(run)",
        "        if self.public_vocabulary is not None:\n            charge.check(run)",
        "data are read that the budget does not cover",
        "test_vocabulary test_accountant",
    ),
    Mutant(
        "selection first, then the charge",
        "            charge.charge(uuid4().hex)\n            selected = select_partitions("
        "plan, *lists, X.shape[1], randomness)",
        "            selected = select_partitions(plan, *lists, X.shape[1], randomness)\n"
        "            charge.charge(uuid4().hex)",
        "words are released before they are paid for",
        "test_accountant test_vocabulary",
    ),
    # --- users and searches ---
    Mutant(
        "steps get other users",
        "if not all(map(np.array_equal, units, check_groups(other, size))):",
        "if len(other) != size:",
        "a step protects documents where the statement says users",
        "test_pipeline",
    ),
    Mutant(
        "one step gets no users",
        "if groups is None and missing:",
        "if groups is None and not by_step:",
        "a step protects documents, after the others were paid for",
        "test_pipeline",
    ),
    Mutant(
        "fitted steps of other users are composed",
        "        if other != users:",
        "        if other is None:",
        "a plain pipeline is stated for users whom no step protects whole",
        "test_pipeline test_pipeline_guarantee",
    ),
    Mutant(
        "folds keep users whole",
        "whole = unit != PrivacyUnit.USER or type(cv) in TOGETHER",
        "whole = True",
        "a user is in one training set more than is counted",
        "test_model_selection",
    ),
    Mutant(
        "trials are heard",
        "                if best is None or found.rank > best.rank:",
        "                found.warn()\n                if best is None or found.rank > best.rank:",
        "warnings tell of trials that are not released, and of their number",
        "test_model_selection",
    ),
    Mutant(
        "names in the order of their use",
        "    if not step.sort:",
        "    if step.sort is None:",
        "the order of released words tells which document came first",
        "test_pipeline_guarantee",
    ),
    # --- releases ---
    Mutant(
        "seeded fits are released",
        "if seeded and not allow_seeded and math.isfinite(guarantee.epsilon):",
        "if seeded and not allow_seeded and math.isinf(guarantee.epsilon):",
        "noise that a number takes away again is published",
        "test_releases test_fdptm",
    ),
    Mutant(
        "claimed fits are released",
        "if not allow_unproven and not (proven and math.isfinite(guarantee.epsilon)):",
        "if not allow_unproven and not math.isfinite(guarantee.epsilon):",
        "a model is published with a guarantee that does not hold",
        "test_releases test_fdptm",
    ),
    Mutant(
        "edited files load",
        'if members[CHECKSUM].decode(errors="replace") != _digest(members):',
        "if len(members[CHECKSUM]) != len(_digest(members)):",
        "a damaged model is used",
        "test_releases",
    ),
    Mutant(
        "min_df in a private pipeline",
        "least = step.min_df <= 1 if isinstance(step.min_df, Integral) else step.min_df == 0",
        "least = True",
        "one document changes the rows of others",
        "test_pipeline_guarantee",
    ),
    Mutant(
        "two steps with one seed",
        "if seed is not None and seeds.setdefault(seed, name) != name:",
        "if seed is not None and seeds.setdefault(seed, name) == 0:",
        "noise of two steps cancels out",
        "test_pipeline_guarantee test_releases test_fdptm",
    ),
    # --- kernels ---
    Mutant(
        "ChaCha8",
        "round < 20; round += 2",
        "round < 8; round += 2",
        "not the generator that is stated",
        "test_noise",
    ),
    Mutant(
        "blocks of noise share a stream",
        "chacha20_start(&stream, key, domain, <uint32_t>block, <uint32_t>(block >> 32))",
        "chacha20_start(&stream, key, domain, 0, <uint32_t>(block >> 32))",
        "the difference of two cells has no noise",
        "test_noise",
    ),
    Mutant(
        "noise one off",
        "magnitude += 1 + ((entry - 1) << table.shift)",
        "magnitude += ((entry - 1) << table.shift)",
        "another law than is accounted",
        "test_noise",
    ),
    Mutant(
        "noise of one sign more often",
        "cdef int64_t sign = -<int64_t>(word & 1)",
        "cdef int64_t sign = -<int64_t>((word & 3) == 1)",
        "another law than is accounted",
        "test_noise",
    ),
    Mutant(
        "wedge of the noise",
        "fixed128 slope = alpha + bucket * beta",
        "fixed128 slope = alpha + bucket * beta + (alpha >> 2)",
        "another law than is accounted",
        "test_noise",
    ),
    Mutant(
        "released draws, place in the stream",
        "weights[k] = <uint64_t>row[k] * factors[k]",
        "weights[k] = <uint64_t>row[k] * factors[0]",
        "draws of another law",
        "test_released_draws",
    ),
    Mutant(
        "released draws, own topic kept",
        "            counts[z] -= 1\n            factors[z] = _factor(counts[z], scaled[z])\n        total = 0",
        "            factors[z] = _factor(counts[z], scaled[z])\n        total = 0",
        "draws of another law",
        "test_released_draws",
    ),
    Mutant(
        "gaps of reports",
        "while (first < reach && word < survival[first]) first++;",
        "while (first < reach && word / 2 < survival[first]) first++;",
        "bits are flipped more rarely than is said",
        "test_local_channel test_local_reports",
    ),
    Mutant(
        "coins of present words",
        "if not (coins >> (i & 63)) & 1:",
        "if not (coins >> (i & 31)) & 1:",
        "bits of different words are not independent",
        "test_local_channel test_local_reports test_local",
    ),
    Mutant(
        "words kept of a long report",
        "j = i + <int64_t>(chacha20_u64(stream) % <uint64_t>(n - i))",
        "j = i + <int64_t>(chacha20_u64(stream) % <uint64_t>(n - i)) // 2",
        "first words are reported more often",
        "test_local_channel test_local_reports",
    ),
    Mutant(
        "truncation keeps one word more",
        "keep[i] = i - start[u] < most",
        "keep[i] = i - start[u] <= most",
        "a unit takes part with more words than is said",
        "test_partition",
    ),
    Mutant(
        "policy Gaussian above its budget",
        "part = budget * (1 - 2.0**-40) / sqrt(square)",
        "part = budget * (1 + 2.0**-10) / sqrt(square)",
        "a unit gives more than the sensitivity",
        "test_partition",
    ),
    Mutant(
        "policy Laplace above its budget",
        "                left -= gap * (n - j)\n",
        "                left -= gap * (n - j - 1)\n",
        "a unit gives more than the sensitivity",
        "test_partition",
    ),
    Mutant(
        "Gibbs: no self-count correction in the weights",
        "count = count > f->self_count ? count - f->self_count : 0;",
        "count = count > f->self_count ? count : 0;",
        "draws of another law",
        GIBBS,
    ),
    Mutant(
        "Gibbs: the token itself stays in the bounds",
        "x->fix.lane[i] = corrected * (m - f->token_weight) - q * m;",
        "x->fix.lane[i] = corrected * m - q * m;",
        "draws of another law, in one of the copies",
        GIBBS,
    ),
    Mutant(
        "Gibbs: doubtful draws are accepted",
        "if (__builtin_expect(x->unsure.lane[i] | doubt, 0))",
        "if (__builtin_expect(doubt, 0))",
        "draws of another law",
        GIBBS,
    ),
    Mutant(
        "Gibbs: AVX2 columns",
        "x[j + 4] = _mm256_permute2x128_si256(a, b, 0x31);",
        "x[j + 4] = _mm256_permute2x128_si256(a, b, 0x30);",
        "draws of another law on processors with AVX2",
        GIBBS,
    ),
    Mutant(
        "Gibbs: AVX2 products",
        "(TARGET(ints))_mm256_madd_epi16((__m256i)a, (__m256i)b)",
        "(TARGET(ints))_mm256_madd_epi16((__m256i)a, (__m256i)a)",
        "draws of another law on processors with AVX2",
        GIBBS,
    ),
    Mutant(
        "Gibbs: SSE2 columns",
        "rows[2].lane[l], rows[3].lane[l]}",
        "rows[3].lane[l], rows[2].lane[l]}",
        "draws of another law on plain processors",
        GIBBS,
    ),
    Mutant(
        "Gibbs: SSE2 products",
        "(TARGET(ints))_mm_madd_epi16((__m128i)a, (__m128i)b)",
        "(TARGET(ints))_mm_madd_epi16((__m128i)a, (__m128i)a)",
        "draws of another law on plain processors",
        GIBBS,
    ),
    Mutant(
        "Gibbs: random numbers of AVX-512",
        "TARGET(mix)(a->sweep_key ^ (wide + a->first)) + place[h]);",
        "TARGET(mix)(a->sweep_key ^ wide) + place[h]);",
        "results depend on blocks and processor",
        GIBBS,
    ),
    Mutant(
        "Gibbs: many topics, no self-count correction",
        "self = self < most ? self : most;\n        rest -= ",
        "self = self < most ? self : 0;\n        rest -= ",
        "draws of another law",
        GIBBS,
    ),
    Mutant(
        "Gibbs: lists of topics, no self-count correction",
        "*own *= self < weight[place] ? (weight[place] - self) / weight[place] : 0;",
        "*own *= self < weight[place] ? (weight[place] - self) / weight[place] : 1;",
        "draws of another law",
        "test_listed",
    ),
    Mutant(
        "Gibbs: many topics, prior part",
        "float p = (row[k] - (k == counted ? self : 0)) * alpha[k];",
        "float p = row[k] * alpha[k];",
        "draws of another law",
        GIBBS,
    ),
    Mutant(
        "Gibbs: sum of weighted counts",
        "row[b->topic[t]] += weight[b->document[t]];",
        "row[b->topic[t]] += weight[0];",
        "documents contribute with another's weight",
        GIBBS,
    ),
    Mutant(
        "responsibilities of segments not truncated",
        "whole = <long long>(cell[k] * scale)",
        "whole = <long long>(cell[k] * scale + 0.5)",
        "a contribution is larger than the sensitivity",
        "test_mixture test_pctd test_audit",
    ),
    Mutant(
        "a user's segments are scaled document by document",
        "cells, cell = np.unique(unit[document] * X.shape[1] + counts.col, return_inverse=True)",
        "cells, cell, n_units = np.unique(document * X.shape[1] + counts.col, return_inverse=True) + (len(X),)",
        "a user contributes as much as its documents together",
        "test_pctd",
    ),
    Mutant(
        "published sweep, self-count",
        "topics[i], -1)\n                if noisy and rescaled:\n",
        "topics[i], -1)\n                doc_topic[d, topics[i]] += 0.5\n                if noisy and rescaled:\n",
        "the published form is another one",
        "test_published_gibbs",
    ),
]


def sources(folder):
    """Return the package's source files and their texts."""
    found = sorted(path for path in (folder / "skdplda").rglob("*") if path.suffix in SOURCES)
    return {path.relative_to(folder): path.read_text(encoding="utf-8") for path in found}


def place_of(mutant, texts):
    """Return the file that holds the piece of text, which stands there once and nowhere else."""
    found = [path for path, text in texts.items() for _ in range(text.count(mutant.old))]
    if len(found) != 1:
        where = ", ".join(map(str, found)) or "no file"
        raise ValueError(f"{mutant.name!r}: its text must stand exactly once in the package; found in {where}")
    return found[0]


def tests_of(mutant):
    """Return the paths of its test files; those of parts that the package does not have are left out."""
    paths = [f"tests/{name}.py" for name in mutant.tests.split()]
    return [path for path in paths if (ROOT / path).exists()]


class Copy:
    """A copy of the repository, in which one change at a time is made and taken back."""

    def __init__(self, folder):
        self.folder = Path(folder)
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.folder / name, ignore=NOT_COPIED)
            elif (ROOT / name).exists():
                shutil.copy2(ROOT / name, self.folder / name)
        for metadata in ROOT.glob("*.egg-info"):
            shutil.copytree(metadata, self.folder / metadata.name)
        self.texts = sources(self.folder)
        self.environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(self.folder)}

    def run(self, *command, limit=LIMIT):
        """Run a Python command; return (exit code, output), with None for a run that took too long."""
        try:
            done = subprocess.run(
                [sys.executable, *command], cwd=self.folder, env=self.environment, timeout=limit,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stdout

    def compile(self):
        """Compile in place what is older than its sources: all at first, and then what was changed or is taken back."""
        code, output = self.run("setup.py", "-q", "build_ext", "--inplace")
        if code:
            raise RuntimeError(output[-2000:])

    def test(self, tests):
        """Return (exit code, first failure)."""
        code, output = self.run("-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider", *tests)
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
        return code, failed[1] if failed else output[-300:]

    def judge(self, mutant, tests):
        """Make a change, test, take it back; return (result, noticed by)."""
        file = place_of(mutant, self.texts)
        path, compiled = self.folder / file, file.suffix != ".py"
        built = (self.folder / "skdplda").rglob("*.so") if compiled else ()
        kernels = {kernel: kernel.read_bytes() for kernel in built}
        path.write_text(self.texts[file].replace(mutant.old, mutant.new), encoding="utf-8")
        try:
            if compiled:
                self.compile()
            code, failed = self.test(tests)
        except RuntimeError as error:
            return "broken", str(error)[-300:]
        finally:
            path.write_text(self.texts[file], encoding="utf-8")
            for kernel, content in kernels.items():
                kernel.write_bytes(content)
        if code is None:
            return "killed", "a test that took too long"
        return {0: "survived", 1: "killed"}.get(code, "broken"), failed if code else ""


def recorded():
    """Return the last result of each change that has one."""
    if not RESULTS.exists():
        return {}
    with open(RESULTS, newline="", encoding="utf-8") as file:
        return {row["digest"]: row for row in csv.DictReader(file)}


def write(rows):
    """Write all results, in the order of the table."""
    order = {mutant.digest: i for i, mutant in enumerate(MUTANTS)}
    rows = sorted((row for row in rows.values() if row["digest"] in order), key=lambda row: order[row["digest"]])
    RESULTS.parent.mkdir(exist_ok=True)
    with open(RESULTS, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def report(rows):
    """Print the rate, and what survives."""
    results = [rows[mutant.digest]["result"] for mutant in MUTANTS if mutant.digest in rows]
    killed = results.count("killed")
    rate = killed / max(len(results), 1)
    print(f"{killed} of {len(results)} changes noticed ({rate:.1%}); {len(MUTANTS)} in the table")
    for mutant in MUTANTS:
        row = rows.get(mutant.digest)
        if row and row["result"] != "killed":
            print(f"{row['result']}: {mutant.name} ({row['file']}): {mutant.why} {row['noticed_by']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PATTERN", help="regular expression of names; these are done again")
    parser.add_argument("--jobs", type=int, default=1, help="copies that work side by side")
    parser.add_argument("--thorough", action="store_true", help="all tests, for what survived its own")
    parser.add_argument("--no-baseline", action="store_true", help="trust that the tests pass without a change")
    parser.add_argument("--again", action="store_true", help="changes that were tried at other commits, too")
    parser.add_argument("--list", action="store_true", help="check that each text is found, and list the results")
    args = parser.parse_args()
    texts, rows = sources(ROOT), recorded()
    places, lost = {}, []
    for mutant in MUTANTS:
        try:
            places[mutant.digest] = place_of(mutant, texts)
        except ValueError as error:
            lost.append(str(error))
    if lost:
        sys.exit("\n".join(lost))
    if len({mutant.digest for mutant in MUTANTS}) < len(MUTANTS):
        sys.exit("two rows of the table make the same change")
    if args.list:
        report(rows)
        return
    if args.only:
        chosen = [mutant for mutant in MUTANTS if re.search(args.only, mutant.name)]
    elif args.thorough:
        chosen = [mutant for mutant in MUTANTS if rows.get(mutant.digest, {}).get("result") == "survived"]
    else:
        tried = {digest for digest, row in rows.items() if not args.again or row["commit"] == commit()}
        chosen = [mutant for mutant in MUTANTS if mutant.digest not in tried]
    waiting, lock = queue.Queue(), threading.Lock()
    for mutant in chosen:
        waiting.put(mutant)

    def work(copy):
        while True:
            try:
                mutant = waiting.get_nowait()
            except queue.Empty:
                return
            began, said = time.time(), stamp([])
            result, noticed = copy.judge(mutant, ["tests"] if args.thorough else tests_of(mutant))
            row = [mutant.name, mutant.digest, places[mutant.digest], result, round(time.time() - began), noticed]
            row = dict(zip(COLUMNS, [*map(str, row), mutant.why, *said.values()], strict=True))
            row["noticed_by"] = " ".join(row["noticed_by"].split())
            with lock:
                rows[mutant.digest] = row
                write(rows)
                print(f"{row['seconds']:>5} s  {result:8} {mutant.name}  {row['noticed_by'][:100]}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        copies = []
        for number in range(max(1, min(args.jobs, len(chosen)))):
            (Path(folder) / str(number)).mkdir()
            copies.append(Copy(Path(folder) / str(number)))
        if chosen and not args.no_baseline:
            tests = ["tests"] if args.thorough else sorted({path for mutant in chosen for path in tests_of(mutant)})
            code, failed = copies[0].test(tests)
            if code:
                sys.exit(f"without a change, the tests must pass; failed: {failed}")
        threads = [threading.Thread(target=work, args=(copy,)) for copy in copies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    report(rows)


if __name__ == "__main__":
    main()
