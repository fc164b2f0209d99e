/* What _mixture.pyx calls: the copy that was chosen when the kernel was loaded. */
#include <stddef.h>
#include "arithmetic.h"
#define COPIES "segment_loops.h"
#include "simd_copies.h"

#define segment_likelihoods(...) DISPATCH(segment_likelihoods, __VA_ARGS__)
#define update_document(...) DISPATCH(update_document, __VA_ARGS__)
