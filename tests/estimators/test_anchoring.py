"""The anchor's distances: what they are measured in does not depend on how a table was sorted."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nescio.estimators.anchoring import MOST_REFERENCE_ROWS, anchor_centres, place_anchor

ROWS = 20_000


def test_the_spacing_is_that_of_the_whole_table_however_it_is_sorted():
    rng = np.random.default_rng(0)
    x = torch.as_tensor(np.exp(rng.normal(size=(ROWS, 2))), dtype=torch.float32)
    x = x[x[:, 0].argsort()]
    pool = torch.as_tensor(9.0 * rng.normal(size=(1, 500, 2)), dtype=torch.float32)
    anchor = place_anchor(x, anchor_centres(x, 1), pool, seed=1)
    usual = lambda rows: float(anchor.distance_to_others(rows)[anchor.distance_to_others(rows) > 0].median())
    assert anchor.spacing == pytest.approx(usual(x), rel=0.03)
    assert usual(x[:MOST_REFERENCE_ROWS]) < 0.9 * anchor.spacing  # the first rows lie closer together
