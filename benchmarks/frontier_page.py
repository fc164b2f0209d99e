"""Tables and pictures of the documentation's page on the frontier, from what `frontier.py` has measured.

The share of the gain that is kept is

    (unigram - perplexity) / (unigram - best non-private),

where the best non-private model is the better of `PrivateCGSLDA` and `VIPSLDA` without noise, the mean of the seeds:
one yardstick for all curves of a panel. Every panel has one privacy unit, one adjacency and one model of trust. Bands
go from the least to the largest of the seeds. TPR and AUC are those of the attack.

    python benchmarks/frontier_page.py
"""

import argparse
import math
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

NEWS, TWEETS, ENRON = "20 Newsgroups", "TweetRumors", "Enron, by sender"
ALL_TWEETS = "TweetRumors, all words"
CORPORA = (NEWS, TWEETS, ALL_TWEETS, "NIPS", ENRON)
MAIN, SETTING = ("PrivateCGSLDA", "VIPSLDA"), ["corpus", "topics"]
GUARANTEES = {  # unit, adjacency, trust -> title of a panel
    ("document", "add-remove", "central"): "a document added or removed, central",
    ("user", "add-remove", "central"): "a user added or removed, central",
    ("token", "replace", "central"): "a word replaced in its place, central",
    ("token", "add-remove", "central"): "a word added or removed, central",
    ("bit", "replace", "local"): "a word present or not, local",
}
COLORS = {  # Okabe and Ito's palette; markers tell the curves apart in print
    "PrivateCGSLDA": ("#0072B2", "o"),
    "VIPSLDA": ("#D55E00", "s"),
    "PCTD, sentences": ("#009E73", "^"),
    "PCTD, 3 words": ("#CC79A7", "v"),
    "VIPSLDA, mini-batches": ("#E69F00", "D"),
    "PrivateCGSLDA, Laplace": ("#56B4E9", "P"),
    "HDPLDA": ("#0072B2", "o"),
    "PCTD, 3 words, units": ("#CC79A7", "v"),
    "LocalPrivateLDA": ("#009E73", "^"),
    "CDP-LDA": ("#999999", "o"),
    "CDP-LDA+": ("#999999", "s"),
    "Zhu et al.": ("#000000", "D"),
    "HDPLDA, published": ("#000000", "s"),
    "PCTD, 3 words, published": ("#000000", "v"),
    "VIPS, zcdp": ("#E69F00", "x"),
    "VIPS, advanced": ("#E69F00", "+"),
    "VIPS, linear": ("#E69F00", "1"),
}
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0, math.inf)
FLOOR = -0.25  # of the axes: below, a model is much worse than word frequencies


def with_shares(table):
    """Return the rows that were fitted, with the shares they keep."""
    table = table[table["perplexity"].notna()].copy()
    exact = table[table["model"].isin(MAIN) & np.isinf(table["epsilon"])]
    best = exact.groupby([*SETTING, "model"])["perplexity"].mean().groupby(level=[0, 1]).min().rename("best")
    table = table.join(best, on=SETTING)
    table["share"] = (table["unigram"] - table["perplexity"]) / (table["unigram"] - table["best"])
    own = exact.set_index([*SETTING, "model", "seed"])["perplexity"].rename("own")
    table = table.join(own, on=[*SETTING, "model", "seed"])
    table["own share"] = (table["unigram"] - table["perplexity"]) / (table["unigram"] - table["own"])
    claimed = table.groupby("model")["status"].transform(lambda status: (status == "claimed").any())
    table.loc[claimed, "status"] = "claimed"  # without noise too
    table["guarantee"] = list(zip(table["unit"], table["adjacency"], table["trust"], strict=True))
    return table


def own_shares(table, whole=1):
    """Return the rows that were fitted, with the share of the gain of topics that each keeps, in parts of a whole."""
    table = table[table["perplexity"].notna()].copy()
    table["share"] = whole * (table["unigram"] - table["perplexity"]) / (table["unigram"] - table["non-private"])
    return table


def place(epsilon):
    """Return where epsilon stands on a logarithmic axis; no noise stands behind the largest."""
    return np.where(np.isinf(epsilon), 3 * EPSILONS[-2], epsilon)


def epsilon_axis(ax):
    """Give the axis the same epsilons in all panels."""
    labels = [f"{epsilon:g}" if math.isfinite(epsilon) else "no\nnoise" for epsilon in EPSILONS]
    ax.set_xscale("log")
    ax.set_xticks(place(EPSILONS), labels)
    ax.set_xlim(0.85 * EPSILONS[0], 3.6 * EPSILONS[-2])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", alpha=0.25)


def worth(rows):
    """Return, in words, what is proven of a claimed form."""
    rows = rows[np.isfinite(rows["epsilon"])]
    true = rows["true epsilon"].to_numpy(dtype=float)
    if np.isnan(true).all():
        return "nothing proven"
    if np.isinf(true).all():
        return "true $\\varepsilon=\\infty$"
    if np.allclose(true, rows["epsilon"]):
        return "as claimed, by our sum"
    return f"true $\\varepsilon$ {true.min():.2g} to {true.max():.2g}"


def curves(ax, table, value, note_below=False):
    """Draw a value over epsilon: a solid line for a proven form, a dashed one for a claimed one."""
    for model, (color, marker) in COLORS.items():
        rows = table[(table["model"] == model) & table[value].notna()]
        if not len(rows):
            continue
        claimed = (rows["status"] == "claimed").any()
        found = rows.groupby("epsilon")[value].agg(["mean", "min", "max"]).sort_index()
        x = place(found.index.to_numpy(dtype=float))
        label = f"{model} (claimed; {worth(rows)})" if claimed else model
        if note_below and (found["mean"][np.isfinite(found.index)] < FLOOR).all():
            label += ", all below"
        finite = np.isfinite(found.index)
        style = {"color": color, "marker": marker, "ms": 4.5, "lw": 1.5, "ls": "--" if claimed else "-"}
        ax.plot(x[finite], found["mean"][finite], label=label, **style)
        ax.plot(x[~finite], found["mean"][~finite], **style)
        ax.fill_between(x[finite], found["min"][finite], found["max"][finite], color=color, alpha=0.15, lw=0)
    epsilon_axis(ax)


def share_axis(ax):
    """Set the axis of shares."""
    ax.axhline(0, color="#555555", ls=":", lw=1)
    ax.axhline(1, color="#555555", ls="--", lw=1)
    ax.set_ylim(FLOOR, 1.08)
    ax.yaxis.set_major_formatter(PercentFormatter(1))


def title(corpus, topics):
    """Return the title of a panel."""
    return f"{corpus}{' (six mailboxes, a stand-in)' if corpus == ENRON else ''}, K = {topics}"


def draw_shares(table, path):
    """Draw the estimators that protect documents or users: one panel for each corpus and number of topics."""
    table = table[table["unit"].isin(["document", "user"]) & (table["status"] == "proven")]
    table = table[table["corpus"] != ALL_TWEETS]
    settings = sorted(table.groupby(SETTING).groups, key=lambda setting: (CORPORA.index(setting[0]), setting[1]))
    columns = 3
    figure = Figure(figsize=(4.3 * columns, 3.7 * math.ceil((len(settings) + 1) / columns)), layout="constrained")
    axes = figure.subplots(math.ceil((len(settings) + 1) / columns), columns, squeeze=False).ravel()
    labels = {}
    for ax, (corpus, topics) in zip(axes, settings, strict=False):
        rows = table[(table["corpus"] == corpus) & (table["topics"] == topics)]
        curves(ax, rows, "share")
        share_axis(ax)
        guarantee = GUARANTEES[rows["guarantee"].iloc[0]]
        ax.set_title(f"{title(corpus, topics)}\n{guarantee}", loc="left", fontsize=9)
        ax.set_xlabel("epsilon of the whole fit, delta = 1e-5")
        labels |= {label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    for ax in axes[len(settings) :]:
        ax.set_axis_off()
    legend = {"loc": "upper left", "bbox_to_anchor": (0, 1), "frameon": False, "alignment": "left"}
    axes[len(settings)].legend(labels.values(), labels.keys(), title="Proven mechanisms", **legend)
    note = "100 %: the best model without noise\n0 %: word frequencies, no topics\nBands: least to largest of the seeds"
    note += "\nLaplace: delta = 0"
    axes[len(settings)].text(0.03, 0.02, note, transform=axes[len(settings)].transAxes, va="bottom", color="#555555")
    for ax in axes[: len(settings) : columns]:
        ax.set_ylabel("share of the gain kept")
    figure.savefig(path, dpi=130, pil_kwargs={"optimize": True})


def draw_units(table, path):
    """Draw units side by side, claimed forms among them: one row for each corpus, one panel for each guarantee."""
    settings = [(corpus, topics) for corpus, topics in ((NEWS, 10), (TWEETS, 5)) if (table["corpus"] == corpus).any()]
    guarantees = [p for p in GUARANTEES if p[0] != "user" and p in set(table["guarantee"])]
    figure = Figure(figsize=(4.2 * len(guarantees), 5.6 * len(settings)), layout="constrained")
    axes = figure.subplots(len(settings), len(guarantees), squeeze=False)
    for row, (corpus, topics) in zip(axes, settings, strict=True):
        of_corpus = table[(table["corpus"] == corpus) & (table["topics"] == topics)]
        for ax, guarantee in zip(row, guarantees, strict=True):
            rows = of_corpus[[found == guarantee for found in of_corpus["guarantee"]]]
            ax.set_title(f"{title(corpus, topics)}\n{GUARANTEES[guarantee]}", loc="left", fontsize=9)
            if not len(rows):
                ax.set_axis_off()
                ax.text(0.5, 0.6, "not measured: it takes\nunits times words", ha="center", color="#555555")
                continue
            curves(ax, rows, "share", note_below=True)
            share_axis(ax)
            ax.set_xlabel({"bit": "epsilon of one word", "token": "epsilon of one word"}.get(guarantee[0], "epsilon"))
            ax.legend(frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.2))
        row[0].set_ylabel("share of the gain kept")
    figure.savefig(path, dpi=115, bbox_inches="tight", pil_kwargs={"optimize": True})


def draw_measures(table, attacks, path):
    """Draw what else there is to measure: coherence, accuracy, seconds, and who is found."""
    rows = table[(table["corpus"] == NEWS) & (table["topics"] == 10) & (table["unit"] == "document")]
    rows = rows[rows["status"] == "proven"]
    figure = Figure(figsize=(13, 7.2), layout="constrained")
    axes = figure.subplots(2, 2)
    panels = (("c_npmi", "c_npmi on test posts"), ("accuracy", "accuracy of classification"), ("cpu s", "CPU s of fit"))
    for ax, (value, name) in zip(axes.ravel(), panels, strict=False):
        curves(ax, rows, value)
        ax.set_ylabel(name)
        ax.set_title(f"{title(NEWS, 10)}: {name}", loc="left", fontsize=9)
    axes[0, 0].legend(frameon=False, fontsize=7.5)
    axes[0, 1].axhline(1 / 20, color="#555555", ls=":", lw=1)
    axes[0, 1].annotate("chance", (0.5, 1 / 20), xytext=(0, 3), textcoords="offset points", fontsize=7)
    axes[1, 0].set_ylim(bottom=0)
    ax = axes[1, 1]
    shown = attacks[attacks["corpus"] == TWEETS]
    for model, found in shown.groupby("model"):
        found = found.sort_values("epsilon")
        color, marker = COLORS[model]
        ls = "-" if model in MAIN else "--"
        label = model if model in MAIN else f"{model} (claimed; true $\\varepsilon=\\infty$)"
        style = {"color": color, "marker": marker, "ms": 4.5, "lw": 1.5, "ls": ls, "capsize": 2}
        for rows in (found[np.isfinite(found["epsilon"])], found[np.isinf(found["epsilon"])]):
            x = place(rows["epsilon"].to_numpy(dtype=float))
            interval = np.abs(rows[["low", "high"]].to_numpy().T - rows["TPR"].to_numpy())
            ax.errorbar(x, rows["TPR"], interval, label=label, **style)
            label = None
    if len(shown):
        ax.axhline(0.001, color="#555555", ls=":", lw=1)
        epsilon_axis(ax)
        ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=2))
        ax.set_ylim(bottom=0)
        ax.legend(frameon=False, fontsize=7.5, loc="upper center", bbox_to_anchor=(0.68, 1))
    n_models = int(shown["models"].max()) if len(shown) else 0
    ax.set_ylabel("members found at 0.1 % false alarms")
    ax.set_title(f"{title(TWEETS, 5)}: likelihood ratio attack, {n_models} shadow models", loc="left", fontsize=9)
    for ax in axes[1]:
        ax.set_xlabel("epsilon for a document")
    figure.savefig(path, dpi=130, pil_kwargs={"optimize": True})


def per_cent(found):
    """Return mean and range of shares, in per cent."""
    values = 100 * np.asarray(found, dtype=float)
    if not len(values) or np.isnan(values).any():
        return "not measured"
    spread = f" ({values.min():.0f} to {values.max():.0f})" if len(values) > 1 else ""
    return f"{values.mean():.1f}{spread}"


def share_table(table):
    """Return the shares: one row for each model, one column for each epsilon."""
    found = table.groupby([*SETTING, "unit", "adjacency", "model", "status", "epsilon"], sort=False)["share"]
    wide = found.mean().mul(100).round(1).unstack("epsilon")
    wide = wide[sorted(wide.columns)].rename(
        columns=lambda epsilon: "no noise" if np.isinf(epsilon) else f"{epsilon:g}"
    )
    seeds = (
        table.groupby([*SETTING, "unit", "adjacency", "model", "status"], sort=False)["seed"].nunique().rename("seeds")
    )
    wide = wide.join(seeds).reset_index()
    wide["model"] = pd.Categorical(wide["model"], COLORS)
    wide["corpus"] = pd.Categorical(wide["corpus"], CORPORA)
    return wide.sort_values([*SETTING, "unit", "model"])


def guarantee_table(table):
    """Return, for each epsilon asked, what is proven: of the unit, and of a whole document."""
    rows = table[(table["corpus"] == TWEETS) & np.isfinite(table["epsilon"])]
    rows = rows.drop_duplicates(["model", "epsilon"])
    rows = rows[rows["status"].eq("claimed") | ~rows["unit"].eq("document")]
    lines = []
    for model in COLORS:
        of_model = rows[rows["model"] == model].sort_values("epsilon")
        if len(of_model):
            first = of_model.iloc[0]
            line = {"model": model, "unit": f"{first['unit']}, {first['adjacency']}", "status": first["status"]}
            for row in of_model.to_dict("records"):
                true, document = row["true epsilon"], row["document epsilon"]
                said = "nothing" if math.isnan(true) else f"{true:.3g}"
                line[f"{row['epsilon']:g}"] = said if math.isnan(document) else f"{said}; {document:,.0f}"
            lines.append(line)
    return pd.DataFrame(lines)


def measure_table(table, attacks):
    """Return the other measures, of proven mechanisms that protect documents or users."""
    keys = [*SETTING, "model", "epsilon"]
    table = table.merge(attacks[[*keys, "TPR", "AUC"]], how="left", on=keys)
    table["TPR %"] = 100 * table["TPR"]
    rows = table[(table["status"] == "proven") & table["unit"].isin(["document", "user"])]
    rows = rows[np.isin(rows["epsilon"], [1, 5, math.inf])].sort_values("epsilon", kind="stable")
    rows = rows.assign(epsilon=["no noise" if np.isinf(epsilon) else f"{epsilon:g}" for epsilon in rows["epsilon"]])
    values = {"perplexity": 1, "c_npmi": 3, "accuracy": 3, "TPR %": 2, "AUC": 2, "cpu s": 2}
    rows["model"] = pd.Categorical(rows["model"], COLORS)
    rows["corpus"] = pd.Categorical(rows["corpus"], CORPORA)
    means = rows.groupby([*SETTING, "model", "epsilon"], observed=True)[list(values)].mean()
    return means.round(values).reset_index().dropna(axis=1, how="all")


def vocabulary_table(table, words):
    """Return shares over a fixed vocabulary and over a private one, and the gains in nats a word of the test texts."""
    words = own_shares(words)
    words["gain"] = np.log(words["unigram"] / words["perplexity"]) * words["tokens kept"]
    n_seeds = words.groupby([*SETTING, "model", "epsilon"]).size()
    words = words.groupby([*SETTING, "model", "epsilon"]).mean(numeric_only=True)
    lines = []
    for (corpus, topics, model, epsilon), row in words.iterrows():
        fixed = table[(table["corpus"] == corpus) & (table["topics"] == topics) & (table["epsilon"] == epsilon)]
        fixed = fixed[fixed["model"] == model]
        kept = row["tokens kept of fixed"]
        lines.append(
            {
                "corpus": corpus,
                "topics": topics,
                "model": model,
                "total epsilon": f"{epsilon:g}",
                "of topics": round(row["epsilon of topics"], 2),
                "words": round(row["words"]),
                "share": round(100 * row["share"], 1),
                "share, fixed words": round(100 * fixed["own share"].mean(), 1),
                "points behind": round(100 * (fixed["own share"].mean() - row["share"]), 1),
                "seeds": int(n_seeds[corpus, topics, model, epsilon]),
                "gain": round(row["gain"], 3),
                "gain, fixed words": round(kept * np.log(fixed["unigram"] / fixed["perplexity"]).mean(), 3),
            }
        )
    return pd.DataFrame(lines)


def ablation_table(table):
    """Return how much each option changes the share, in points, beside the estimator as it is."""
    table = own_shares(table, 100)
    keys = [*SETTING, "model", "epsilon", "seed"]
    base = table[table["option"] == "as it is"].set_index(keys)["share"].rename("base")
    table = table.join(base, on=keys)
    table["value"] = np.where(table["option"] == "as it is", table["share"], table["share"] - table["base"])
    table["setting"] = [f"{c}, epsilon {e:g}" for c, e in zip(table["corpus"], table["epsilon"], strict=True)]
    wide = table.groupby(["model", "option", "setting"], sort=False)["value"].mean().unstack("setting")
    wide = wide.loc[:, list(dict.fromkeys(table.sort_values(["corpus", "epsilon"])["setting"]))]
    formatted = wide.map(lambda value: "" if np.isnan(value) else f"{value:+.1f}")
    first = wide.xs("as it is", level="option", drop_level=False)
    formatted.loc[first.index] = first.map(lambda value: "" if np.isnan(value) else f"{value:.1f} %")
    return formatted.reset_index()


def little_table(table):
    """Return the shares of the same estimator without noise at small epsilon, with and without public vectors."""
    table = own_shares(table, 100)
    keys = [*SETTING, "model", "help"]
    shares = table.groupby([*keys, "epsilon"], sort=False)["share"].mean().round(1).unstack("epsilon")
    shares = shares[sorted(shares.columns)].rename(columns=lambda epsilon: f"{epsilon:g}")
    seeds = table.groupby([*keys, "epsilon"], sort=False)["seed"].nunique().groupby(keys, sort=False)
    seeds = pd.Series(
        [
            f"{least}" if least == most else f"{least} to {most}"
            for least, most in zip(seeds.min(), seeds.max(), strict=True)
        ],
        seeds.min().index,
        name="seeds",
    )
    return shares.join(seeds).reset_index()


GOALS = (  # of little budget: corpus, topics, epsilon, and the shares aimed at without and with vectors, in per cent
    *((NEWS, 10, epsilon, *goals) for epsilon, *goals in ((0.5, 20, 45), (1, 55, 65), (2, 75, 80), (5, 90, 92))),
    *((NEWS, 20, epsilon, None, goal) for epsilon, goal in ((1, 50), (2, 70), (5, 88))),
    (TWEETS, 5, 1, 40, 40),
    ("NIPS", 10, 1, 20, 20),
    (ENRON, 10, 2, 20, 45),
    (ALL_TWEETS, 5, 5, 60, 60),
)
MEAN_GOALS = ((0.5, 15, 30), (1, 40, 55), (2, 60, 75), (5, 85, 88))  # of the corpora with ten topics; as above


def goal_table(table):
    """Return what was aimed at with little budget, and what was measured: mean and range of the seeds, in per cent.

    The share of a mean over corpora is, for each seed, that of all of them with ten topics.
    """
    table, mean = own_shares(table), "mean of the corpora"
    keys = ["epsilon", "model", "help"]
    of_corpora = table[table["topics"] == 10].groupby([*keys, "seed"])["share"].mean().reset_index()
    table = pd.concat([table, of_corpora.assign(corpus=mean, topics=10)])
    cells, lines = table.groupby([*SETTING, *keys])["share"], []
    for corpus, topics, epsilon, *goals in (*GOALS, *((mean, 10, *goals) for goals in MEAN_GOALS)):
        line = {"setting": f"{corpus}, K = {topics}, epsilon {epsilon:g}"}
        for aid, goal in zip(("none", "vectors"), goals, strict=True):
            named = "" if aid == "none" else f", {aid}"
            line[f"goal{named}"] = "" if goal is None else goal
            for model in reversed(MAIN):
                key = (corpus, topics, epsilon, model, aid)
                line[f"{model}{named}"] = per_cent(cells.get_group(key) if key in cells.groups else [])
        lines.append(line)
    return pd.DataFrame(lines)


def floor_table(table):
    """Return how far the share is below that of the best mixture of word frequencies: mean and most over the corpora.

    Points of the share of ten topics without noise. Negative: above the mixture.
    """
    table = table[table["perplexity"].notna()].copy()
    gap = table["unigram"] - table["non-private"]
    table["below"] = 100 * (table["perplexity"] - table["floor"]) / gap
    setting = ["model", "topics", "help", "epsilon"]
    of_corpora = table.groupby(["corpus", *setting], sort=False, as_index=False)["below"].mean()  # of the seeds
    found = of_corpora.groupby(setting, sort=False)["below"].agg(["mean", "max"])
    text = found["mean"].map("{:.1f}".format) + " (" + found["max"].map("{:.1f}".format) + ")"
    text = text.unstack("epsilon", fill_value="").sort_index(level=[0, 1], sort_remaining=False)
    return text.rename(columns=lambda epsilon: f"{epsilon:g}").reset_index()


def much_table(table):
    """Return the gain of topics at large epsilon over that of rounds without noise, in per cent: means of the seeds."""
    keys = [*SETTING, "model"]
    table = table.assign(gain=table["unigram"] - table["perplexity"])
    gains = table.groupby([*keys, "epsilon"], sort=False)["gain"].mean().unstack("epsilon")
    shares = gains.div(gains.pop(math.inf), axis=0).mul(100).round(1)
    return shares.rename(columns=lambda epsilon: f"{epsilon:g}").reset_index()


def short_table(table):
    """Return perplexities of texts of few words: of one topic, and means of more, with a vote for the prior or not."""
    table = table[table["perplexity"].notna() & np.isfinite(table["epsilon"])]
    keys = ["corpus", "words", "epsilon"]
    one = table[(table["topics"] == 1) & (table["model"] == "VIPSLDA")].groupby(keys)["perplexity"].mean()
    more = table[table["topics"] > 1].groupby([*keys, "model", "help"])["perplexity"].mean().unstack(["model", "help"])
    columns = {"frequencies": one}
    for model in reversed(MAIN):
        columns |= {model: more[model, "none"], f"{model}, fixed": more[model, "fixed prior"]}
    return pd.DataFrame(columns).round(0).astype(int).reset_index().astype({"epsilon": int})


def short_exact_table(table):
    """Return perplexities of texts of few words without noise: by default, with other priors, and of tomotopy."""
    table = table[table["perplexity"].notna() & np.isinf(table["epsilon"])]
    keys = ["corpus", "words", "topics"]
    columns = {"frequencies": table.groupby(keys)["unigram"].mean()}
    for model in reversed(MAIN):
        found = table[table["model"] == model].groupby([*keys, "help"])["perplexity"].mean().unstack("help")
        names = {"none": model, "fixed prior": f"{model}, fixed", "infer": f'{model}, "infer"'}
        names |= {"vote": f"{model}, vote", "tomotopy": "tomotopy"}
        columns |= {name: found[help_] for help_, name in names.items() if help_ in found}
    return pd.DataFrame(columns).round(0).astype(int).reset_index()


def falls(table, deviations=2.0):
    """Return where more epsilon is clearly worse: pairs of settings whose mean shares fall by more than chance.

    The standard error of a mean share is the deviation of single fits, pooled over all cells of the corpus that have
    two seeds or more, over the root of the number of seeds. A fall counts if it is larger than `deviations` standard
    errors of the difference; pairs are of neighbouring epsilons of the same corpus, topics, model and help.

    Returns
    -------
    falls : DataFrame
        Columns of the setting, "from" and "to" (epsilons), "fall" and "standard error" in points of the share.
    """
    table = own_shares(table, 100)
    keys, found = [*SETTING, "model", "help"], []
    for _, of_corpus in table.groupby("corpus", sort=False):
        cells = of_corpus.groupby([*keys, "epsilon"])["share"].agg(["mean", "var", "count"])
        several = cells[cells["count"] > 1]
        if not len(several):
            continue
        degrees = several["count"] - 1
        single = math.sqrt((several["var"] * degrees).sum() / degrees.sum())
        for setting, rows in cells.groupby(keys):
            rows = rows.reset_index("epsilon")
            for (_, less), (_, more) in pairwise(rows.iterrows()):
                error = single * math.sqrt(1 / less["count"] + 1 / more["count"])
                if less["mean"] - more["mean"] > deviations * error:
                    values = (less["epsilon"], more["epsilon"], less["mean"] - more["mean"], error)
                    found.append(
                        dict(zip([*keys, "from", "to", "fall", "standard error"], [*setting, *values], strict=True))
                    )
    return pd.DataFrame(found, columns=[*keys, "from", "to", "fall", "standard error"])


def checks(table):
    """Return what was asked for and what was measured, by shares of the gain of the same estimator."""

    def found(corpus, topics, epsilon, model):
        rows = table[(table["corpus"] == corpus) & (table["topics"] == topics) & (table["model"] == model)]
        return rows.loc[rows["epsilon"] == epsilon, "own share"]

    wanted = ((NEWS, 10, 5, 85), (NEWS, 20, 5, 65), (NEWS, 10, 1, 40), (TWEETS, 5, 5, 50), (ALL_TWEETS, 5, 5, 50))
    lines = [
        {"setting": f"{corpus}, K = {topics}, epsilon {epsilon}", "at least %": least}
        | {model: per_cent(found(corpus, topics, epsilon, model)) for model in MAIN}
        for corpus, topics, epsilon, least in wanted
    ]
    return pd.DataFrame(lines)


def main():
    """Write all."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "doc" / "frontier")
    parser.add_argument("--no-pictures", action="store_true", help="tables only")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    stored = {path.stem: pd.read_csv(path) for path in options.results.glob("frontier*.csv")}
    table = with_shares(stored["frontier"])
    attacks = stored.get(
        "frontier_attack", pd.DataFrame(columns=[*SETTING, "model", "epsilon", "TPR", "AUC", "models"])
    )
    tables = {
        "share": share_table(table),
        "guarantee": guarantee_table(table),
        "measure": measure_table(table, attacks),
        "check": checks(table),
    }
    more = {
        "vocabulary": partial(vocabulary_table, table),
        "ablation": ablation_table,
        "little": little_table,
        "floor": floor_table,
        "short": short_table,
        "much": much_table,
    }
    tables |= {name: make(stored[f"frontier_{name}"]) for name, make in more.items() if f"frontier_{name}" in stored}
    if "frontier_short" in stored:
        tables["short_exact"] = short_exact_table(stored["frontier_short"])
    if (little := stored.get("frontier_little")) is not None:
        tables["goals"] = goal_table(little)
        print(f"clearly worse with more epsilon\n{falls(little).to_string(index=False)}\n")
    for name, values in tables.items():
        values.to_csv(options.output / f"{name}.csv", index=False, lineterminator="\n")
        print(f"{name}\n{values.to_string(index=False)}\n")
    if options.no_pictures:
        return
    draw_shares(table, options.output / "share.png")
    draw_units(table, options.output / "units.png")
    draw_measures(table, attacks, options.output / "measures.png")


if __name__ == "__main__":
    main()
