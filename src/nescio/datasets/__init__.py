"""Numbers in: toy problems with a known truth, the UCI sets, image sets, and ways to split rows (no torch)."""

from __future__ import annotations

from nescio.datasets.benchmark_splits import Split, make_splits, usable_features
from nescio.datasets.images import ImageData, image_names, load_images, verify_images
from nescio.datasets.splits import blocks, folds, group_rows, grouped_train_test
from nescio.datasets.toy import ToyData, toy_mean, toy_regression, toy_std, toy_symmetrical, toy_symmetrical_std
from nescio.datasets.uci import UCIData, load_uci, uci_names, verify_uci

__all__ = [
    "ImageData",
    "Split",
    "ToyData",
    "UCIData",
    "blocks",
    "folds",
    "group_rows",
    "grouped_train_test",
    "image_names",
    "load_images",
    "load_uci",
    "make_splits",
    "toy_mean",
    "toy_regression",
    "toy_std",
    "toy_symmetrical",
    "toy_symmetrical_std",
    "uci_names",
    "usable_features",
    "verify_images",
    "verify_uci",
]
