"""A ledger in a file: shared by processes, never half written, refused when damaged."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import in_a_child
from internals import MARK, LedgerFile, pack

from skdplda.exceptions import BudgetExceededError
from skdplda.privacy import BudgetCharge, PrivacyAccountant, PrivacyGuarantee, pure_event

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # no thread holds a lock here


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

    pwrite = os.pwrite
    for part in (lambda *arguments: 7, full):  # bytes that still fit, then none
        written = []

        def fill(file, content, place, part=part, written=written):
            if written:
                full()
            written.append(pwrite(file, content[: part()], place))
            return written[0]

        monkeypatch.setattr(os, "pwrite", fill)
        with pytest.raises(OSError, match="No space left"):
            accountant.spend(proven(0.5))
        monkeypatch.undo()
        assert accountant.ledger == ()
        assert path.read_bytes() == before


SPEND = """
import os, sys
from skdplda.exceptions import BudgetExceededError
from skdplda.privacy import PrivacyAccountant, PrivacyGuarantee, pure_event
child = os.fork()  # two processes, which have imported all
accountant = PrivacyAccountant.open(sys.argv[1])
for _ in range(20):
    try:
        accountant.spend(PrivacyGuarantee(epsilon=1 / 32, status="proven", event=pure_event(1 / 32)))
    except BudgetExceededError:
        pass
assert not child or os.waitpid(child, 0)[1] == 0
"""


def test_processes_never_overspend_and_lose_no_spend(path):
    accountant = PrivacyAccountant.open(path, epsilon=1.0)
    subprocess.run([sys.executable, "-c", SPEND, str(path)], check=True, timeout=120)
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


def content(n):
    """Return what a ledger file holds after n spends."""
    accountant = PrivacyAccountant(100.0)
    for _ in range(n):
        accountant.spend(proven(0.5))
    return pack(accountant.to_json())


def plain_file(path):
    """Return a file that is no ledger's, and what was read of it."""
    seen = []
    return LedgerFile(str(path), lambda: content(0), seen.append), seen


def test_a_file_that_was_replaced_while_its_lock_was_awaited_is_opened_again(path):
    """Else two processes would hold two locks of one name, and one would write into a file without a name."""
    (lock, _), (waiting, seen) = plain_file(path), plain_file(path)
    other, taken = path.with_name("other"), threading.Event()
    other.write_bytes(content(2))

    def wait():
        with waiting:
            taken.set()
            waiting.write(content(3))

    with ThreadPoolExecutor(1) as pool:
        with lock:
            waiter = pool.submit(wait)
            assert not taken.wait(0.3)
            os.replace(other, path)
        waiter.result(timeout=60)
    assert len(seen) == 1
    assert len(PrivacyAccountant.open(path).ledger) == 3


def test_a_lock_that_cannot_be_opened_again_closes_its_file_once(path, monkeypatch):
    """Closed twice, the descriptor would be somebody else's by then."""
    path.write_bytes(content(0))
    lock, _ = plain_file(path)
    closed, opened, close, open_ = [], [], os.close, os.open

    def open_once(*arguments):
        if opened:
            raise PermissionError(13, "Permission denied")
        opened.append(open_(*arguments))
        return opened[0]

    monkeypatch.setattr(os, "open", open_once)
    monkeypatch.setattr(os, "close", lambda file: (closed.append(file), close(file)))
    monkeypatch.setattr(LedgerFile, "_is_in_place", lambda self: False)
    with pytest.raises(PermissionError), lock:
        raise AssertionError("the lock was not taken")
    assert closed == opened and len(opened) == 1
    monkeypatch.undo()
    with lock:  # and the lock can be taken
        pass


def test_hard_links_stay_one_ledger(path):
    first = PrivacyAccountant.open(path, epsilon=1.0)
    link = path.with_name("link.json")
    os.link(path, link)
    second = PrivacyAccountant.open(link)
    first.spend(proven(0.5))
    second.spend(proven(0.25))
    with pytest.raises(BudgetExceededError):
        first.spend(proven(0.5))
    assert len(first.ledger) == len(second.ledger) == 2
    assert os.path.samefile(path, link)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give a file to another user")
def test_who_writes_a_ledger_changes_neither_its_owner_nor_its_mode():
    """So that two people can share it: by a group, in a folder in which neither may make files."""
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o711)
        _share(folder / "ledger.json")
    finally:
        shutil.rmtree(folder)


def _share(path):
    PrivacyAccountant.open(path, epsilon=1.0)
    os.chown(path, 12345, 54321)
    path.chmod(0o660)
    guarantee = proven(0.25)

    def work(user):
        os.setgroups([])
        os.setgid(54321)
        os.setuid(user)
        PrivacyAccountant.open(path).spend(guarantee)

    for user in (12345, 23456):
        assert in_a_child(lambda user=user: work(user)) == "None"
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12345, 54321, 0o660)
    assert len(PrivacyAccountant.open(path).ledger) == 2
    path.chmod(0o640)
    assert "cannot be written by this user. Nothing was spent" in in_a_child(lambda: work(23456))
    assert len(PrivacyAccountant.open(path).ledger) == 2


class Killed(BaseException):
    """The process ends here, without another instruction of its own."""


@pytest.mark.parametrize("shrinks", [False, True])
def test_a_kill_at_any_point_of_a_write_leaves_a_whole_ledger(path, monkeypatch, shrinks):
    """Every system call, and every byte of every write, may be the last."""
    old, new = (content(2), content(1)) if shrinks else (content(1), content(2))
    calls = ["pwrite", "fsync", "ftruncate"]
    real = {name: getattr(os, name) for name in calls}
    states, stop = set(), 0
    done = False
    while not done:
        path.write_bytes(old)
        file, _ = plain_file(path)
        left = [stop]

        def killed(name, *arguments, left=left):
            if left[0] < 0:
                raise Killed
            if name == "pwrite":
                place, data = arguments[2], arguments[1]
                part = min(len(data), left[0])
                real[name](arguments[0], data[:part], place)
                left[0] -= max(part, 1)
                if part < len(data):
                    left[0] = -1
                    raise Killed
                return part
            left[0] -= 1
            return real[name](*arguments)

        with monkeypatch.context() as patch:
            for name in calls:
                patch.setattr(os, name, lambda *arguments, name=name, killed=killed: killed(name, *arguments))
            try:
                with file:
                    file.write(new)
                done = True
            except Killed:
                pass
        after, seen = plain_file(path)
        with after:
            found = seen[0]
        assert found in (old, new)
        if done:
            assert found == new
        states.add(found == new)
        assert path.read_bytes() == found  # and it is in its place
        stop += 1 if stop < 3 else 101
    assert states == {False, True}


def test_what_a_loss_of_power_leaves_behind_is_cut_off(path):
    whole = content(2)
    for rest in (b"\0" * 500, MARK[:2], b"   " + MARK + content(3)[:700], b" " * 9 + MARK + b"\0" * 99):
        path.write_bytes(whole + rest)
        assert len(PrivacyAccountant.open(path).ledger) == 2
        assert path.read_bytes() == whole


def test_killed_processes_lose_no_acknowledged_spend_and_leave_nothing(path):
    acknowledged = 0
    for milliseconds in (0, 5, 20, 50):
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            try:
                accountant = PrivacyAccountant.open(path, epsilon=1000.0)
                os.write(write, b"!")
                while True:
                    accountant.spend(proven(1 / 32))
                    os.write(write, b".")
            finally:
                os._exit(1)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            assert pipe.read(1) == b"!"
            time.sleep(milliseconds / 1000)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            acknowledged += len(pipe.read())
        spent = len(PrivacyAccountant.open(path).ledger)
        assert acknowledged <= spent <= acknowledged + 1
        acknowledged = spent
    assert os.listdir(path.parent) == [path.name]


def test_litter_of_killed_processes_is_removed(path):
    litter = path.with_name(f".{path.name}.{'0' * 32}.partial")
    others = [path.with_name(".other.json.00.partial"), path.with_name("other.json.lock")]
    for file in (litter, *others):
        file.touch()
    PrivacyAccountant.open(path, epsilon=1.0)
    assert sorted(path.parent.iterdir()) == sorted([path, *others])


def test_a_ledger_is_begun_once(path):
    """By whoever comes first; the others find it."""
    with ThreadPoolExecutor(8) as pool:
        ledgers = list(pool.map(lambda _: PrivacyAccountant.open(path, epsilon=1.0), range(8)))
    for accountant in ledgers:
        accountant.spend(proven(1 / 8))
    assert {len(accountant.ledger) for accountant in ledgers} == {8}


def test_integers_that_no_float_holds_are_refused_in_a_sentence(path):
    PrivacyAccountant.open(path, epsilon=1.0)
    path.write_text(path.read_text().replace('"epsilon": 1.0', f'"epsilon": 1{"0" * 400}'))
    with pytest.raises(ValueError, match=r"is damaged .*an integer has 401 digits; at most 300 are allowed"):
        PrivacyAccountant.open(path)
    with pytest.raises(ValueError, match=r"epsilon must be > 0 or inf, .*got a number beyond it"):
        PrivacyAccountant(10**400)


@pytest.mark.parametrize("path", ["", ".", "missing/ledger.json"])
def test_a_path_that_is_no_file_is_named(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"in a folder that is there; got {path!r}"):
        PrivacyAccountant.open(path, 1.0)
    assert list(tmp_path.iterdir()) == []
