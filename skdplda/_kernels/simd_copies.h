/* Compile the file COPIES once for each kind of processor; see simd.h.
 *
 * There TARGET(name) tells the copies apart, and SIMD is 0, 1 (AVX2) or 2 (AVX-512). gcc has macros for what a target may
 * use, clang has not, so that SIMD is what the copies ask. simd_widest() asks the processor for the same extensions.
 */
#define SIMD 0
#define TARGET(name) JOIN(name, plain)
#include COPIES
#undef TARGET
#undef SIMD
#ifdef SIMD_COPIES
#define SIMD 1
#define TARGET(name) JOIN(name, avx2)
#define EXTENSIONS "avx2,fma,bmi,bmi2,popcnt"
#include "simd_copy.h"
#define SIMD 2
#define TARGET(name) JOIN(name, avx512)
#define EXTENSIONS "avx2,fma,bmi,bmi2,popcnt,avx512f,avx512vl,avx512bw,avx512dq,avx512cd,avx512vnni"
#include "simd_copy.h"
#endif
#undef COPIES
