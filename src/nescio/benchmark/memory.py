"""What a long-lived worker asks of the C library: to keep the memory that arrays give back."""

from __future__ import annotations

import ctypes

__all__ = ["keep_memory"]

# The numbers of glibc's malloc.h, which are part of its interface.
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
KEPT = 2**30  # bytes that may lie free at the end of the heap
STEP = 2**26  # bytes by which the heap grows
LARGEST = 2**30  # bytes of an array that still comes from the heap


def keep_memory() -> bool:
    """Let this process keep up to a GiB of free memory; whether it could be asked, which only glibc can.

    A training step gives back buffers of a megabyte and asks for as much in the next one. By default glibc returns such
    memory to the system each time, which hands it out again page by page, filled with zeros: a twentieth of the
    time of a stack, a tenth where matrices are large.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    return all([set_option(TRIM_THRESHOLD, KEPT), set_option(TOP_PAD, STEP), set_option(MMAP_THRESHOLD, LARGEST)])
