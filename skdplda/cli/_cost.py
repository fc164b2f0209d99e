"""The command `cost`, and the options that determine what a fit guarantees.

A price needs no estimator, so that the command answers at once: scikit-learn alone takes longer to load.
"""

import json
import math

from skdplda.cli._numbers import below_one, number, positive, whole
from skdplda.privacy import MECHANISMS, pure_mechanisms
from skdplda.rounds import GibbsPrice, VariationalPrice

PRICES = {"cgs": GibbsPrice, "vips": VariationalPrice}


def add_price(command, required=True):
    """Add the options that determine what a fit guarantees."""
    share = number(float, "a number above 0, at most 1", 1)
    privacy = command.add_argument_group("privacy")
    privacy.add_argument(
        "--epsilon", type=positive, required=required, metavar="E", help="privacy loss of the whole fit; inf: no noise"
    )
    privacy.add_argument(
        "--delta",
        metavar="D",
        type=below_one,
        help="probability of a larger loss, well below 1 / (public estimate of the number of documents);"
        " needed for Gaussian noise",
    )
    privacy.add_argument(
        "--rounds",
        type=whole,
        metavar="T",
        help="rounds of topics (default: 2 to 20 with Gaussian noise, as the first releases tell; without noise 50 of"
        " VIPSLDA, 100 of PrivateCGSLDA)",
    )
    privacy.add_argument(
        "--model",
        choices=PRICES,
        help="VIPSLDA, variational inference (default), or PrivateCGSLDA, collapsed Gibbs sampling (default with an"
        " option of cgs below)",
    )
    privacy.add_argument(
        "--mechanism",
        choices=MECHANISMS,
        metavar="M",
        help=f"noise of cgs: {', '.join(MECHANISMS)} (default: gaussian)",
    )
    privacy.add_argument("--sampling-rate", type=share, metavar="Q", help="of documents a round, for cgs (default: 1)")


def lacks_delta(args):
    """Whether a fit needs --delta, which was not given."""
    return args.delta is None and MECHANISMS[args.mechanism or "gaussian"].has_delta and math.isfinite(args.epsilon)


def chosen(args):
    """Return the name of the model that the options choose, as in `PRICES`, and its parameters of privacy."""
    of_cgs = {"mechanism": args.mechanism, "sampling_rate": args.sampling_rate}
    of_cgs = {name: value for name, value in of_cgs.items() if value is not None}
    if lacks_delta(args):
        raise ValueError(
            "--delta is needed for Gaussian noise; choose it well below 1 / (public estimate of the number of"
            f" documents), or use {pure_mechanisms('--mechanism {}')}, which has none."
        )
    delta = 1e-5 if args.delta is None else args.delta  # then not used
    name = args.model or ("cgs" if of_cgs else "vips")
    if of_cgs and name != "cgs":
        raise ValueError(f"--mechanism and --sampling-rate are of --model cgs; got --model {name}.")
    return name, {"epsilon": args.epsilon, "delta": delta, "max_iter": args.rounds, **of_cgs}


def add_cost(cost):
    """Add the arguments of `cost`."""
    add_price(cost)
    cost.add_argument("--json", action="store_true", help="print JSON")
    cost.set_defaults(run=_cost)


def _cost(args):
    name, options = chosen(args)
    price = PRICES[name](**options)
    plan = price.plan()
    guarantee, noise = price.guarantee(plan), price.noise(plan)
    if args.json:
        print(json.dumps({"privacy": json.loads(guarantee.to_json()), "noise": noise}, indent=2))
        return
    print(guarantee)
    if noise:
        print(
            f"\nEach cell of the topic-word table gets noise of standard deviation {noise['first_round']:.4g} in the"
            f" first and {noise['last_round']:.4g} in the\nlast of {noise['rounds']} rounds; the model, which weighs"
            f" them, is left with {noise['in_model']:.4g}. Here a document of 25\ndifferent words counts each once,"
            " and every document weighs the same. A word stands out in a\ntopic where the corpus has it there clearly"
            " more often than that. (For a word of mean frequency;\nwith Gaussian noise rarer words have less, and"
            " frequent ones more, by the fourth root.)"
        )
