"""The text of a privacy statement that a person can publish."""

import math
import re
import textwrap
from decimal import ROUND_CEILING, Context, Decimal
from html import escape
from itertools import chain

from skdplda._arithmetic import exp, expm1
from skdplda.privacy._accounting import check_of

__all__ = ["check_code", "mechanisms_of", "right_of_100", "round_up", "statement", "statement_html", "statement_rows"]

TITLE = "Differential privacy statement"
SHOWN = 4  # rows that a notebook shows unfolded
LEFT = ": what is left is rounding"
CHECKED = "delta follows from the noise by this program; pip install dp-accounting"

ONE = r"(?<![\w.-])\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w,.]*\d)"  # no version, and no part of a name
NUMBER, RANGES = re.compile(ONE), re.compile(rf"({ONE}) to ({ONE})")
RELEASES = r"releases?(?:, each for itself)?: "
WIDTH, LABEL = 92, 14  # characters of a line and of its label
NEIGHBOURS = {
    "add-remove": "data sets that differ by one {unit} being present or absent are hard to tell apart",
    "replace": "data sets that differ by the content of one {unit}, their number being known, are hard to tell apart",
}
PROTECTED = {
    "document": "the {presence}content of any one document",
    "token": "the word at any one position of a document",
    "user": "all documents of any one user together",
    "bit": "whether any one word of the vocabulary occurs in a report (not the document as a whole)",
}
# What the best attacker tells apart are neighbours. Of a document that is known to be there, two contents are two of
# these steps apart.
ABSENT = {
    "document": "whether any one document is there at all",
    "user": "whether any one user's documents are there at all",
}
TRUST = {
    "central": "a curator sees the raw text; what leaves the curator is protected",
    "local": "only randomized reports leave the author of a document; no one else sees raw text",
}
MEANINGLESS = ("Status", "Attack", "Neighbours", "Trust")  # where nothing is protected
BEYOND = (
    "; {} of this delta is for what noise does not hide, such as a word that one {} alone uses, and for rounding errors"
)
ATTACKER = "whoever knows all else, and would toss a coin over {}"
ATTACK = f"{ATTACKER}, answers right in at most {{}} of 100 cases"
PAIR_ALONE = " (epsilon and delta alone would allow {}; the noise is known to hide more)"


def round_up(value, digits=4):
    """Write a number from 0, or inf, with few significant digits, never smaller than it is.

    A float stands for its shortest decimal form: 0.1 is written "0.1".

    Examples
    --------
    >>> round_up(4.151812), round_up(1e-06), round_up(0.1)
    ('4.152', '1e-6', '0.1')
    """
    if math.isinf(value):
        return "inf"
    number = Decimal(repr(float(value)))
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(number).normalize()
    if rounded == 0:
        return "0"
    if -4 <= rounded.adjusted() < 7:
        return f"{rounded:f}"
    mantissa = rounded.scaleb(-rounded.adjusted())
    return f"{mantissa:f}e{rounded.adjusted()}"


def right_of_100(guarantee):
    """Return how often of 100 the best attacker on one unit is right: by all that is known, and by the pair alone.

    Both neighbours are equally likely before. The best guess is right with probability (1 + TV) / 2, where TV is the
    total variation of the released values' laws. The whole guarantee bounds it by its delta at an epsilon of 0, and the
    pair by (e^epsilon - 1 + 2 delta) / (e^epsilon + 1): Kairouz, Oh and Viswanath (2015), Theorem 2.1. Rounded up.
    Where nothing is proven by an event, the pair is all that is known.
    """
    epsilon, delta = min(guarantee.epsilon, 700.0), guarantee.delta
    pair = min(1.0, (expm1(epsilon) + 2 * delta) / (exp(epsilon) + 1)) if protects(guarantee) else 1.0
    known = guarantee.event is not None and guarantee.status == "proven" and protects(guarantee)
    whole = min(pair, guarantee.delta_at(0.0)) if known else pair
    return tuple(min(100, 50 + math.ceil(50 * variation * (1 + 2.0**-30))) for variation in (whole, pair))


def _attack(guarantee, subject):
    """Say what a proven guarantee leaves to the best attacker."""
    if guarantee.status != "proven":
        return ""
    whole, pair = right_of_100(guarantee)
    if whole == 100:
        return f"nothing is promised against {ATTACKER.format(subject)}: the answer may be right in nearly every case"
    better = PAIR_ALONE.format(pair) if whole < pair else ""
    return f"{ATTACK.format(subject, whole)}{better}"


def check_code(guarantee):
    """Return the lines of Python by which a reader computes delta anew, with dp-accounting alone; "" without an event.

    Its class of accountant has the parts of the event; what the event leaves out is added.
    """
    if guarantee.event is None or not protects(guarantee):
        return ""
    lines = check_of(guarantee.event)
    if not lines:
        return ""
    beside = f" + {guarantee.event_delta!r}" if guarantee.event_delta else ""
    lines += [
        f"delta = accountant.get_delta({guarantee.epsilon!r}){beside}",
        f'print(f"delta is {{delta:.3g}} and was stated as {guarantee.delta!r}{LEFT * (not guarantee.delta)}")',
    ]
    return "\n".join(
        textwrap.fill(line, WIDTH - 4, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        for line in lines
    )


def _numbers(guarantee):
    numbers = f"epsilon = {round_up(guarantee.epsilon)}, delta = {round_up(guarantee.delta)}"
    if not protects(guarantee):
        return f"No privacy protection: {numbers}"
    numbers += " (rounded up)"
    if guarantee.event_delta:
        numbers += BEYOND.format(round_up(guarantee.event_delta), guarantee.unit)
    return numbers


def protects(guarantee):
    """Whether there is any promise in the numbers."""
    return guarantee.epsilon < math.inf and guarantee.delta < 1


def _status(guarantee):
    reason = guarantee.reason or "no reason is recorded"
    review = f"reviewed by {guarantee.reviewed}" if guarantee.reviewed else "no review by others is recorded"
    return {
        "proven": f"proven: a stated theorem covers exactly the released values; {review}",
        "claimed": f"CLAIMED by the publication, does not hold or is not proven: {reason}",
        "diagnostic": f"DIAGNOSTIC: a measurement on this data, not a guarantee: {reason}",
    }[guarantee.status]


def _listed(items):
    return "; ".join(items) if items else "nothing stated"


def mechanisms_of(said):
    """Return what several releases did, each kind once: how often, and the numbers in which they differ as a range.

    Examples
    --------
    >>> mechanisms_of(["noise of scale 2 on 5 sums", "noise of scale 4.5 on 5 sums", "none"])
    '2 releases, each for itself: noise of scale 2 to 4.5 on 5 sums; 1 release: none'
    """
    kinds: dict[str, list] = {}
    for number, text in chain.from_iterable(map(_counted, filter(None, said))):
        ends = [RANGES.sub(end, text) for end in (r"\1", r"\2")]
        kind = kinds.setdefault(re.sub(r"\btimes\b", "time", NUMBER.sub("\0", ends[0])), [0, text])
        kind[0] += number
        kind += ends
    if all(number == 1 for number, *_ in kinds.values()):
        return "; ".join(text for _, text, *_ in kinds.values())
    return "; ".join(
        f"1 release: {text}" if number == 1 else f"{number} releases, each for itself: {_alike(ends)}"
        for number, text, *ends in kinds.values()
    )


def _counted(text):
    """Return how often each kind of release was done, and its text, of one text, which this may have made before."""
    parts = re.split(rf"; (?=\d+ {RELEASES})", text)
    found = [re.fullmatch(rf"(?s)(\d+) {RELEASES}(.*)", part) for part in parts]
    return [(int(part[1]), part[2]) for part in found if part] if all(found) else [(1, text)]


def _alike(said):
    """Return one text for several that differ in numbers: each from the least to the greatest."""
    columns = [sorted(set(numbers), key=_size) for numbers in zip(*map(NUMBER.findall, said), strict=True)]
    ranges = iter([least if (least := column[0]) == column[-1] else f"{least} to {column[-1]}" for column in columns])
    return re.sub(r"(?<= to )(\d+) time\b", r"\1 times", NUMBER.sub(lambda _: next(ranges), said[0]))


def _size(number):
    return float(number.replace(",", ""))


def statement_rows(guarantee):
    """Return the paragraphs of a statement by their labels; that of "Check" is a program."""
    unit, adjacency, trust = guarantee.unit, guarantee.adjacency, guarantee.trust
    subject = PROTECTED[unit].format(presence="presence and " if adjacency == "add-remove" else "")
    toss = ABSENT.get(unit, subject) if adjacency == "add-remove" else subject
    rows = {
        "Guarantee": _numbers(guarantee),
        "Status": _status(guarantee),
        "Protected": f"{subject} (unit: {unit})",
        "Attack": _attack(guarantee, toss.partition(" (")[0]),
        "Neighbours": f"{NEIGHBOURS[adjacency].format(unit=unit)} (adjacency: {adjacency})",
        "Trust": f"{trust}: {TRUST[trust]}",
        "Mechanism": guarantee.mechanism or "not stated",
        "Released": _listed(guarantee.released),
        "Not covered": _listed(guarantee.not_covered),
        "Assumptions": _listed(guarantee.assumptions),
        "Reference": guarantee.reference or "not stated",
        "Check": check_code(guarantee),
    }
    if not protects(guarantee):
        rows = {name: text for name, text in rows.items() if name not in MEANINGLESS} | {"Protected": "nothing"}
    return {name: text for name, text in rows.items() if text}


def statement(guarantee):
    """Write a guarantee as a privacy statement: one labelled paragraph a field; epsilon and delta are rounded up."""
    lines = [TITLE]
    for label, text in statement_rows(guarantee).items():
        first = f"  {label + ':':<{LABEL}}"
        if label == "Check":
            lines += [first + CHECKED, "", textwrap.indent(text, "    ")]
            continue
        lines += textwrap.wrap(
            text,
            WIDTH,
            initial_indent=first,
            subsequent_indent=" " * len(first),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def statement_html(guarantee):
    """Write the same statement as a table, for notebooks: the first rows are shown, the others unfold."""
    rows = [
        f'<tr><th style="text-align:left;vertical-align:top">{escape(label)}</th>'
        f'<td style="text-align:left;white-space:{"pre" if label == "Check" else "normal"}">{escape(text)}</td></tr>'
        for label, text in statement_rows(guarantee).items()
    ]
    shown, folded = "".join(rows[:SHOWN]), "".join(rows[SHOWN:])
    return (
        f"<div><strong>{TITLE}</strong><table>{shown}</table>"
        "<details><summary>What it rests on, and what it does not cover</summary>"
        f"<table>{folded}</table></details></div>"
    )
