"""The text of a privacy statement that a person can publish."""

import math
import textwrap
from decimal import ROUND_CEILING, Context, Decimal
from html import escape

__all__ = ["round_up", "statement", "statement_html", "statement_rows"]

TITLE = "Differential privacy statement"
SHOWN = 3  # rows that a notebook shows unfolded

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
TRUST = {
    "central": "a curator sees the raw text; what leaves the curator is protected",
    "local": "only randomized reports leave the author of a document; no one else sees raw text",
}
MEANINGLESS = ("Status", "Neighbours", "Trust")  # where nothing is protected


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


def _numbers(guarantee):
    numbers = f"epsilon = {round_up(guarantee.epsilon)}, delta = {round_up(guarantee.delta)} (rounded up)"
    return numbers if _protects(guarantee) else f"No privacy protection: {numbers}"


def _protects(guarantee):
    return guarantee.epsilon < math.inf and guarantee.delta < 1


def _status(guarantee):
    reason = guarantee.reason or "no reason is recorded"
    return {
        "proven": "proven: a stated theorem covers exactly the released values",
        "claimed": f"CLAIMED by the publication, does not hold or is not proven: {reason}",
        "diagnostic": f"DIAGNOSTIC: a measurement on this data, not a guarantee: {reason}",
    }[guarantee.status]


def _listed(items):
    return "; ".join(items) if items else "nothing stated"


def statement_rows(guarantee):
    """Return the paragraphs of a statement by their labels."""
    unit, adjacency, trust = guarantee.unit, guarantee.adjacency, guarantee.trust
    presence = "presence and " if adjacency == "add-remove" else ""
    rows = {
        "Guarantee": _numbers(guarantee),
        "Status": _status(guarantee),
        "Protected": f"{PROTECTED[unit].format(presence=presence)} (unit: {unit})",
        "Neighbours": f"{NEIGHBOURS[adjacency].format(unit=unit)} (adjacency: {adjacency})",
        "Trust": f"{trust}: {TRUST[trust]}",
        "Mechanism": guarantee.mechanism or "not stated",
        "Released": _listed(guarantee.released),
        "Not covered": _listed(guarantee.not_covered),
        "Assumptions": _listed(guarantee.assumptions),
        "Reference": guarantee.reference or "not stated",
    }
    if not _protects(guarantee):
        rows = {name: text for name, text in rows.items() if name not in MEANINGLESS} | {"Protected": "nothing"}
    return rows


def statement(guarantee):
    """Write a guarantee as a privacy statement: one labelled paragraph a field; epsilon and delta are rounded up."""
    lines = [TITLE]
    for label, text in statement_rows(guarantee).items():
        first = f"  {label + ':':<{LABEL}}"
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
        f'<td style="text-align:left;white-space:normal">{escape(text)}</td></tr>'
        for label, text in statement_rows(guarantee).items()
    ]
    shown, folded = "".join(rows[:SHOWN]), "".join(rows[SHOWN:])
    return (
        f"<div><strong>{TITLE}</strong><table>{shown}</table>"
        "<details><summary>What it rests on, and what it does not cover</summary>"
        f"<table>{folded}</table></details></div>"
    )
