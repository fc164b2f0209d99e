"""The model card of a released model: the same values as its file, for readers, and for a registry of deployments."""

import html
import json
import math
import os
import re
from importlib.metadata import version
from pathlib import Path

from skdplda._checks import is_real
from skdplda.privacy import Status, TrustModel, round_up, statement_rows

__all__ = ["FACTS", "cards", "path_of", "registry_entry"]

N_TOP = 10  # words of a topic
FORMAT, VERSION = "skdplda.ModelCard", 1
GUARANTEE = "Differentially private: the statement below says what is protected, and on what assumptions."
FACTS = {  # that whoever publishes may tell of a model
    "label": "what is released, in a few words",
    "owner": "who releases it",
    "date": "when, as 2030-01-31",
    "purpose": "what it is for",
    "region": "where the data are from, or whose laws apply",
}
ARGUMENTS = {
    "texts": '["a text", "another"]',
    "counts": "counts  # one column a word of vocabulary_",
    "embeddings": "embeddings  # of the same public model, one row a text",
}
NOT_PROTECTED = (
    "topic proportions of private documents: `transform` of a document is that document's data",
    "facts about groups: that a topic exists, or which words go together, is what the model is for",
    "data of the same people in other releases: losses add up, see `PrivacyGuarantee.compose`",
)


def path_of(path, suffix):
    """Return the path of a card beside the file."""
    path = Path(os.fspath(path))
    return path.with_name(path.stem + suffix)


def cards(model, sha256):
    """Return the cards of a model, whose file has this checksum, by the suffix of their files."""
    n_components, n_words = model.topic_word_.shape
    n_top = min(N_TOP, n_words)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "sha256": sha256,
        "n_components": n_components,
        "n_words": n_words,
        "takes": model._takes(),
        "details": model.details_,
        "statement": str(model.privacy_guarantee_),
        "privacy_guarantee": json.loads(model.privacy_guarantee_.to_json()),
        "not_protected": [*model.privacy_guarantee_.not_covered, *NOT_PROTECTED],
        "top_words": model.top_words(n_top).to_numpy().tolist(),
        "topics": _topics(model.topic_info(1)),
    }
    marked = model.top_words(n_top, mark_noise=True).to_numpy()
    return {
        ".card.json": _inert(f"{json.dumps(content, indent=2, ensure_ascii=True, allow_nan=False)}\n"),
        ".card.md": _markdown(model, content, marked),
    }


def _topics(info):
    """Return what the table of topics says beside their words, with None for what is not known."""
    rows = info.drop(columns="words").astype(object).where(info.drop(columns="words").notna(), None)
    return rows.to_dict("records")


def _markdown(model, content, marked):
    guarantee, details = model.privacy_guarantee_, content["details"]
    sound = guarantee.status == "proven" and math.isfinite(guarantee.epsilon)
    guaranteed = GUARANTEE if sound else "**No proven, finite privacy guarantee covers these topics.**"
    argument = ARGUMENTS[content["takes"][0]]
    lines = [  # an empty one after each that ends in a new line
        f"# Topic model: {content['n_components']} topics over {content['n_words']:,} words\n",
        f"Fitted by {_plain(details.get('estimator', 'an unnamed estimator'))}. {guaranteed}\n",
        *(f"* {fact.title()}: {_plain(details[fact])}" for fact in FACTS if fact in details),
        "\n## Privacy\n",
        f"<pre>\n{html.escape(content['statement'], quote=False)}\n</pre>\n",
        "### Not protected\n",
        *(f"* {_plain(item)}" for item in guarantee.not_covered),
        *(f"* {item}" for item in NOT_PROTECTED),
        "",
    ]
    if details.get("ledger"):
        lines += ["### Released from the same data\n", *(f"* {_plain(line)}" for line in details["ledger"]), ""]
    rows = [_row(k, topic, words) for k, (topic, words) in enumerate(zip(content["topics"], marked, strict=True))]
    order = sorted(range(len(rows)), key=lambda k: bool(content["topics"][k]["noise"]))
    lines += [
        "## Topics\n",
        "| topic | name | size | signal to noise | words, most relevant first |",
        "| ---: | --- | ---: | ---: | --- |",
        *(rows[k] for k in order),
        "\nWords in parentheses do not stand out of the noise in their topic. A topic whose signal to noise is below 1"
        " holds more noise than topic, and comes last.\n",
        "## Use\n",
        "```python",
        "from skdplda import load_released\n",
        f"model = load_released(path{', tokenizer=...' if 'tokenizer' in (model.text_ or {}) else ''})",
        "print(model.privacy_guarantee_)",
        f"model.transform({argument})",
        "```\n",
        f"SHA-256 of the values: `{content['sha256']}`. It tells damage; it is no signature.\n",
    ]
    if details.get("parameters"):
        lines += ["## Parameters\n", "| name | value |", "| --- | --- |"]
        lines += [f"| {name}, in all | {round_up(getattr(guarantee, name))} |" for name in ("epsilon", "delta")]
        for name, value in details["parameters"].items():
            alone, shown = "", value
            if name in ("epsilon", "delta"):
                alone, shown = " of the topics alone", round_up(value) if is_real(value) else value
            lines += [] if value is None else [f"| {_plain(name)}{alone} | {_plain(shown)} |"]
        lines.append("")
    return "\n".join(lines)


def registry_entry(model):
    """Return a draft for the registry of deployments of differential privacy, by its schema, as JSON, which is YAML.

    Source: schemas/deployments-schema.yaml of github.com/opendp/deployments-registry-data, commit 3e9c812; the paper is
    arXiv:2509.13509.
    """
    guarantee, details, rows = model.privacy_guarantee_, model.details_, statement_rows(model.privacy_guarantee_)
    if guarantee.status != Status.PROVEN or not (math.isfinite(guarantee.epsilon) and guarantee.delta < 1):
        raise ValueError(f"only a proven, finite guarantee can be registered; got {guarantee!r}.")
    missing = [fact for fact in FACTS if fact not in details]
    if missing:
        raise ValueError(f"a registry entry needs describe({', '.join(f'{fact}=...' for fact in missing)}) first.")
    n_components, n_words = model.topic_word_.shape
    ledger = [*map(str, details.get("ledger", ()))]  # its last line is the budget
    entry = {
        "basic": {
            "name": details["label"],
            "data_curators": [details["owner"]],
            "intended_use": details["purpose"],
            "data_product_type": "Machine learning model",
            "data_product_region": details["region"],
            "description": f"{n_components} topics over {n_words:,} words, found in a collection of texts",
            "publication_date": details["date"],
        },
        "dp_variant": {
            "variant_name": "Approximate DP" if guarantee.delta else "Pure DP",
            "data_domain": f"collections of texts, of which {n_words:,} words are counted",
            "unprotected_quantities": rows["Not covered"],
        },
        "privacy_loss": {
            "privacy_unit": str(guarantee.unit),
            "privacy_unit_details": f"{rows['Protected']}; {rows['Neighbours']}",
            "privacy_parameters": {"epsilon": guarantee.epsilon, "delta": guarantee.delta},
            "privacy_parameters_details": f"{rows['Guarantee']}; {rows['Attack']}",
        },
        "deployment_model": {
            "model_name": "Local" if guarantee.trust == TrustModel.LOCAL else "Central",
            "model_name_details": rows["Trust"],
            "release_type": "Many releases" if len(ledger) > 2 else "One release",
            "release_type_details": "; ".join(ledger) or "other releases from the same data are not stated",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "post_processing": "topics, their sizes, names and pictures are functions of what is released",
            "composition": rows.get("Check") or rows["Reference"],
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": rows["Assumptions"],
            "mechanisms": f"{rows['Mechanism']}. Library: skdplda {version('skdplda')}",
            "justification": rows["Reference"],
        },
        "administrative": {"registry_authors": [details["owner"]], "notes": rows["Status"]},
    }
    slug = re.sub(r"[^a-z0-9]+", "_", details["label"].lower()).strip("_") or "topics"
    written = {"url_slug": slug, "status": "Draft", "tier": 3, "deployment": entry}
    return f"{json.dumps(written, indent=2, allow_nan=False)}\n"


def _row(number, topic, words):
    """Return the row of a topic."""
    size = "" if topic["size"] is None else f"{100 * topic['size']:.1f} %"
    signal = "" if topic["signal_to_noise"] is None else f"{topic['signal_to_noise']:.2f}"
    name = f"{_plain(topic['name'])}{' (may be noise)' if topic['noise'] else ''}"
    return f"| {number} | {name} | {size} | {signal} | {', '.join(map(_plain, words))} |"


def _plain(value):
    """Write a value so that neither Markdown nor HTML takes any of it for markup."""
    return html.escape(re.sub(r"([\\`*_{}\[\]()#+!|~])", r"\\\1", " ".join(str(value).split())), quote=False)


def _inert(text):
    """Write JSON so that a page which it is put into takes none of it for markup."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
