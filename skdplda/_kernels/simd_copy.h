/* Compile the file COPIES once, for the processors that have EXTENSIONS; see simd_copies.h. */
#define SIMD_PRAGMA_OF(text) _Pragma(#text)
#define SIMD_PRAGMA(text) SIMD_PRAGMA_OF(text)
#ifdef __clang__
SIMD_PRAGMA(clang attribute push(__attribute__((target(EXTENSIONS))), apply_to = function))
#else
SIMD_PRAGMA(GCC push_options)
SIMD_PRAGMA(GCC target(EXTENSIONS))
#endif
#include COPIES
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef SIMD_PRAGMA
#undef SIMD_PRAGMA_OF
#undef EXTENSIONS
#undef TARGET
#undef SIMD
