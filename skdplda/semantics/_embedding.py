"""Texts through a public embedding model, each on its own."""

from typing import Any

import numpy as np

from skdplda._checks import effective_n_jobs
from skdplda._reading import in_order
from skdplda._types import Function
from skdplda.semantics._word_vectors import WordVectorEmbedder

TRIED = ("tea", "iron and zinc", "the price of copper rose again in the second half of the year", "who?", "a b c") * 4


def embedding_of(embedder: Any) -> Function:
    """Return the function that makes rows of texts; `encode` before a call, which may be of something else."""
    for name in ("transform", "encode"):
        if hasattr(embedder, name) and not isinstance(embedder, (str, bytes)):
            return getattr(embedder, name)
    if not callable(embedder):
        raise ValueError(
            "embedder must have transform or encode, or be a function of a list of texts; got a"
            f" {type(embedder).__name__}. WordVectorEmbedder makes one of word vectors."
        )
    return embedder


def embedded(embedder: Any, texts: list[str], n_jobs: int | None = None) -> np.ndarray:
    """Return one row a text, a matrix of numbers.

    Batches are padded, and matrix products are rounded by their shape: a row would depend, if only by its last bits, on
    the texts beside it. So each text is given alone, but to an embedder of ours, whose rows do not. Threads give one
    each; ValueError if rows of public texts then are others than without threads.
    """
    embed, n_threads = embedding_of(embedder), effective_n_jobs(n_jobs) if len(texts) > len(TRIED) else 1
    if type(embedder) is WordVectorEmbedder:
        return embed(texts)
    if n_threads > 1:
        try:
            same = np.array_equal(embedded(embed, [*TRIED]), _rows(in_order(lambda t: embed([t]), TRIED, n_threads)))
        except Exception:
            embedded(embed, [*TRIED])  # raises what it does without threads
            same = False
        if not same:
            raise ValueError(
                f"n_jobs must be 1: the embedder makes other rows of public texts in {n_threads} threads than in one,"
                " or fails. Nothing was read or spent."
            )
    return _rows(in_order(lambda text: embed([text]), texts, n_threads))


def _rows(made_rows):
    """Return the rows that an embedder made of a text each, checked, as one matrix."""
    rows: list[np.ndarray] = []
    for made in made_rows:
        row = made.toarray() if hasattr(made, "toarray") else np.asarray(made)
        if row.ndim != 2 or len(row) != 1 or (rows and row.shape != rows[0].shape):
            raise ValueError(
                "embedder must make an array of shape (n_texts, n_dimensions) of a list of texts, always of the same"
                " dimensions; for a list of one text it made another."
            )
        try:
            rows.append(row.astype(np.float64))
        except (ValueError, TypeError):
            kind = type(row.flat[0]).__name__ if row.size else row.dtype
            raise ValueError(
                f"embedder must make an array of numbers of a list of texts; got entries of type {kind}."
            ) from None
    return np.concatenate(rows) if rows else np.empty((0, 1))
