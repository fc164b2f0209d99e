"""The page of a model: what it shows, and in which words."""

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from skdplda._checks import kind_of
from skdplda._files import whole_file
from skdplda._types import PathLike
from skdplda.metrics import topic_distances, topic_map
from skdplda.models import LabelCounts
from skdplda.privacy import protects, right_of_100, statement_rows
from skdplda.releases import flat_steps, release
from skdplda.reports._page import element, escape, page, plain, section, table
from skdplda.reports._pictures import topic_circles, tree_picture

__all__ = ["report"]

N_WORDS = 10  # of a topic, on its card
DEVIATIONS = 2.0  # of the noise, that the line at the end of a bar has to either side
NEAR = 3  # pairs of topics that the text names
MOST_PICTURED = 200  # topics; of more, circles cover each other and trees have no end: a table says which are alike
SIZE_HEADS = {"documents": "Number of texts", "weight": "Share of users' weight"}  # of clusters
SIZE_NOTES = {
    "documents": "Numbers of texts are as released; two standard deviations are behind them.",
    "weight": "The weight of a user is bounded, however many texts there are, so that shares of weight are no shares of"
    " users; two standard deviations are behind them.",
}
CLUSTER_NOTE = (
    "These are of the added noise, by which a number may be negative, and of how far clusters still moved. A cluster"
    " whose size or words noise alone would reach in one of twenty cases comes last."
)
SUBJECTS = {  # what is hidden, by unit and adjacency
    ("document", "add-remove"): "whether any one document was part of the collection",
    ("document", "replace"): "what any one document said",
    ("user", "add-remove"): "whether any one person's documents were part of the collection",
    ("user", "replace"): "what any one person's documents said",
    ("token", "add-remove"): "whether any one word stood in a document",
    ("token", "replace"): "which word stood at any one position of a document",
    ("bit", "add-remove"): "whether any one word occurs in a report",
    ("bit", "replace"): "whether any one word occurs in a report",
}
NOT_PROTECTED = (
    "That a {noun} exists, or which words go together: such facts about groups are what the model is for.",
    "{proportions} of the private documents. They are not on this page, and should not be published.",
    "The same people's data in other releases: losses of privacy add up.",
)


def report(
    model: Any,
    path: PathLike,
    *,
    feature_names: Sequence[str] | None = None,
    title: str | None = None,
) -> Path:
    """Write a page that shows a model to people: one HTML file, which loads nothing from the network.

    It has a card for each topic, with its words, their noise and its size, a map, a tree, and the privacy statement,
    and names epsilon in each caption. What may be noise comes last, folded away, and is in no picture. Of more than 200
    topics it has the nearest of each in place of pictures. It is made of released values only, and may be published
    like the model. The page needs no program: it has no scripts, and follows the reader's choice of a light or a dark
    screen.

    Parameters
    ----------
    model : fitted topic model, Pipeline, ReleasedTopicModel or LabelCounts
        Of a pipeline the page shows what `release` takes out of it, with the guarantee of the whole. Other models are
        taken if they have `privacy_guarantee_`, which covers all that is shown, `top_words`, `topic_info` and
        `topic_hierarchy`; without `topic_word_` there is no map. Of counts of labels it has their table.
    path : str or path-like
        The file. What is there is replaced.
    feature_names : sequence of str of shape (n_words,), default=None
        Words of the columns, where neither model nor pipeline knows them.
    title : str, default=None
        Heading of the page. None: "Topics", "Clusters" or "Labels".

    Returns
    -------
    path : Path
        The file.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If the model is none of those above.
    ValueError
        If the words do not fit the model, or the pipeline voids the guarantee; see `privacy_guarantee`.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from skdplda import PrivacyGuarantee, ReleasedTopicModel
    >>> from skdplda.reports import report
    >>> topics, words = [[0.6, 0.4, 0.0], [0.0, 0.1, 0.9]], ["pear", "plum", "zinc"]
    >>> model = ReleasedTopicModel(topics, words, privacy_guarantee=PrivacyGuarantee(epsilon=1.0))
    >>> page = report(model, mkdtemp() + "/topics.html", title="Fruit and metal").read_text(encoding="utf-8")
    >>> "<h1>Fruit and metal</h1>" in page, "zinc" in page
    (True, True)
    """
    if isinstance(model, LabelCounts):
        return _written(path, "Labels" if title is None else title, model.privacy_guarantee_.caption, _labels(model))
    if hasattr(model, "steps"):
        steps = flat_steps(model)
        words = None if any(hasattr(step, "build_analyzer") for _, step in steps) else feature_names
        model = release(model, feature_names=words, raw_text=False, allow_seeded=True, allow_unproven=True)
        feature_names = None
    missing = [name for name in ("top_words", "topic_info", "topic_hierarchy") if not hasattr(model, name)]
    if missing:
        raise TypeError(
            f"model must be a fitted topic model, a pipeline that ends in one, or a released one; got"
            f" {kind_of(model)} without {missing[0]}."
        )
    shown = _Shown(model, feature_names)
    title = f"{shown.noun.title()}s" if title is None else title
    parts = (_summary, _topics, _levels, _map, _hierarchy, _neighbours, _privacy, _reading)
    return _written(path, title, shown.caption, "".join(part(shown) for part in parts))


def _written(path, title, caption, body):
    content = page(title, caption, body, f"Made with skdplda {version('skdplda')} from released values only.")
    path = Path(os.fspath(path))
    with whole_file(path) as file:
        file.write(content.encode())
    return path


class _Shown:
    """What is read from a model, once."""

    def __init__(self, model, feature_names):
        self.info = model.topic_info(N_WORDS, feature_names)  # which says NotFittedError, or that names do not fit
        self.guarantee = model.privacy_guarantee_
        self.topic_word = getattr(model, "topic_word_", None)
        self.n_topics = len(self.info)
        self.n_words = None if self.topic_word is None else self.topic_word.shape[1]
        self.signal = self.info["signal_to_noise"].to_numpy(dtype=float)
        self.is_noise = self.info["noise"].fillna(False).to_numpy(dtype=bool)
        self.noise_known = not np.isnan(self.signal).all()
        self._read_words(model, feature_names)
        self.sizes = self.info["size"].to_numpy(dtype=float)
        self.size_name = next((name for name in SIZE_HEADS if f"{name}_deviation" in self.info), None)
        self.noun = "topic" if self.size_name is None else "cluster"
        if self.size_name is not None:  # as released, and with their error
            whole = max(self.info[self.size_name].clip(lower=0).sum(), 1e-9)
            self.sizes = self.info[self.size_name].to_numpy(dtype=float) / whole
            self.errors = 2 * self.info[f"{self.size_name}_deviation"].to_numpy(dtype=float) / whole
        self.pictured = self.n_topics <= MOST_PICTURED
        self.kept = np.flatnonzero(~self.is_noise)  # what pictures show, and what may be near to something
        self.distances = self.tree = self.neighbours = None
        if self.pictured and len(self.kept) > 1 and self.topic_word is not None:
            self.distances = topic_distances(model)[np.ix_(self.kept, self.kept)]
            self.tree = linkage(squareform(self.distances, checks=False), "average")
        elif self.pictured and self.topic_word is None:
            self.kept, self.tree = np.arange(self.n_topics), np.asarray(model.topic_hierarchy(), dtype=float)
        elif not self.pictured and self.topic_word is not None:
            self.neighbours = neighbours(model, self.kept) if len(self.kept) > 1 else None
        levels = getattr(model, "topic_levels", None)
        self.levels = None if levels is None else levels(feature_names=feature_names)
        self.labels = [_label(number, name, self.noun) for number, name in enumerate(self.info["name"])]
        self.price = self.guarantee.caption
        over = "" if self.n_words is None else f" over {self.n_words:,} words"
        self.caption = f"{self.n_topics} {self.noun}s{over}; {self.price}"

    def _read_words(self, model, feature_names):
        """Read the words of each topic, in order of their bars: how far they stand out, or else their probabilities."""
        words = np.array(self.info["words"].tolist(), dtype=object)
        n_top = words.shape[1]
        noisy = model.top_words(n_top, feature_names, mark_noise=True).to_numpy() != words
        self.bars, order = None, np.broadcast_to(np.arange(n_top), words.shape)
        if self.topic_word is not None:
            names = np.array([str(column) for column in range(self.n_words)], dtype=object)
            columns = model.top_words(n_top, names).to_numpy().astype(int)
            cells = model._word_signal() if self.noise_known else None
            bars = np.take_along_axis(np.asarray(self.topic_word if cells is None else cells, dtype=float), columns, 1)
            order = np.lexsort((-bars, noisy), axis=1)
            self.bars = np.take_along_axis(bars, order, axis=1)
        self.words, self.noisy = (np.take_along_axis(found, order, axis=1) for found in (words, noisy))

    def of(self, topic):
        """Return the name of a topic, and its first words where they are not the name, as HTML."""
        if set(self.info["name"].iloc[topic].split(", ")) <= {*map(str, self.words[topic])}:
            return escape(self.labels[topic])
        return f"{escape(self.labels[topic])} ({', '.join(map(plain, self.first(topic)))})"

    def first(self, topic):
        """Return the first three words of a topic that stand out, or any if none does."""
        clear = self.words[topic][~self.noisy[topic]][:3]
        return [*map(str, clear if len(clear) else self.words[topic][:3])]

    def title(self, topic):
        """Return the number of a topic, and its name or else its first words, as text."""
        name = self.info["name"].iloc[topic]
        named = ", ".join(self.first(topic)) if name == f"topic_{topic}" else name
        return f"{topic} {named}"


def _label(number, name, noun):
    return f"{noun.title()} {number}" if name == f"topic_{number}" else f"{number} {name}"


def _summary(shown):
    """Say to readers who are no statisticians what the page shows and what it promises."""
    guarantee = shown.guarantee
    what = "user" if guarantee.unit == "user" else "document"
    lists = "lists of words that are often used together"
    if shown.noun == "cluster":
        lists = "groups of texts that say similar things, each with the words that tell it from the others"
    found = f"found {shown.n_topics} {shown.noun}s: {lists}"
    if shown.noun == "label":
        found = f"counted how many {shown.units} have each of {shown.n_topics} labels that were chosen before"
    parts = [
        f"<p>A computer program read a collection of texts and {found}. This page"
        f" shows the {shown.noun}s. It holds no text of the collection.</p>"
    ]
    if not protects(guarantee):
        parts.append(
            f"<p class='warning'><strong>These {shown.noun}s have no privacy protection.</strong> Whoever sees them may"
            " learn what single texts say.</p>"
        )
    elif guarantee.status != "proven":
        parts.append(
            f"<p class='warning'><strong>The privacy of these {shown.noun}s is not proven.</strong> The numbers are"
            f" {escape(str(guarantee.status))} only: {plain(guarantee.reason or 'no reason is recorded')}</p>"
        )
    else:
        subject = SUBJECTS[guarantee.unit, guarantee.adjacency]
        best, pair = right_of_100(guarantee)
        often = f"in at most <strong>{best} of 100</strong> cases" if best < 100 else "in nearly every case, at worst"
        alone = f" Epsilon and delta alone would allow {pair}; the noise is known to hide more." if best < pair else ""
        parts.append(
            f"<p>Random noise was added, to hide from whoever sees this page {subject}. Whoever knows everything else,"
            f" and would otherwise have to toss a coin over one such question, answers right {often}. The promise has a"
            f" number, {escape(shown.price)}; smaller is safer.{alone}</p>"
        )
    if what == "document" and guarantee.unit == "document" and protects(guarantee):
        parts.append("<p>The promise is for one document. Whoever wrote several of them has a weaker one.</p>")
    if shown.is_noise.any():
        hold = "hold more noise than topic"
        if shown.noun != "topic":
            hold = "do not stand out of the noise" + (", by their sizes or by their words" * (shown.noun == "cluster"))
        parts.append(
            f"<p>{shown.is_noise.sum()} of the {len(shown.is_noise)} {shown.noun}s {hold}. They come last, and should"
            " not be interpreted.</p>"
        )
    if shown.is_noise.mean() > 0.5:
        parts.append(
            f"<p class='warning'>Most {shown.noun}s are noise. More documents, fewer {shown.noun}s, a larger epsilon or"
            " public knowledge would help.</p>"
        )
    return section("In short", "".join(parts), "short")


def _labels(found):
    """Return the body of the page of counts of labels."""
    guarantee, info = found.privacy_guarantee_, found.table()
    units = "people" if guarantee.unit == "user" else "texts"
    shown = SimpleNamespace(noun="label", guarantee=guarantee, n_topics=len(info) - 1, price=guarantee.caption)
    shown.is_noise, shown.units = ~info["clear"].to_numpy(), units
    largest, rows = max(info["count"].max(), 1e-9), []
    for label, row in info.iterrows():
        mark = "" if row["clear"] else " <strong class='tag'>may be noise</strong>"
        bar = f"<span class='bar' style='width:{max(100 * row['count'] / largest, 0):.1f}%'></span>"
        told = f"{row['count']:,.0f} \u00b1 {2 * row['deviation']:,.0f}"
        cells = plain(label) + mark, f"<span class='size'>{bar}</span>{told}", f"{100 * row['share']:.1f} %"
        rows.append(list(cells))
    most = "one label" if found.most == 1 else f"at most {found.most} labels"
    note = (
        f"<p>Each of the {units} counts for {most}. Two standard deviations of the added noise stand behind the"
        " numbers; one below three deviations is marked. What has none of the labels is other.</p>"
    )
    counted = table(f"The labels; {shown.price}", ["Label", f"Number of {units}", "Share of all"], rows)
    return _summary(shown) + section("Labels", note + counted, "labels") + _privacy(shown)


def _plainly(ratio):
    return f"{ratio:.1f}" if abs(ratio) < 99.95 else f"{ratio:,.0f}"


def _word(word, noisy, bar, most, interval):
    """Return a line of a card: a word, its bar with the interval of its noise, and its number."""
    line = "<li class='noise'>" if noisy else "<li>"
    if bar is None:
        return f"{line}{plain(word)}</li>"
    width = f"width:{100 * max(bar, 0) / most:.1f}%"
    low, high = (np.clip(100 * (bar + side * interval) / most, 0, 100) for side in (-1, 1))
    error = f"<span class='error' style='left:{low:.1f}%;width:{high - low:.1f}%'></span>" if interval else ""
    told = _plainly(bar) if interval else f"{100 * bar:.2g} %"
    track = f"<span class='track' aria-hidden='true'><span class='bar' style='{width}'></span>{error}</span>"
    return f"{line}{plain(f'({word})' if noisy else word)}{track}<span>{told}</span></li>"


def _card(shown, topic):
    """Return the card of a topic."""
    interval = DEVIATIONS if shown.noise_known else 0.0
    bars = [None] * shown.words.shape[1] if shown.bars is None else shown.bars[topic].tolist()
    most = max(*(bar for bar in (*bars, 1e-9) if bar is not None), 1e-9) + interval
    lines = list(zip(shown.words[topic], shown.noisy[topic].tolist(), bars, strict=True))
    told = [line for line in lines if not line[1] or (line[2] or 0) > 0] or lines  # others are more of other topics
    items = "".join(_word(*line, most, interval) for line in told)
    facts = [] if np.isnan(shown.sizes[topic]) else [_size(shown, topic)]
    facts += [f"{_plainly(shown.signal[topic])} times the noise"] if not np.isnan(shown.signal[topic]) else []
    name = f"topic-{topic}"
    kind = "card is-noise" if shown.is_noise[topic] else "card"
    return (
        f'<article class="{kind}" aria-labelledby="{name}"><h3 id="{name}">{plain(shown.title(topic))}</h3>'
        f"<p>{'; '.join(facts)}</p><ol>{items}</ol></article>\n"
    )


def _topics(shown):
    """Return the cards of topics: what stands out first, the large before the small; noise is folded away."""
    noun = shown.noun
    order = np.lexsort((-np.nan_to_num(shown.sizes), shown.is_noise)).tolist()
    notes = [f"Words are those that are probable in the {noun}, and more so than in the others."]
    if shown.noise_known:
        notes.append(
            "A bar, and the number behind it, say how far a word stands out of the words of all, in standard deviations"
            f" of the added noise; the line at its end is that noise, {DEVIATIONS:g} of them either way. A pale word in"
            " parentheses may be noise: do not quote it."
        )
    else:
        notes.append("Bars are probabilities. How large the noise is in them is not known here, or there is none.")
    if shown.size_name is not None:
        notes += [SIZE_NOTES[shown.size_name], CLUSTER_NOTE]
    elif not np.isnan(shown.sizes).all():
        notes.append("A size is the topic's share of the released counts.")
    body = f"<p>{' '.join(notes)}</p><p class='caption'>The {noun}s; {escape(shown.price)}</p>"
    for folded in (False, True):
        cards = "".join(_card(shown, topic) for topic in order if shown.is_noise[topic] == folded)
        cards = f"<div class='cards'>{cards}</div>" if cards else ""
        if folded and cards:
            found = f"{noun}s" if shown.is_noise.sum() > 1 else noun
            cards = f"<details><summary>{shown.is_noise.sum()} {found} that may be noise</summary>{cards}</details>"
        body += cards
    return section(f"{noun.title()}s", body, f"{noun}s")


def _levels(shown):
    """Return the table of clusters of clusters, as far as the model has them."""
    if shown.levels is None or shown.n_topics < 4:
        return ""
    first, *others = shown.levels.columns
    rows = []
    for name, group in shown.levels.groupby(first, sort=False):
        for middle, members in group.groupby(others[0], sort=False):
            own = "; ".join(plain(shown.labels[topic]) for topic in members.index)
            rows.append([plain(name), plain(middle), own, f"{100 * shown.sizes[members.index].sum():.1f} %"])
    text = (
        "<p>Clusters of clusters, by their distance, each with the words that its clusters share most of. This costs no"
        " privacy: it is made of what is on this page.</p>"
    )
    heads = ["Group", "Smaller group", "Clusters", "Share of all"]
    return section("Levels", text + table(f"Levels of the clusters; {shown.price}", heads, rows), "levels")


def _size(shown, topic):
    """Return the size of a topic as text, that of a cluster with its error."""
    share = 100 * shown.sizes[topic]
    if shown.size_name is None:
        return f"{share:.1f} % of all"
    if shown.size_name == "weight":
        return f"{share:.1f} \u00b1 {100 * shown.errors[topic]:.1f} % of users' weight"
    row = shown.info.iloc[topic]
    return f"{row['documents']:,.0f} \u00b1 {2 * row['documents_deviation']:,.0f} texts"


def _map(shown):
    """Return the map of topics, and its nearest pairs in words."""
    distances, noun = shown.distances, shown.noun
    if distances is None:
        return ""
    kept = shown.kept
    sizes = np.where(np.isnan(shown.sizes), 1 / shown.n_topics, np.maximum(shown.sizes, 1e-9))[kept]
    upper = np.triu_indices(len(kept), 1)
    nearest = np.argsort(distances[upper], kind="stable")[:NEAR]
    pairs = [(kept[a], kept[b], distances[a, b]) for a, b in zip(*(side[nearest] for side in upper), strict=True)]
    listed = "".join(f"<li>{shown.of(a)} and {shown.of(b)}: distance {far:.2f}</li>" for a, b, far in pairs)
    near, scale = "share words", "1 for topics without a word in common (Jensen-Shannon)"
    if noun == "cluster":
        near, scale = (
            "have similar texts",
            "1 for clusters of directions without a relation (1 less the cosine), and larger for opposed ones",
        )
    text = (
        f"<p>Circles near each other are {noun}s that {near}; larger circles are larger {noun}s. The distance is 0 for"
        f" equal {noun}s, and {scale}. A plane cannot keep all distances, and circles make room for each other. The"
        f" nearest:</p><ul>{listed}</ul>"
    )
    alt = f"Map of {len(kept)} {noun}s. Nearest: " + "; ".join(
        f"{shown.title(a)} and {shown.title(b)}, distance {far:.2f}" for a, b, far in pairs
    )
    names = [
        shown.first(topic) if name == f"topic_{topic}" else name.split(", ")  # the circle has the number
        for topic, name in enumerate(shown.info["name"])
    ]
    tips = [f"{shown.labels[topic]}: {', '.join(map(str, shown.words[topic][:5]))}" for topic in kept]
    texts = [names[topic] for topic in kept]
    picture = topic_circles(topic_map(distances), sizes, texts, [*map(str, kept)], tips, alt)
    return section("Map", text + _figure(picture, f"Map of the {noun}s; {shown.price}"), "map")


def _hierarchy(shown):
    """Return the tree of topics."""
    if shown.tree is None or not len(shown.tree):
        return ""
    labels = [shown.title(topic) for topic in shown.kept]
    alt = f"Tree of {len(labels)} {shown.noun}s, joined from left to right by their distance."
    join = f"{shown.noun.title()}s that join further left are more alike."
    text = f"<p>{join} The scale is the mean distance of what joins.</p>"
    picture = tree_picture(shown.tree, labels, alt)
    return section("Hierarchy", text + _figure(picture, f"Hierarchy of the {shown.noun}s; {shown.price}"), "hierarchy")


def neighbours(model, kept):
    """Return (the nearest other topic, its distance) of some topics among these, by a matrix product: there are many.

    The distance is that of Hellinger, from 0 for equal topics to 1 for those that have no word in common; of clusters,
    1 less the cosine of their directions.
    """
    of_clusters = hasattr(model, "cluster_centers_")
    if of_clusters:
        rows = np.asarray(model.cluster_centers_, dtype=float)
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    else:
        rows = np.sqrt(np.asarray(model.topic_word_, dtype=float))
    alike = rows[kept] @ rows[kept].T
    np.fill_diagonal(alike, -np.inf)
    nearest = alike.argmax(axis=1)
    distance = np.maximum(1 - alike[np.arange(len(kept)), nearest], 0)
    return np.asarray(kept)[nearest], distance if of_clusters else np.sqrt(distance)


def _neighbours(shown):
    """Return the table of nearest topics, in the place of map and tree where topics are many."""
    if shown.neighbours is None:
        return ""
    noun, (nearest, distance) = shown.noun, shown.neighbours
    scale = "1 for topics without a word in common (Hellinger)"
    if noun == "cluster":
        scale = "1 for clusters of directions without a relation (1 less the cosine)"
    text = (
        f"<p>Of more than {MOST_PICTURED} {noun}s there is no map and no tree. The table has the nearest other {noun}"
        f" of each, the most alike first. The distance is 0 for equal {noun}s, and {scale}.</p>"
    )
    rows = [
        [escape(shown.labels[shown.kept[place]]), shown.of(nearest[place]), f"{distance[place]:.2f}"]
        for place in np.argsort(distance, kind="stable")
    ]
    heads = [noun.title(), f"Words of the nearest {noun}", "Distance"]
    return section("Neighbours", text + table(f"Nearest {noun}s; {shown.price}", heads, rows), "neighbours")


def _privacy(shown):
    """Return the whole privacy statement and what it does not cover."""
    rows = statement_rows(shown.guarantee).items()
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{_rendered(name, text)}</dd></div>" for name, text in rows)
    of_documents = {"topic": "Topic proportions", "cluster": "The clusters", "label": "The labels"}[shown.noun]
    lines = (item.format(noun=shown.noun, proportions=of_documents) for item in NOT_PROTECTED)
    not_protected = "".join(f"<li>{item}</li>" for item in lines)
    text = f"<dl>{items}</dl>"
    if protects(shown.guarantee):
        text += f"<h3>What is not protected</h3><ul>{not_protected}</ul>"
    return section("Privacy statement", text, "privacy")


def _rendered(name, text):
    """Return a paragraph of the statement; that of "Check" is a program."""
    if name != "Check":
        return plain(text)
    code = "\n".join(map(escape, text.splitlines()))
    return f"Delta follows from the noise by this program.<pre tabindex='0'>{code}</pre>"


def _reading(shown):
    """Explain the words of the page."""
    what = ("Topic", "a list of words with a probability each. A document is a mixture of topics.")
    if shown.noun == "cluster":
        what = ("Cluster", "a group of texts that say similar things, by a public model of language. A text is in one.")
    terms = {
        what[0]: what[1],
        "Epsilon and delta": "the loss of privacy. Epsilon bounds how much more likely any result becomes by one"
        f" {escape(str(shown.guarantee.unit))}; delta is the part of probability for which this may fail.",
        "Noise": f"random numbers that were added to the {'counts' if shown.noun == 'topic' else 'sums'} on purpose."
        " They are the protection.",
        "Signal to noise": f"how far the words of a {shown.noun} stand out of the added noise: 0 for noise alone, 1 for"
        f" as much noise as {shown.noun}.",
    }
    items = "".join(f"<div><dt>{name}</dt><dd>{text}</dd></div>" for name, text in terms.items())
    return section("How to read this page", f"<dl>{items}</dl>", "reading")


def _figure(picture, caption):
    return element("figure", picture + element("figcaption", escape(caption)))
