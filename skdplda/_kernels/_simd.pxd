"""Which compiled copy of a kernel runs: the widest that the processor has, or the one that SKDPLDA_SIMD names."""

cdef extern from "simd.h" nogil:
    int simd_chosen
    int simd_widest()


cdef inline choose_simd():
    """Choose the copy for the kernel that includes this; called once, when the kernel is loaded."""
    global simd_chosen
    import os

    cdef int widest = simd_widest()
    names = ["plain", "avx2", "avx512"][:widest + 1]
    wanted = os.environ.get("SKDPLDA_SIMD")
    if wanted and wanted not in names:
        raise ValueError(f"SKDPLDA_SIMD must be one of {', '.join(names)} on this processor, or not set; got {wanted!r}")
    simd_chosen = names.index(wanted) if wanted else widest


cdef inline aligned_zeros(shape, dtype):
    """Zeros on a 64-byte boundary, as the vectors need."""
    import numpy as np

    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    buffer = np.zeros(size + 64, np.uint8)
    first = -buffer.ctypes.data % 64
    return buffer[first:first + size].view(dtype).reshape(shape)
