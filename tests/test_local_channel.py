"""The law of a report: its epsilon by enumeration, its kernel against numpy, its draws against the law."""

import itertools
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from internals import gap_tables as _gap_tables
from internals import keystream, moment_estimate, moment_variance
from internals import reports_kernel as kernel
from numpy.testing import assert_array_equal
from scipy import stats

from skdplda import PrivacyLeakWarning
from skdplda.local import BitChannel, LocalRandomizer, bit_epsilon_of_coin, make_report, randomize_bits, read_reports

FOUND_BY_CHANCE = 1e-6
MECHANISMS = ["symmetric", "asymmetric"]


def presence(dense):
    return sp.csr_array(np.asarray(dense, dtype=np.int32))


def unpacked(bits, n_words):
    return np.unpackbits(bits, axis=1, bitorder="little")[:, :n_words]


def law_of_marks(survival, n_words):
    """Exact law of the marks that the table makes: {tuple of marked positions: Fraction}."""
    ends = [Fraction(1), *(Fraction(int(end), 2**64) for end in survival)]
    law = {}

    def go(position, marks, mass):
        if position >= n_words:
            law[marks] = law.get(marks, 0) + mass
            return
        inside = min(len(ends) - 1, n_words - position)
        for g in range(inside):
            go(position + g + 1, (*marks, position + g), mass * (ends[g] - ends[g + 1]))
        go(position + inside, marks, mass * ends[inside])

    go(0, (), Fraction(1))
    assert sum(law.values()) == 1
    return law


def law_of_reports(channel, document):
    """Exact law of the report of a document: {tuple of bits: Fraction}."""
    words = sorted(document)
    most = channel.max_words_per_document or len(words)
    kept = list(itertools.combinations(words, min(most, len(words))))
    law = {}
    for chosen in kept:
        for marks, mass in law_of_marks(_gap_tables(channel.flips)[0], channel.n_words).items():
            mass = mass / len(kept)
            if channel.mechanism == "symmetric":
                report = tuple(int((w in chosen) != (w in marks)) for w in range(channel.n_words))
                law[report] = law.get(report, 0) + mass
                continue
            for coins in itertools.product((0, 1), repeat=len(chosen)):
                bit = dict(zip(chosen, coins, strict=True))
                report = tuple(bit.get(w, int(w in marks)) for w in range(channel.n_words))
                law[report] = law.get(report, 0) + mass / 2 ** len(chosen)
    return law


def worst_loss(first, second):
    """The largest log ratio, to 50 digits."""
    ratio = max(p / second[report] for report, p in first.items())
    with mpmath.workdps(50):
        return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


@pytest.mark.parametrize(("f", "epsilon"), [(0.5, 1.0986), (0.001, 7.6004)])
def test_the_papers_pairs_of_f_and_epsilon(f, epsilon):
    assert round(bit_epsilon_of_coin(f), 4) == epsilon
    assert 2 / (1 + math.exp(bit_epsilon_of_coin(f))) == pytest.approx(f)
    channel = BitChannel(bit_epsilon_of_coin(f), "symmetric", 1000)
    assert channel.one_if_absent == pytest.approx(f / 2, rel=1e-11)
    assert channel.one_if_present == pytest.approx(1 - f / 2, rel=1e-12)


def test_no_noise():
    assert bit_epsilon_of_coin(0) == math.inf
    assert BitChannel(math.inf, "asymmetric", 5).one_if_present == 1


@pytest.mark.parametrize("f", [-0.1, 1, 1.5, math.nan, True])
def test_f_outside_its_range_is_refused(f):
    with pytest.raises(ValueError, match=r"f must be in \[0, 1\)"):
        bit_epsilon_of_coin(f)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bit_epsilon": 0.0}, "epsilon must be > 0"),
        ({"bit_epsilon": 31.0}, "from 1e-06 to 30, or inf"),
        ({"bit_epsilon": 1e-7}, "from 1e-06 to 30"),
        ({"bit_epsilon": 30.0, "n_words": 2**31 - 1}, "too large for 2147483647 words"),
        ({"mechanism": "fair"}, "mechanism must be one of"),
        ({"n_words": 0}, "n_words must be an integer from 1"),
        ({"max_words_per_document": 0}, "max_words_per_document must be an integer from 1"),
        ({"reports_per_user": 1.5}, "reports_per_user must be an integer"),
    ],
)
def test_parameters_out_of_range_are_refused(options, message):
    parameters = {"bit_epsilon": 1.0, "mechanism": "symmetric", "n_words": 5} | options
    with pytest.raises(ValueError, match=message):
        BitChannel(**parameters).one_if_absent  # noqa: B018 - computed on demand


@pytest.mark.parametrize("max_words_per_document", [None, 1, 2])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-5, 0.3, 1.0986, 3.0, 7.6])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_epsilons_hold_for_every_pair_of_documents_of_three_words(mechanism, epsilon, max_words_per_document):
    """Exact: the law comes from the very table that the kernel reads."""
    channel = BitChannel(epsilon, mechanism, 3, max_words_per_document)
    documents = [set(d) for n in range(4) for d in itertools.combinations(range(3), n)]
    laws = [law_of_reports(channel, document) for document in documents]
    losses = {"bit": mpmath.mpf(0), "document": mpmath.mpf(0)}
    for (a, first), (b, second) in itertools.permutations(zip(documents, laws, strict=True), 2):
        loss = worst_loss(first, second)
        losses["document"] = max(losses["document"], loss)
        if len(a ^ b) == 1:
            losses["bit"] = max(losses["bit"], loss)
    for unit, loss in losses.items():
        stated = channel.guarantee(unit).epsilon
        assert loss <= stated
        assert loss >= stated * (1 - 1e-9)  # the bound is tight
    if max_words_per_document is None:
        assert channel.guarantee("bit").epsilon == epsilon


def test_a_word_that_pushes_another_out_costs_more_than_its_bit():
    """Truncation is not free for the unit of one word: a document longer than the bound changes in two bits."""
    laws = [law_of_reports(BitChannel(1.0, "symmetric", 3, max_words_per_document=2), d) for d in ({0, 1}, {0, 1, 2})]
    loss = max(worst_loss(*laws), worst_loss(*laws[::-1]))
    assert float(loss) == pytest.approx(math.log((1 + 2 * math.exp(2)) / 3))


def test_a_published_claim_for_the_document_is_exceeded():
    """Seed of the correction: randomized response of a bit does not hide a document at the bit's epsilon."""
    channel = BitChannel(1.0, "symmetric", 3)
    loss = worst_loss(law_of_reports(channel, {0, 1, 2}), law_of_reports(channel, set()))
    assert float(loss) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("options", "epsilon"),
    [
        ({}, 1000 * 1.5),
        ({"max_words_per_document": 10}, 2 * 10 * 1.5),
        ({"max_words_per_document": 700}, 1000 * 1.5),
        ({"max_words_per_document": 10, "reports_per_user": 3}, 3 * 2 * 10 * 1.5),
        ({"mechanism": "asymmetric", "max_words_per_document": 10}, 10 * (1.5 + math.log(2 - math.exp(-1.5)))),
    ],
)
def test_the_loss_of_a_document(options, epsilon):
    channel = BitChannel(**({"bit_epsilon": 1.5, "mechanism": "symmetric", "n_words": 1000} | options))
    guarantee = channel.guarantee()
    assert guarantee.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert (guarantee.unit, guarantee.adjacency, guarantee.trust) == ("document", "replace", "local")
    assert guarantee.event is not None and guarantee.status == "proven"
    assert channel.guarantee("user").epsilon == guarantee.epsilon
    if channel.max_words_per_document is None:
        assert channel.guarantee("bit").epsilon == 1.5 * channel.reports_per_user
    else:
        assert 1.5 < channel.guarantee("bit").epsilon / channel.reports_per_user < 3.0
    with pytest.raises(ValueError, match="unit must be one of"):
        channel.guarantee("token")


def test_what_is_printed_is_never_too_small():
    channel = BitChannel(0.1, "symmetric", 1000, max_words_per_document=3, reports_per_user=7)
    assert Fraction(channel.guarantee().epsilon) >= 7 * 6 * Fraction(0.1)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.9444, 12.0])
def test_the_table_of_gaps(epsilon):
    flips = BitChannel(epsilon, "symmetric", 100).flips
    survival, guide = _gap_tables(flips)
    stay = Fraction(2**64 - flips, 2**64)
    assert len(survival) == 4096 or stay ** (len(survival) + 1) < Fraction(1, 64)
    for g in {0, 1, len(survival) // 2, len(survival) - 1} & set(range(len(survival))):
        assert int(survival[g]) == int(stay ** (g + 1) * 2**64)
    assert int(survival[-1]) >= 2**58
    last = (np.arange(4096, dtype=object) << 52) + 2**52 - 1
    for slot in (0, 1, 1000, 3000, 4095):
        assert guide[slot] == sum(int(end) > int(last[slot]) for end in survival)


def words_of(key, block, count):
    """The 64-bit words of a block's stream, in the kernel's order."""
    lanes = keystream(key, 3, block, 0).T.ravel().astype(np.uint64)
    return [int(lanes[2 * i]) | int(lanes[2 * i + 1]) << 32 for i in range(count)]


@pytest.mark.parametrize("epsilon", [0.4, 2.0])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_kernel_against_plain_python(mechanism, epsilon):
    channel = BitChannel(epsilon, mechanism, 11)
    survival, guide = _gap_tables(channel.flips)
    present = np.array([0, 3, 4, 10], dtype=np.int32)
    for seed in range(30):
        key = np.random.default_rng(seed).integers(2**32, size=8, dtype=np.uint32)
        indptr = np.array([0, 4], dtype=np.int64)
        found = kernel.randomize(indptr, present, 11, key, survival, guide, mechanism == "asymmetric", 0, 1)
        stream, marks, position = iter(words_of(key, 0, 32)), np.zeros(11, bool), 0
        while True:
            word = next(stream)
            g = int(np.sum(survival > np.uint64(word)))
            position += g
            if position >= 11:
                break
            if g < len(survival):
                marks[position] = True
                position += 1
        inside = np.isin(np.arange(11), present)
        if mechanism == "symmetric":
            expected = inside ^ marks
        else:
            coins = next(stream)
            expected = marks & ~inside
            expected[present] = [coins >> i & 1 for i in range(len(present))]
        assert_array_equal(found, np.packbits(expected[None], axis=1, bitorder="little"))


def test_positions_are_those_of_unpackbits():
    bits = np.random.default_rng(0).integers(256, size=(50, 7)).astype(np.uint8)
    indptr, indices = kernel.positions(bits)
    expected = sp.csr_array(unpacked(bits, 56))
    assert_array_equal(indptr, expected.indptr)
    assert_array_equal(indices, expected.indices)


@pytest.mark.parametrize("max_words_per_document", [None, 1])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_draws_follow_the_exact_law(mechanism, max_words_per_document):
    channel, n = BitChannel(1.2, mechanism, 3, max_words_per_document), 100_000
    law = law_of_reports(channel, {0, 2})
    bits = unpacked(randomize_bits(presence(np.tile([1, 0, 1], (n, 1))), channel, random_state=1), 3)
    seen = np.bincount(bits @ [4, 2, 1], minlength=8)
    expected = np.array([float(law[report]) for report in itertools.product((0, 1), repeat=3)]) * n
    assert stats.chisquare(seen, expected).pvalue > FOUND_BY_CHANCE


def test_bits_are_independent_of_their_place():
    """Each of 1,000 positions, and pairs of neighbours, across documents of several blocks."""
    channel, n = BitChannel(2.0, "symmetric", 1000), 5000
    marks = unpacked(randomize_bits(presence(np.zeros((n, 1000))), channel, random_state=2), 1000)
    q = channel.one_if_absent
    for found, probability in ((marks.sum(axis=0), q), ((marks[:, 1:] & marks[:, :-1]).sum(axis=0), q * q)):
        z = (found - n * probability) / math.sqrt(n * probability * (1 - probability))
        assert abs(z).max() < 6.5  # 1,000 binomials: below 1e-6 together


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_threads_do_not_change_a_report(mechanism):
    X = presence(np.random.default_rng(0).random((500, 90)) < 0.2)
    channel = BitChannel(1.0, mechanism, 90, max_words_per_document=5)
    reports = [randomize_bits(X, channel, 7, n_threads) for n_threads in (1, 2, 4)]
    assert_array_equal(reports[0], reports[1])
    assert_array_equal(reports[0], reports[2])


def test_fresh_entropy_each_time():
    X, channel = presence(np.ones((20, 200))), BitChannel(1.0, "symmetric", 200)
    assert (randomize_bits(X, channel) != randomize_bits(X, channel)).any()


def test_a_bound_on_words_keeps_a_random_part():
    X = presence(np.ones((3000, 12)))
    found = unpacked(randomize_bits(X, BitChannel(math.inf, "symmetric", 12, max_words_per_document=4), 0), 12)
    assert (found.sum(axis=1) == 4).all()
    share = stats.chisquare(found.sum(axis=0)).pvalue  # without replacement: narrower than multinomial
    assert share > FOUND_BY_CHANCE


def test_stored_zeros_are_absent_and_the_input_is_left_alone():
    X = sp.csr_array((np.array([2, 0], np.int32), np.array([0, 1], np.int32), np.array([0, 2])), shape=(1, 3))
    assert unpacked(randomize_bits(X, BitChannel(math.inf, "symmetric", 3)), 3).tolist() == [[1, 0, 0]]
    assert X.nnz == 2


def test_another_number_of_words_is_refused():
    with pytest.raises(ValueError, match="must have the channel's 4 words; got 3"):
        randomize_bits(presence(np.ones((2, 3))), BitChannel(1.0, "symmetric", 4))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_moment_estimate_and_its_variance(mechanism):
    """4,000 words of equal counts are 4,000 draws. The variance is eq. 10 of the conference paper; eq. 9 of the
    journal adds the spread of a binomial that is not random here, and is rejected."""
    f, n, true, words = 0.3, 2000, 600, 4000
    channel = BitChannel(bit_epsilon_of_coin(f), mechanism, words)
    X = np.zeros((n, words), np.int32)
    X[:true] = 1
    ones = unpacked(randomize_bits(presence(X), channel, random_state=3), words).sum(axis=0)
    found = moment_estimate(ones, n, channel, clip=False)
    variance = float(moment_variance(true, n, channel))
    if mechanism == "symmetric":
        assert found == pytest.approx((2 * ones - f * n) / (2 * (1 - f)))
        assert variance == pytest.approx((2 - f) * f * n / (4 * (1 - f) ** 2))
    assert abs(found.mean() - true) < 4.9 * math.sqrt(variance / words)
    low, high = stats.chi2.ppf([FOUND_BY_CHANCE / 2, 1 - FOUND_BY_CHANCE / 2], words - 1) / (words - 1)
    ratio = found.var(ddof=1) / variance
    assert low < ratio < high
    assert found.var(ddof=1) / (variance + (n - true) * true / n) < low


def test_a_seeded_randomizer_warns_each_time():
    randomizer = LocalRandomizer(random_state=0).fit(np.eye(3))
    for _ in range(2):
        with pytest.warns(PrivacyLeakWarning, match="undoes the noise"):
            randomizer.transform(np.eye(3))


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@pytest.mark.parametrize("of_texts", [False, True])
def test_with_a_seed_no_two_calls_share_their_flips(of_texts):
    """The difference of two reports was the difference of the documents, without noise."""
    words = [f"w{i}" for i in range(400)]

    def calls(randomizer, rows):
        if of_texts:
            made = [make_report([words[i] for i in np.flatnonzero(row)], words, randomizer) for row in rows]
            return np.array([read_reports([one], words, randomizer).data.toarray()[0] for one in made])
        randomizer.fit(rows)
        return np.array([randomizer.transform(row[None]).toarray()[0] for row in rows])

    rows = (np.random.default_rng(0).random((4, 400)) < 0.1).astype(int)
    rows[3] = rows[0]  # nor do equal documents: their reports would tell that they are
    settings = {"bit_epsilon": 0.5, "random_state": bytes(32)}
    reports = calls(LocalRandomizer(**settings), rows)
    flips = reports ^ rows
    same = [(a == b).mean() for a, b in itertools.combinations(flips, 2)]
    assert max(same) < 0.65  # 0.53 by chance, with deviation 0.025
    assert_array_equal(calls(LocalRandomizer(**settings), rows), reports)
    copies = [pickle.loads(pickle.dumps(LocalRandomizer(**settings))) for _ in range(2)]
    first, second = (calls(one, rows[k : k + 1]) ^ rows[k] for k, one in enumerate(copies))
    assert (first == second).mean() < 0.65


def test_the_transformer_gives_presence_bits():
    X = np.random.default_rng(0).poisson(0.5, (40, 30))
    exact = LocalRandomizer(math.inf).fit_transform(X)
    assert_array_equal(exact.toarray(), X > 0)
    assert exact.dtype == np.int32
    noisy = LocalRandomizer(0.5).fit_transform(X)
    assert set(np.unique(noisy.toarray())) == {0, 1}
    with pytest.raises(ValueError, match="0 sample"):
        LocalRandomizer().fit(X).transform(X[:0])


@pytest.mark.parametrize("mechanism", ["symmetric", "asymmetric"])
def test_bits_of_a_long_document_are_independent(mechanism):
    """Correlations of 150 present and 50 absent words over 20,000 reports; fixed seed, seven standard errors."""
    channel = BitChannel(0.5, mechanism, n_words=200)
    X = sp.csr_array(np.tile((np.arange(200) < 150).astype(np.int32), (20_000, 1)))
    bits = np.unpackbits(randomize_bits(X, channel, 5), axis=1, bitorder="little")[:, :200].astype(float)
    correlation = np.corrcoef(bits.T) - np.eye(200)
    assert np.abs(correlation).max() < 7 / math.sqrt(20_000)
