/* Copies of a kernel for three kinds of x86-64 processor, chosen when the kernel is loaded; elsewhere there is one.
 *
 * SIMD_COPIES tells whether the others are compiled; simd_copies.h compiles them. All copies give the same bits: they add
 * the same numbers in the same order, in vectors of the size that the processor has.
 */
#ifndef SKDPLDA_SIMD_H
#define SKDPLDA_SIMD_H
#if !defined(__GNUC__)
#error "skdplda needs gcc or clang"
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#define SIMD_COPIES
#endif

#define INLINE static inline __attribute__((always_inline))
#define JOIN(name, target) name##_##target

/* Lanes of two vectors, by number; numbers are of type `numbers` where the older form takes them as a vector. */
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(numbers, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(numbers, a, b, ...) __builtin_shuffle(a, b, (numbers){__VA_ARGS__})
#endif

static int simd_chosen = 0; /* 0, 1 or 2: the copy that runs */

/* The widest copy that this processor runs. */
static int simd_widest(void) {
#ifdef SIMD_COPIES
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi")
        || !__builtin_cpu_supports("bmi2") || !__builtin_cpu_supports("popcnt"))
        return 0;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512bw")
        || !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512cd")
        || !__builtin_cpu_supports("avx512vnni"))
        return 1;
    return 2;
#else
    return 0;
#endif
}

#ifdef SIMD_COPIES
#define DISPATCH(name, ...) \
    (simd_chosen == 2 ? name##_avx512(__VA_ARGS__) : simd_chosen == 1 ? name##_avx2(__VA_ARGS__) : name##_plain(__VA_ARGS__))
#else
#define DISPATCH(name, ...) name##_plain(__VA_ARGS__)
#endif
#endif
