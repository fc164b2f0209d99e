/* Gaps between the marks of a randomized report; proofs/reports.py shows what is said here. */
#ifndef SKDPLDA_REPORT_GAPS_H
#define SKDPLDA_REPORT_GAPS_H
#include <stdint.h>

/* How many numbers of `survival`, which descend, are above a word: at least g + 1 of them for survival[g] words of 2^64.
 * `first` is at most the result. */
static inline int64_t gap_of(const uint64_t *survival, int64_t reach, uint64_t word, int64_t first) {
    while (first < reach && word < survival[first]) first++;
    return first;
}
#endif
