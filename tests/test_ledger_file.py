"""A ledger in a file: shared by processes, never half written, refused when damaged."""

import json
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from skdplda.exceptions import BudgetExceededError
from skdplda.privacy import BudgetCharge, PrivacyAccountant, PrivacyGuarantee, pure_event
from skdplda.privacy._ledger_file import FileLock


def proven(epsilon, **fields):
    return PrivacyGuarantee(epsilon=epsilon, status="proven", event=pure_event(epsilon), **fields)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.json"


def test_a_ledger_file_is_begun_and_opened_again(path):
    first = PrivacyAccountant.open(path, epsilon=1.0, delta=1e-5, unit="user")
    first.spend(proven(0.25, unit="user"), label="words")
    again = PrivacyAccountant.open(path)
    assert (again.epsilon, again.delta, again.unit, again.remaining_epsilon) == (1.0, 1e-5, "user", 0.75)
    assert again.ledger == first.ledger
    assert again.to_json() == first.to_json()
    again.spend(proven(0.5, unit="user"))
    assert first.remaining_epsilon == 0.25
    with pytest.raises(BudgetExceededError):
        first.spend(proven(0.5, unit="user"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_other_terms_than_those_of_the_file_are_refused(path):
    PrivacyAccountant.open(path, epsilon=1.0)
    PrivacyAccountant.open(path, epsilon=1.0, delta=0.0, unit="document")
    with pytest.raises(ValueError, match=r"epsilon of the ledger '.*' is 1.0; got 2.0"):
        PrivacyAccountant.open(path, epsilon=2.0)
    with pytest.raises(ValueError, match=r"unit of the ledger"):
        PrivacyAccountant.open(path, unit="user")


def test_a_missing_ledger_is_not_begun_by_accident(path):
    with pytest.raises(ValueError, match=r"there is no ledger .*; give epsilon"):
        PrivacyAccountant.open(path)
    accountant = PrivacyAccountant.open(path, epsilon=1.0)
    path.unlink()
    for use in (accountant.check, accountant.spend):
        with pytest.raises(ValueError, match=r"is gone; put it back\. Nothing was spent"):
            use(proven(0.5))
    assert not path.exists()


@pytest.mark.parametrize("damage", ["empty", "cut", "edited", "foreign", "list", "plain"])
def test_a_damaged_ledger_is_refused(path, damage):
    accountant = PrivacyAccountant.open(path, epsilon=1.0)
    accountant.spend(proven(0.75))
    whole = path.read_text()
    path.write_text(
        {
            "empty": "",
            "cut": whole[: len(whole) // 2],
            "edited": whole.replace("0.75", "0.25"),
            "foreign": json.dumps({"format": "skdplda.checkpoint", "version": 1}),
            "list": "[]",
            "plain": PrivacyAccountant(1.0).to_json(),
        }[damage]
    )
    for use in (lambda: PrivacyAccountant.open(path), lambda: accountant.check(proven(0.1))):
        with pytest.raises(ValueError, match=r"is damaged .*restore it from a backup"):
            use()
    path.write_text(whole)
    assert accountant.remaining_epsilon == 0.25


def test_a_full_disk_keeps_the_books_and_spends_nothing(path, monkeypatch):
    accountant = PrivacyAccountant.open(path, epsilon=1.0)
    before = path.read_bytes()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        accountant.spend(proven(0.5))
    monkeypatch.undo()
    assert accountant.ledger == ()
    assert path.read_bytes() == before


SPEND = """
import sys
from skdplda.exceptions import BudgetExceededError
from skdplda.privacy import PrivacyAccountant, PrivacyGuarantee, pure_event
accountant = PrivacyAccountant.open(sys.argv[1])
for _ in range(20):
    try:
        accountant.spend(PrivacyGuarantee(epsilon=1 / 32, status="proven", event=pure_event(1 / 32)))
    except BudgetExceededError:
        pass
"""


def test_processes_never_overspend_and_lose_no_spend(path):
    accountant = PrivacyAccountant.open(path, epsilon=1.0)
    processes = [subprocess.Popen([sys.executable, "-c", SPEND, str(path)]) for _ in range(2)]
    assert [process.wait(120) for process in processes] == [0, 0]
    assert len(accountant.ledger) == 32
    assert accountant.remaining_epsilon == 0.0


def test_threads_with_one_ledger_or_several_never_overspend(path):
    ledgers = [PrivacyAccountant.open(path, epsilon=1.0)] * 2 + [PrivacyAccountant.open(path) for _ in range(2)]

    def spend(accountant):
        for _ in range(10):
            with suppress(BudgetExceededError):
                accountant.spend(proven(1 / 16))

    threads = [threading.Thread(target=spend, args=(accountant,)) for accountant in ledgers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {len(accountant.ledger) for accountant in ledgers} == {16}


def test_a_run_resumed_by_two_processes_is_charged_once(path):
    for _ in range(2):
        with PrivacyAccountant.open(path, epsilon=1.0):
            BudgetCharge(proven(0.75), "fit").charge("run")
    assert len(PrivacyAccountant.open(path).ledger) == 1


def test_a_lock_whose_file_was_deleted_meanwhile_is_taken_again(path):
    """Else two processes would hold two locks of one name."""
    lock, waiting = FileLock(str(path), lambda: None), FileLock(str(path), lambda: None)
    other, taken = path.with_name("other"), threading.Event()
    other.touch()

    def wait():
        with waiting:
            taken.set()
            assert os.path.samestat(os.fstat(waiting._file), os.stat(f"{path}.lock"))

    with ThreadPoolExecutor(1) as pool:
        with lock:
            waiter = pool.submit(wait)
            assert not taken.wait(0.3)
            os.replace(other, f"{path}.lock")
        waiter.result(timeout=60)


def test_a_lock_that_cannot_be_opened_again_closes_its_file_once(path, monkeypatch):
    """Closed twice, the descriptor would be somebody else's by then."""
    lock = FileLock(str(path), lambda: None)
    closed, opened, close, open_ = [], [], os.close, os.open

    def open_once(*arguments):
        if opened:
            raise PermissionError(13, "Permission denied")
        opened.append(open_(*arguments))
        return opened[0]

    monkeypatch.setattr(os, "open", open_once)
    monkeypatch.setattr(os, "close", lambda file: (closed.append(file), close(file)))
    monkeypatch.setattr(FileLock, "_is_in_place", lambda self: False)
    with pytest.raises(PermissionError), lock:
        raise AssertionError("the lock was not taken")
    assert closed == opened and len(opened) == 1
    monkeypatch.undo()
    with lock:  # and the lock can be taken
        pass
