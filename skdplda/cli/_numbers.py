"""Numbers of the command line."""

import argparse
import math


def number(kind, what, largest=math.inf, least=None):
    """Return an argparse type: a number from `least`, or else above 0, of at most `largest`."""

    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not (0 < value <= largest or value == least):
            raise argparse.ArgumentTypeError(f"must be {what}; got {text!r}")
        return value

    return parse


whole, seed = number(int, "an integer of at least 1"), number(int, "an integer of at least 0", least=0)
positive = number(float, "a positive number, or inf")
below_one = number(float, "a number above 0, below 1", math.nextafter(1, 0))
