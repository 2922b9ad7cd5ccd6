"""What a long-lived worker asks of the C library: to keep the memory that arrays give back."""

from __future__ import annotations

import ctypes

__all__ = ["keep_memory"]

# The numbers of these settings in glibc's malloc.h.
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
LARGEST = 2**25  # bytes of an array that comes from the heap: the most that glibc has always taken
KEPT = 2**30  # bytes that may lie free at the end of the heap: more than any stack of the comparison gives back at once
STEP = 2**26  # bytes by which the heap grows: a few of the largest arrays


def keep_memory() -> bool:
    """Let this process keep free memory, for the rest of its life; whether it could be asked, which only glibc can.

    Up to a GiB at the end of the heap, and whatever lies free between what is in use. A training step gives back
    buffers of a megabyte and asks for as much in the next one. Left alone, glibc returns such memory to the system
    again and again, and the system hands it out anew page by page, filled with zeros.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    # Each of them stops glibc from moving the threshold of mapping by itself: if that is refused, the rest would harm.
    if not set_option(MMAP_THRESHOLD, LARGEST):
        return False
    return bool(set_option(TRIM_THRESHOLD, KEPT)) and bool(set_option(TOP_PAD, STEP))
