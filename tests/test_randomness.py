"""Where random bits come from: keys, and what seeds leave of a guarantee."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from skdplda import (
    HDPLDA,
    PCTD,
    VIPSLDA,
    DPCountVectorizer,
    LocalPrivateLDA,
    PrivacyLeakWarning,
    PrivateCGSLDA,
)
from skdplda.local import LocalRandomizer
from skdplda.model_selection import PrivateSearchCV
from skdplda.privacy import Randomness


def test_every_purpose_and_round_has_a_key_of_its_own():
    keys = []
    users = [Randomness(0), Randomness(1), Randomness(1, "another"), Randomness(None), Randomness(b"sixteen bytes...")]
    for randomness in users:
        keys += [randomness.key, randomness.table_key, randomness.generator_seed(), randomness.draw_key().tobytes()]
        keys += [randomness.noise(round_) for round_ in range(500)]
        keys += [randomness.noise(0, 1.0), randomness.noise(0, "1"), randomness.noise(0, np.zeros(2)), randomness.root]
        keys += [randomness.noise(0, np.zeros(2, int)), randomness.noise(0, np.zeros((1, 2)))]
        keys += [randomness.sample(round_, 256, 0.5).tobytes() for round_ in range(500)]
    assert len(set(keys)) == len(keys) == len(users) * 1010


@pytest.mark.parametrize("value", [0.25, 3.0, 2.0**60, 0.0, -1.5, 5e-324])
def test_noise_depends_on_the_value_of_a_number_and_not_on_its_type(value):
    """The digest took `repr`: a scale as numpy's float64 had other noise than the same scale as a float."""
    randomness = Randomness(2**200)
    same = [value, np.float64(value), np.longdouble(value), np.float64(value) + 0.0]
    if value == int(value):
        same += [int(value), np.int64(int(value)), np.float32(value)]
    if value == 0:
        same += [-0.0, np.float64(-0.0), np.uint8(0)]
    assert len({randomness.noise(1, "gaussian", one, np.arange(3)) for one in same}) == 1
    other = [np.nextafter(value, 9e99), -value or 1, str(value), str(value).encode(), np.array(value)]
    assert len({randomness.noise(1, one) for one in [value, *other]}) == 6


@pytest.mark.parametrize("value", [True, np.True_, float("nan"), float("inf"), None, (1.0,), object()])
def test_noise_depends_on_numbers_strings_and_arrays_only(value):
    with pytest.raises(TypeError, match="noise may depend on finite numbers"):
        Randomness(0).noise(0, value)


def test_a_generator_gives_each_step_other_noise():
    shared = np.random.RandomState(0)
    first, second = Randomness(shared), Randomness(shared)
    assert first.root != second.root
    copies = [Randomness(np.random.RandomState(0), user) for user in ("DPCountVectorizer", "PrivateCGSLDA")]
    assert len({copy.noise(0) for copy in copies}) == 2


def test_the_public_table_tells_nothing_of_the_hidden_key():
    """They were one number of 64 bits: who found it from the table had the hidden streams."""
    randomness = Randomness(None)
    assert randomness.table_key != randomness.key
    assert randomness.table_key.bit_length() > 192


@pytest.mark.parametrize(
    ("seed", "status"),
    [
        (0, "claimed"),
        (2**128 - 1, "claimed"),
        (np.random.RandomState(0), "claimed"),
        (2**128, "proven"),
        (bytes(16), "proven"),
        (None, "proven"),
    ],
)
def test_a_seed_that_can_be_guessed_proves_nothing(seed, status):
    search = PrivateSearchCV(PrivateCGSLDA(2), {})
    for estimator in (PrivateCGSLDA(2), VIPSLDA(2), PCTD(2), HDPLDA(2), DPCountVectorizer(), search):
        cost = estimator.set_params(random_state=seed).privacy_cost()
        assert cost.status == status
        assert ("can be guessed" in cost.reason) == (status == "claimed")
        assert any("seed (random_state) is secret" in line for line in cost.assumptions) == (seed is not None)
    for local in (LocalRandomizer(random_state=seed), LocalPrivateLDA(2, random_state=seed)):
        assert local.privacy_cost(n_words=9).status == status
    assert LocalPrivateLDA(2, input="reports", random_state=seed).privacy_cost(n_words=9).status == "proven"
    assert PrivateCGSLDA(2, epsilon=np.inf, random_state=seed).privacy_cost().status == "proven"


def test_a_seed_of_too_few_bytes_is_refused_and_not_printed():
    with pytest.raises(ValueError, match=r"random_state must have at least 16 bytes; got 8\.") as raised:
        PrivateCGSLDA(2, random_state=b"password").privacy_cost()
    assert "password" not in str(raised.value)


@pytest.mark.parametrize("seed", [b"a secret of more than 16 bytes", 2**200 + 1])
def test_a_long_seed_repeats_a_fit_and_is_not_printed(seed):
    X = np.random.default_rng(0).poisson(1.0, size=(20, 6))
    with pytest.warns(PrivacyLeakWarning, match="was given a random_state: its noise") as caught:
        fits = [clone(PrivateCGSLDA(2, max_iter=2, random_state=seed)).fit(X) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)
    assert all(str(seed)[2:-1] not in str(warning.message) for warning in caught)


@pytest.mark.parametrize("seed", [None, 11])
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.999])
def test_units_join_independently_at_the_stated_rate(seed, rate):
    n = 100_000
    samples = [Randomness(seed).sample(round_, n, rate) for round_ in range(2)]
    for sample in samples:
        assert sample.dtype == np.uint8
        assert stats.binomtest(int(sample.sum()), n, rate).pvalue > 1e-7
    both = int((samples[0] & samples[1]).sum())
    assert stats.binomtest(both, n, rate**2).pvalue > 1e-7


def test_every_purpose_and_round_has_random_bits_of_its_own():
    seeds, samples = [], []
    for seed in (0, 1, 2**31 - 1):
        randomness = Randomness(seed)
        seeds += [randomness.key, *(randomness.noise(round_) for round_ in range(500))]
        samples += [randomness.sample(round_, 200, 0.5).tobytes() for round_ in range(500)]
        assert randomness.sample(7, 200, 0.5).tobytes() == samples[-493]  # of round 7 of this seed
    assert len(set(seeds)) == len(seeds) == 3 * 501
    assert len(set(samples)) == len(samples) == 3 * 500
    assert Randomness(None).noise(0) != Randomness(None).noise(0)
    assert Randomness(None).key != Randomness(None).key
    assert Randomness(None).sample(0, 200, 0.5).tobytes() != Randomness(None).sample(0, 200, 0.5).tobytes()
