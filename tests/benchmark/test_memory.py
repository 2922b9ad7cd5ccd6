"""Memory that a worker gives back and asks for again."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from nescio.benchmark import memory

SCRIPT = """
import resource
import numpy as np
from nescio.benchmark.memory import keep_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for size in (400_000, 150_000, 300_000) * 20:  # one to three megabytes
        np.ones(size).sum()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
print(keep_memory(), end=" ")
faults()
print(first, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be asked to keep memory")
def test_memory_that_arrays_give_back_is_not_asked_of_the_system_again():
    own = ("LD_PRELOAD", "GLIBC_TUNABLES")
    plain = {name: value for name, value in os.environ.items() if name not in own and not name.startswith("MALLOC_")}
    plain |= {"NUMPY_MADVISE_HUGEPAGE": "0", "MALLOC_MMAP_THRESHOLD_": "131072"}  # each array mapped anew, at first
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=plain, check=False)
    assert done.returncode == 0, done.stderr
    kept, before, after = done.stdout.split()
    assert kept == "True"
    assert int(before) > 1_000  # pages
    assert int(after) < int(before) / 20


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_a_library_that_cannot_be_asked_is_left_alone(monkeypatch, error):
    def library(name):
        raise error

    monkeypatch.setattr(memory.ctypes, "CDLL", library)
    assert memory.keep_memory() is False


def test_where_the_threshold_is_refused_nothing_else_is_changed(monkeypatch):
    asked = []

    class Library:
        def mallopt(self, option, value):
            asked.append(option)
            return 0

    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: Library())
    assert memory.keep_memory() is False
    assert asked == [memory.MMAP_THRESHOLD]
