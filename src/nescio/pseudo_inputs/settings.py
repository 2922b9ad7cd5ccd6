"""An estimator's constructor arguments as JSON and back: plain values, tuples and the library's own placements."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from nescio._fields import Fields, is_text
from nescio._validation import InputError
from nescio.pseudo_inputs.codes import CodeDescent
from nescio.pseudo_inputs.descent import MixtureDescent
from nescio.pseudo_inputs.level_set import LevelSet
from nescio.pseudo_inputs.noise import FarNoise, GaussianNoise, MultiScale
from nescio.pseudo_inputs.rejection import Rejected
from nescio.pseudo_inputs.toy import BruteForce, UniformIntervals

__all__ = ["settings_from_json", "settings_to_json"]

PLACEMENTS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        BruteForce,
        CodeDescent,
        FarNoise,
        GaussianNoise,
        LevelSet,
        MixtureDescent,
        MultiScale,
        Rejected,
        UniformIntervals,
    )
}


class _NotWritable(Exception):
    """A value that has no place in JSON."""


def settings_to_json(params: dict[str, Any], factories: Sequence[str]) -> dict[str, Any]:
    """Constructor arguments as JSON values.

    Sequences and arrays come back as tuples. Written as null: functions and regressors under the names of
    ``factories``, a ``random_state`` that is not a whole number, and a placement that is (or holds) a function of the
    user's. A density fitted inside a placement is left out.
    """
    written = {}
    for name, value in params.items():
        try:
            theirs = name in factories and (callable(value) or hasattr(value, "predict"))
            written[name] = None if theirs else _to_json(value)
        except _NotWritable as error:
            if name not in ("placement", "random_state"):
                raise InputError(
                    f"{name} holds {error}, which a model file cannot; save takes numbers, text and sequences of them."
                ) from None
            written[name] = None
    return written


def _to_json(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int)) or is_text(value):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
        return _to_json(value) if not isinstance(value, list) else [_to_json(one) for one in value]
    if isinstance(value, (list, tuple)):
        return [_to_json(one) for one in value]
    if PLACEMENTS.get(type(value).__name__) is type(value):
        return _placement_to_json(value)
    raise _NotWritable(f"a {type(value).__name__}" if not isinstance(value, float) else repr(value))


def _placement_to_json(placement: Any) -> dict[str, Any]:
    values = {field.name: getattr(placement, field.name) for field in dataclasses.fields(placement)}
    if isinstance(placement, LevelSet) and not isinstance(placement.density, str):
        values.update(density="mixture", level=None)  # the level was that of the density
    elif isinstance(placement, MixtureDescent):
        values["density"] = None
    elif isinstance(placement, Rejected):
        values["neighbours"] = None
    return {"placement": type(placement).__name__, "fields": {name: _to_json(one) for name, one in values.items()}}


def settings_from_json(values: dict[str, Any], known: list[str]) -> dict[str, Any]:
    """Constructor arguments again; what the file does not mention keeps its default."""
    settings = {}
    for name, value in values.items():
        if name not in known:
            raise InputError(f"the manifest has a parameter this version does not know: {name!a}.")
        settings[name] = _from_json(value, f"params.{name}")
    return settings


def _from_json(value: Any, where: str) -> Any:
    if value is None or isinstance(value, (bool, int)) or is_text(value):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list):
        return tuple(_from_json(one, where) for one in value)
    if isinstance(value, dict):
        return _placement_from_json(Fields(value, where), where)
    raise InputError(f"the manifest's {where} must be a finite number, a text, a list or a placement.")


def _placement_from_json(entry: Fields, where: str) -> Any:
    kind = PLACEMENTS[entry.word("placement", PLACEMENTS)]
    values = entry.section("fields").rest()
    entry.done()
    unknown = set(values) - {field.name for field in dataclasses.fields(kind)}
    if unknown:
        raise InputError(f"the manifest's {where} has a field {kind.__name__} does not know: {min(unknown)!a}.")
    decoded = {name: _from_json(value, f"{where}.{name}") for name, value in values.items()}
    try:
        return kind(**decoded)
    except InputError as error:
        raise InputError(f"the manifest's {where} is not a valid placement: {error}") from None
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"the manifest's {where} is not a valid {kind.__name__}.") from None
