"""The model card of a released model: the same values as its file, for readers."""

import html
import json
import math
import os
import re
from pathlib import Path

__all__ = ["cards", "path_of"]

N_TOP = 10  # words of a topic
FORMAT, VERSION = "skdplda.ModelCard", 1
GUARANTEE = "Differentially private: the statement below says what is protected, and on what assumptions."
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
    lines = [
        f"# Topic model: {content['n_components']} topics over {content['n_words']:,} words",
        "",
        f"Fitted by {_plain(details.get('estimator', 'an unnamed estimator'))}. {guaranteed}",
        "",
        "## Privacy",
        "",
        f"<pre>\n{html.escape(content['statement'], quote=False)}\n</pre>",
        "",
        "### Not protected",
        "",
        *(f"* {_plain(item)}" for item in guarantee.not_covered),
        *(f"* {item}" for item in NOT_PROTECTED),
        "",
        "## Topics",
        "",
        "| topic | name | size | signal to noise | words, most relevant first |",
        "| ---: | --- | ---: | ---: | --- |",
        *(_row(k, topic, words) for k, (topic, words) in enumerate(zip(content["topics"], marked, strict=True))),
        "",
        "Words in parentheses do not stand out of the noise in their topic. A topic whose signal to noise is below 1"
        " holds more noise than topic.",
        "",
        "## Use",
        "",
        "```python",
        "from skdplda import load_released",
        "",
        f"model = load_released(path{', tokenizer=...' if 'tokenizer' in (model.text_ or {}) else ''})",
        "print(model.privacy_guarantee_)",
        f"model.transform({argument})",
        "```",
        "",
        f"SHA-256 of the values: `{content['sha256']}`. It tells damage; it is no signature.",
        "",
    ]
    if details.get("parameters"):
        lines += ["## Parameters", "", "| name | value |", "| --- | --- |"]
        lines += [f"| {_plain(name)} | {_plain(value)} |" for name, value in details["parameters"].items()]
        lines.append("")
    return "\n".join(lines)


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
