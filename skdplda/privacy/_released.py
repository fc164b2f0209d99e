"""What a fitted estimator holds, compared with what its guarantee says that it released."""

from typing import Any

# Why a fitted attribute is in no list of what is released; see `check_released`.
KNOWN = "made of parameters, of public knowledge, and of what is released"
COLUMNS = "names and number of the columns of X, which the guarantee of the step that chose them covers"
CURATOR = "stays with the curator: what the guarantee does not cover names it"
EVERYWHERE = {"privacy_guarantee_": KNOWN, "n_features_in_": COLUMNS, "feature_names_in_": COLUMNS}


def check_released(fitted: Any) -> None:
    """Raise RuntimeError unless the guarantee of a fitted estimator names what it holds, and nothing else.

    `released` has the names of all fitted attributes that the theorem covers; "name with ..." is one that depends on
    what `fit` is given. Each other one is declared by its class, or a base, in the dict `_beside_released`, with
    `KNOWN`, `COLUMNS` or `CURATOR`; the last must stand in `not_covered`. To declare an attribute that depends on the
    documents, and is not a function of released values, as one of the first two would be a privacy defect.
    """
    name, guarantee = type(fitted).__name__, fitted.privacy_guarantee_
    held = {key for key in vars(fitted) if key.endswith("_") and not key.startswith("_")}
    entries = [entry.partition(" with ") for entry in guarantee.released]
    covered = {entry[0]: bool(entry[1]) for entry in entries if entry[0].isidentifier() and entry[0].endswith("_")}
    beside = dict(EVERYWHERE)
    for kind in reversed(type(fitted).__mro__):
        beside |= vars(kind).get("_beside_released", {})
    for key in sorted(held):
        if key in covered:
            continue
        if key not in beside:
            raise RuntimeError(
                f"the guarantee of {name} must say of each fitted attribute whether it is released; it does not of"
                f" {key}. Name it in `released`, if the theorem covers it, or do not keep it."
            )
        if beside[key] == CURATOR and not any(key in line for line in guarantee.not_covered):
            raise RuntimeError(f"{key} of {name} is not released, so not_covered of its guarantee must name it.")
    missing = sorted(key for key, depends in covered.items() if not depends and key not in held)
    if missing:
        raise RuntimeError(f"the guarantee of {name} says that {', '.join(missing)} is released; it has none.")
