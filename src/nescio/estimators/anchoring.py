"""Where the anchor goes: around the rows, and as far out as the pseudo-inputs reach."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.cluster import kmeans_plusplus
from torch import Tensor

from nescio._random import child_seed
from nescio.networks import Anchor

__all__ = ["MOST_REFERENCE_ROWS", "anchor_centres", "place_anchor"]

MOST_REFERENCE_ROWS = 10_000  # so that the cost stays linear in the number of rows
REACH = 16_384  # pseudo-inputs that tell how far they go
OUTERMOST = 64  # rows that a sample may have missed
CENTRES = 1_024  # close enough together for the rim of the data, and a few hundredths of the time of a prediction


def place_anchor(x: Tensor, centres: Tensor, points: Tensor, seed: int) -> Anchor:
    """The anchor around rows ``x (N, D)``, held by their ``centres``, with pseudo-inputs ``points (M, K, D)``.

    It takes over where nineteen of twenty pseudo-inputs are left behind.
    """
    anchor = Anchor(centres, 0.0, 1.0)
    reach = anchor.distance(points.flatten(0, 1)[:REACH])
    start = max(float(reach.quantile(0.95)), 1e-6)
    # Drawn, since a table may be sorted.
    drawn = np.random.default_rng(child_seed(seed, "spacing")).permutation(len(x))[:MOST_REFERENCE_ROWS]
    usual = anchor.distance_to_others(x[drawn])
    spacing = float(usual[usual > 0].median()) if bool((usual > 0).any()) else 1.0
    return Anchor(anchor.centres, start, 2.0 * start, spacing)


def anchor_centres(x: Tensor, seed: int) -> Tensor:
    """About a thousand rows that cover the data: drawn apart from each other, and the outermost rows as well."""
    rng = np.random.RandomState(child_seed(seed, "centres") % 2**32)
    rows = x.numpy()[rng.permutation(len(x))[:MOST_REFERENCE_ROWS]]
    if len(rows) > CENTRES:
        rows = kmeans_plusplus(rows, CENTRES, random_state=rng, n_local_trials=1)[0]
    centres = torch.as_tensor(rows)
    if len(x) <= MOST_REFERENCE_ROWS:
        return centres
    away = Anchor(centres, 0.0, 1.0).distances(x)
    return torch.cat([centres, x[away.topk(OUTERMOST).indices]])
