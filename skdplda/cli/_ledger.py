"""The command `ledger`, which begins and shows a ledger in a file, and the options by which others charge one."""

import json
import math
import os
from contextlib import contextmanager
from decimal import ROUND_FLOOR, Context

from skdplda.cli._numbers import number, positive
from skdplda.privacy import PrivacyAccountant, PrivacyUnit, round_up

MOST_FITS = 10_000  # a ledger of more takes minutes to read


def add_ledger(command):
    """Add the arguments of `ledger`."""
    command.add_argument("ledger", metavar="FILE", help="the ledger")
    new = command.add_argument_group("a new ledger")
    new.add_argument("--epsilon", type=positive, metavar="E", help="total budget; begins a ledger if there is none")
    new.add_argument(
        "--delta",
        type=number(float, "0, or a number below 1", math.nextafter(1, 0), 0),
        metavar="D",
        help="total delta (default: 0)",
    )
    units = [str(unit) for unit in PrivacyUnit]
    new.add_argument("--unit", choices=units, help="what is protected (default: document); user for fits with --users")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_ledger)


def add_charge(command):
    """Add the ledger that is charged."""
    books = command.add_argument_group("ledger")
    books.add_argument("--ledger", metavar="FILE", help="charge this ledger; 'skdplda ledger' begins and shows one")
    books.add_argument("--label", metavar="TEXT", help="name of what is spent, for readers of the ledger")


@contextmanager
def charging(args, *costs, times=1):
    """Charge the ledger of --ledger in a block, if it can pay all costs so many times together: else nothing is spent.

    Nothing is read then, either.
    """
    if args.ledger is None:
        if args.label is not None:
            raise ValueError("--label names what is spent in a ledger, and needs --ledger FILE.")
        yield
        return
    if not os.path.exists(args.ledger):
        raise ValueError(
            f"--ledger: there is no file {args.ledger!r}; begin one by 'skdplda ledger FILE --epsilon E --delta D'."
        )
    ledger = PrivacyAccountant.open(args.ledger)
    if costs and times:
        if times > MOST_FITS:
            raise ValueError(f"--ledger: at most {MOST_FITS:,} fits may be charged together; got {times:,}.")
        ledger.check(*costs * times)
    with ledger if args.label is None else ledger.labelled(args.label):
        yield


def _ledger(args):
    if args.epsilon is None and not os.path.exists(args.ledger):
        raise ValueError(f"FILE: there is no ledger {args.ledger!r}; give --epsilon, and --delta, to begin one.")
    ledger = PrivacyAccountant.open(args.ledger, args.epsilon, args.delta, unit=args.unit)
    frame, total, remaining = ledger.to_frame(), ledger.total, ledger.remaining_epsilon
    if args.json:
        rows = frame.assign(date=[entry.date for entry in ledger.ledger]).astype(object).to_dict(orient="records")
        for row, entry in zip(rows, ledger.ledger, strict=True):  # numbers as they are: pandas would round them
            row |= {name: _plain(value) for name, value in row.items()}
            row["privacy"] = json.loads(entry.guarantee.to_json())
        terms = {"epsilon": ledger.epsilon, "delta": ledger.delta, "unit": ledger.unit, "remaining_epsilon": remaining}
        terms |= {} if ledger.max_parts is None else {"max_parts": ledger.max_parts, "asserted": ledger.assertion}
        terms = {name: _plain(value) for name, value in terms.items()}
        terms["total"] = None if total is None else json.loads(total.to_json())
        print(json.dumps({**terms, "spent": rows}, indent=2))
        return
    print(
        f"Budget: epsilon = {round_up(ledger.epsilon)}, delta = {round_up(ledger.delta)} per {ledger.unit},"
        f" {ledger.adjacency},"
        f" {ledger.trust}"
    )
    if not len(frame):
        print("Nothing was spent.")
        return
    print(f"\n{'date (UTC)':<19}  {'epsilon':>9}  {'delta':>9}  {'together':>9}  what")
    for entry, epsilon in zip(ledger.ledger, frame["total_epsilon"], strict=True):
        date = "" if entry.date is None else entry.date[:19].replace("T", " ")
        own = entry.label if entry.fitted is None or entry.label != entry.run else None
        part = None if entry.part in (None, own) else f"part {entry.part}"
        what = " ".join(": ".join(filter(None, [part, own, entry.fitted])).split())
        guarantee = entry.guarantee
        print(
            f"{date:<19}  {round_up(guarantee.epsilon):>9}  {round_up(guarantee.delta):>9}  {round_up(epsilon):>9}"
            f"  {what}".rstrip()
        )
    if ledger.max_parts is not None:
        print(f"\nAsserted: {ledger.assertion}.")
    print(
        "\n'together' is what a spend and those before it take of the budget's epsilon, at its delta, however"
        f"\nthey were chosen. If costs were fixed in advance: epsilon = {round_up(total.epsilon)}, delta ="
        f" {round_up(total.delta)}.\nRemaining: epsilon = {_down(remaining)} for noise without a delta; more for noise"
        " of the kind that the ledger adds up."
    )


def _plain(value):
    """Return what JSON has for a value, which has no infinity."""
    return "inf" if value == math.inf else value


def _down(value):
    """Write a number in four digits, never larger than it is."""
    return f"{float(Context(prec=4, rounding=ROUND_FLOOR).create_decimal(repr(value))):g}"
