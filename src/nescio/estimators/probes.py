"""Probe rows: a few rows and what the model said of them when it was saved, to hold a loaded model to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from nescio._fields import Tensors
from nescio._validation import InputError, join_names

__all__ = ["check_probes", "probe_arrays", "take_probes"]

N_PROBES = 8
TOLERANCE = 1e-3
"""Relative; of a standardised unit for means. Another device or library rounds a float32 network's answers a
thousand times more finely, another network gives other answers altogether."""


def _probe_rows(model: Any) -> np.ndarray:
    """Half of the rows from inside the data, half of them ever farther out, standardised, ``(8, D)``."""
    reference = model.support_.neighbours.reference.double().cpu().numpy()
    inside = reference[np.linspace(0, len(reference) - 1, N_PROBES // 2).astype(int)]
    direction = np.full(reference.shape[1], reference.shape[1] ** -0.5)
    anchor = model.core_.anchor
    start, full = (2.0, 4.0) if anchor is None else (anchor.start, anchor.full)
    steps = np.array([0.5 * start, 0.7 * start + 0.3 * full, 0.3 * start + 0.7 * full, 2.0 * full])
    edge = max(float((reference @ direction).max()), 0.0)
    return np.concatenate([inside, (edge + steps)[:, None] * direction])


def _answers(model: Any, rows: np.ndarray) -> dict[str, np.ndarray]:
    level = None if model.level_ is None else model.level_(rows * model.x_scale_ + model.x_shift_)
    far = None if level is None else torch.as_tensor(level, dtype=torch.float32)
    loc, q = model.core_.posterior(torch.tensor(rows, dtype=torch.float32), None, far)
    mean = loc.double().mean(0).numpy() * model.y_scale_ + model.y_shift_
    if model.foreign_ is not None:
        mean[: N_PROBES // 2] = _foreign_mean(model, rows[: N_PROBES // 2], mean[: N_PROBES // 2])
    return {
        "probe_mean": mean[:, 0] if model.single_target_ else mean,
        "probe_concentration": q.concentration.double().numpy(),
        "probe_rate": q.rate.double().numpy(),
        "probe_score": model.support_.score(rows),
    }


def _foreign_mean(model: Any, rows: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """What a mean that is not ours says inside the data; one that wants the user's own frame cannot be asked."""
    made_up = model._rows_from_encoded(rows * model.x_scale_ + model.x_shift_)
    if not hasattr(model, "feature_names_in_"):
        made_up = made_up._replace(given=made_up.encoded)
    found = model.foreign_.locations(made_up)
    return otherwise if found is None else found


def probe_arrays(model: Any) -> dict[str, np.ndarray]:
    """The rows and the answers, for the file."""
    rows = _probe_rows(model)
    answers = _answers(model, rows)
    if not all(np.isfinite(answer).all() for answer in answers.values()):
        raise InputError("this model's predictions are not finite near its data, so it is not saved; fit it again.")
    return {"probe_inputs": rows, **answers}


def take_probes(tensors: Tensors, members: int, inputs: int, outputs: int, single: bool) -> dict[str, np.ndarray]:
    """The rows and the answers, from the file."""
    shapes: dict[str, tuple[int, ...]] = {
        "probe_inputs": (N_PROBES, inputs),
        "probe_mean": (N_PROBES,) if single else (N_PROBES, outputs),
        "probe_concentration": (members, N_PROBES, outputs),
        "probe_rate": (members, N_PROBES, outputs),
        "probe_score": (N_PROBES,),
    }
    return {name: tensors.take(name, shape, np.float64) for name, shape in shapes.items()}


def check_probes(model: Any, probes: dict[str, np.ndarray], given: Mapping[str, Any]) -> None:
    """Refuse a model whose answers are not those it gave when it was saved."""
    expected = dict(probes)
    try:
        answers = _answers(model, expected.pop("probe_inputs"))
    except (
        ValueError,
        TypeError,
        LookupError,
        RuntimeError,
    ) as error:  # a regressor, a function or a module of the user's
        if "mean" not in given or isinstance(error, InputError):
            raise
        why = " ".join(str(error).split()).rstrip(".")
        raise InputError(f"the mean given back cannot predict the rows stored with the model: {why}.") from None
    unit = model.y_scale_[0] if model.single_target_ else model.y_scale_
    for name, answer in answers.items():
        slack = TOLERANCE * (unit if name == "probe_mean" else 0.0)
        if not (np.abs(answer - expected[name]) <= slack + TOLERANCE * np.abs(expected[name])).all():
            what = f"with the {join_names(given)} given back, the" if given else "the"
            raise InputError(f"{what} model does not give the predictions that were stored with it.")
