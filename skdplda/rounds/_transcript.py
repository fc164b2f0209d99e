"""What was asked of a fit and answered, in order: all that its model is made of, and what a checkpoint keeps of it."""

import os
from uuid import uuid4

import numpy as np

from skdplda.rounds import _checkpoint


class Transcript:
    """The answers of a fit; with a path, a file from which an interrupted fit goes on.

    The model is a function of the answers and of public values, so that a resumed strategy is sent the answers again. A
    strategy of many rounds may have a `state`, of `Tables`, in their place, and goes on from that; `keeps` says that
    the answers are kept all the same. The file is written after each answer, read if it is there, and removed at the
    end. It must have the same `identity`: settings and data. It has the hidden state of the documents and the key of
    the noise, too: it is as private as the data.

    `run` is the name of the fit, which a resumed one keeps, and `n_done` the number of answers.
    """

    def __init__(self, path=None, identity="", state=None, keeps=False):
        self._path, self._identity, self._state = path, identity, None if keeps else state
        self._keeps = keeps or (path is not None and state is None)
        self.run, self.n_done = uuid4().hex, 0
        self._first = 0 if state is None else state.n_done  # of a stream
        self.answers, self.kinds, self._multipliers = [], [], []

    @classmethod
    def of(cls, answers, multipliers):
        """Return the transcript of a fit that is over, from its answers."""
        transcript = cls()
        transcript.answers, transcript._multipliers = list(answers), list(multipliers)
        return transcript

    def resume(self, e_step, spending, randomness):
        """Read the file if it is there, and restore what it holds; return the number of the first ask of a strategy."""
        if self.answers:
            self.n_done = len(self.answers)
            return 0
        if self._path is None or not os.path.exists(self._path):
            self.n_done = self._first
            spending.skip(self._first)
            return self._first
        header, arrays = _checkpoint.load(self._path)
        if header["identity"] != self._identity:
            raise ValueError(
                f"checkpoint {os.fspath(self._path)!r} belongs to a fit with other parameters or other data;"
                " delete it or give another path."
            )
        self.n_done, self.run, randomness.root = header["n_done"], header["run"], bytes.fromhex(header["key"])
        self._multipliers = header["multipliers"]
        if len(self._multipliers) != self.n_done:
            raise self._damaged()
        parts = [{name[2:]: a for name, a in arrays.items() if name.startswith(prefix)} for prefix in ("e_", "r_")]
        if self._state is None:
            _checkpoint.restore(self._path, (e_step, parts[0]))
            self.answers = [parts[1].get(str(number)) for number in range(self.n_done)]
            sound = len(parts[1]) == self.n_done and all(answer is not None for answer in self.answers)
        else:
            _checkpoint.restore(self._path, (e_step, parts[0]), (self._state, parts[1]))
            self._state.n_done = self.n_done
            spending.skip(self.n_done)
            sound = spending.multipliers == self._multipliers
        if not sound:
            raise self._damaged()
        return 0 if self._state is None else self.n_done

    def answer(self, number, ask, spending):
        """Return the answer that was given to an ask (None: nothing was asked); ValueError if that cannot be."""
        found = self.answers[number]
        if ask is None or found.shape != ask.query.shape or found.dtype not in (np.int32, np.int64):
            raise self._damaged()
        if self._multipliers[number] != spending.take(ask.share):
            raise self._damaged()
        self.kinds.append(ask.query.kind)
        return found.astype(np.int64)

    def add(self, query, found, e_step, spending, randomness):
        """Take an answer, and write the file."""
        self.n_done += 1
        self.kinds.append(query.kind)
        if self._keeps:
            small = found.size == 0 or max(-int(found.min()), int(found.max())) < 2**31
            self.answers.append(found.astype(np.int32) if small else found)
        if self._path is None:
            return
        if self._state is None:
            state = {f"r_{number}": answer for number, answer in enumerate(self.answers)}
        else:
            state = {f"r_{name}": a for name, a in self._state.arrays().items()}
        header = {"identity": self._identity, "n_done": self.n_done, "run": self.run, "key": randomness.root.hex()}
        header["multipliers"] = spending.multipliers
        _checkpoint.save(self._path, header, {f"e_{name}": a for name, a in e_step.arrays().items()} | state)

    def close(self):
        """Remove the file: the fit is at its end."""
        if self._path is not None:
            _checkpoint.discard(self._path)

    def _damaged(self):
        if self._path is None:
            return ValueError("the transcript has other releases, or noise, than this version makes of its settings.")
        return ValueError(
            f"checkpoint {os.fspath(self._path)!r} has other releases, or noise, than this version makes in the"
            f" {self.n_done} rounds that it says are done: it is damaged, or of another version. It was left as it is:"
            " give another name to start anew."
        )
