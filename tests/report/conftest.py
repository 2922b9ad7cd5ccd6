"""Made-up fits: smooth curves with the shape of the real ones, so that drawing can be tested without training."""

from __future__ import annotations

import numpy as np
import pytest

from nescio.datasets.toy import toy_regression, toy_std
from nescio.report.statistics import ToyFit


def made_up_fit(data: str, method: str, level: float) -> ToyFit:
    hole = (4.0, 7.0) if data == "shifted" else None
    toy = toy_regression(n=80, seed=3, hole=hole)
    x = np.linspace(-25.0, 35.0, 301)
    beyond = np.clip(np.maximum(-x, x - 10.0), 0.0, 4.0) / 4.0
    std = (1.0 - beyond) * toy_std(np.clip(x, 0, 10)) + beyond * (level if method == "d-vv" else 0.8)
    mean = np.clip(x, 0, 10) * np.sin(np.clip(x, 0, 10)) - 4.0 * np.maximum(x - 10.0, 0.0)
    return ToyFit(data, method, toy.x[:, 0], toy.y, x, mean, std, 0.8 * std, 0.6 * std, toy_std(x), level, hole)


@pytest.fixture(scope="session")
def fits():
    return [
        made_up_fit(data, method, level)
        for data, level in (("standard", 4.2), ("shifted", 3.9))
        for method in ("d-vv", "vv")
    ]
