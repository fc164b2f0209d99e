"""Draws a second of the integer samplers, beside a rounded numpy Gaussian (unsafe as privacy noise)."""

import argparse
import time

import numpy as np

from skdplda.privacy._noise import discrete_laplace, rounded_gaussian


def numpy_rounded_gaussian(sigma, shape, random_state=None, n_threads=1):
    """Floating-point reference: predictable generator, truncated tails."""
    return np.rint(np.random.default_rng(random_state).normal(0.0, sigma, shape)).astype(np.int64)


def best_rate(draw, scale, shape, repeats, **options):
    """Millions of draws a second, of the best repeat."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        draw(scale, shape, **options)
        seconds.append(time.perf_counter() - start)
    return np.prod(shape) / min(seconds) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", type=int, nargs="+", default=[100, 7000])
    parser.add_argument("--scales", type=float, nargs="+", default=[0.5, 10.0, 100.0, 1e4, 1e9])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    shape = tuple(arguments.shape)
    print(f"{'law':<24}{'scale':>10}{'first ms':>10}{'seeded M/s':>12}{'system M/s':>12}")
    for draw in (rounded_gaussian, discrete_laplace, numpy_rounded_gaussian):
        for scale in arguments.scales:
            start = time.perf_counter()
            draw(scale, 1, random_state=0)  # builds the table
            first = 1e3 * (time.perf_counter() - start)
            rates = [
                best_rate(draw, scale, shape, arguments.repeats, random_state=seed, n_threads=arguments.threads)
                for seed in (0, None)
            ]
            print(f"{draw.__name__:<24}{scale:>10g}{first:>10.1f}{rates[0]:>12.1f}{rates[1]:>12.1f}")


if __name__ == "__main__":
    main()
