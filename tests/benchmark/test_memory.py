"""Memory that a worker gives back and asks for again."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
import numpy as np
from nescio.benchmark.memory import keep_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for size in (40_000, 300_000, 2_000_000, 12_000_000) * 5:  # up to 96 MB
        np.ones(size).sum()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
print(keep_memory(), end=" ")
faults()
print(first, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be asked to keep memory")
def test_memory_that_arrays_give_back_is_not_asked_of_the_system_again():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    kept, before, after = done.stdout.split()
    assert kept == "True"
    assert int(before) > 1_000  # pages, small or huge ones as the system has it
    assert int(after) < int(before) / 20


def test_a_library_that_cannot_be_asked_is_left_alone(monkeypatch):
    from nescio.benchmark import memory

    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: object())
    assert memory.keep_memory() is False
