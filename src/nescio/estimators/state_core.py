"""The core of a saved regressor, read back: every shape and bound is checked before anything is built."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from nescio._fields import Fields, Tensors
from nescio._validation import InputError
from nescio.distributions import Gamma
from nescio.estimators.core import Bag, CoreModel, Elsewhere, Mean
from nescio.networks import ACTIVATIONS, MLP, Anchor, ConcentrationRateHead, ModuleStack, Network, VarianceShapeHead

__all__ = ["as_array", "read_core"]

HEADS: dict[str, type[Any]] = {kind.__name__: kind for kind in (ConcentrationRateHead, VarianceShapeHead)}
MAPS = {"mean_network": 1, "precision_network": 2}
LARGEST_HEAD_SETTING = 80.0  # exp(80) is still a float32


def as_array(value: torch.Tensor) -> np.ndarray:
    """As it is written."""
    if value.dtype not in (torch.float16, torch.float32, torch.float64):
        raise InputError(f"a network with parameters of type {value.dtype} cannot be saved; use float32.")
    return value.detach().cpu().numpy()


def read_core(
    entry: Fields, tensors: Tensors, members: int, inputs: int, outputs: int, given: Mapping[str, Any]
) -> CoreModel:
    """The networks, head, prior and anchor of a model; networks of the user's own come from ``given``."""
    offset = torch.tensor(tensors.take("offset", (members, 2, 1, outputs)))
    prior = None
    if entry.flag("reference_prior"):
        prior = Gamma(
            torch.tensor(tensors.take("prior_concentration", (outputs,), positive=True)),
            torch.tensor(tensors.take("prior_rate", (outputs,), positive=True)),
        )
    bag = entry.whole("bag", least=1)
    if bag < members:
        raise InputError(f"the manifest's model.core.bag must not be below its {members} members.")
    anchor = _anchor(entry.optional_whole("anchor", least=1), tensors, inputs)
    told = entry.flag("distance_input")
    if told and anchor is None:
        raise InputError("the manifest's model.core.distance_input needs an anchor to measure from.")
    mean: Mean = Elsewhere(outputs)
    described, network = entry.section("mean_network"), given.get("mean_network")
    if described.peek("kind") != "mean":
        mean = Bag(*_network(described, "mean_network", tensors, bag, inputs, outputs, network))
    else:
        described.word("kind", ["mean"])
        described.done()
        if network is not None:
            raise InputError("this model's mean is not a network; leave mean_network out of load.")
    role = "precision_network"
    core = CoreModel(
        mean,
        *_network(entry.section(role), role, tensors, members, inputs + told, outputs, given.get(role)),
        _head(HEADS[entry.word("head", HEADS)], tensors),
        offset,
        prior,
        anchor,
        entry.flag("anchor_variance"),
        entry.flag("fade_mean"),
        told,
    )
    entry.done()
    return core


def _head(kind: type[Any], tensors: Tensors) -> Any:
    settings = tensors.take("head", (len(dataclasses.fields(kind)),), np.float64)
    if settings.min() < 0.0 or settings[0] == 0.0 or settings.max() > LARGEST_HEAD_SETTING:
        raise InputError("the tensor 'head' holds a setting beyond its bounds; the model file is damaged.")
    return kind(*settings.tolist())


def _anchor(centres: int | None, tensors: Tensors, inputs: int) -> Anchor | None:
    if centres is None:
        return None
    points = tensors.take("anchor_centres", (centres, inputs))
    start, full, spacing = tensors.take("anchor_range", (3,), np.float64).tolist()
    if not (0.0 <= start < full and spacing > 0.0):
        raise InputError(
            "the tensor 'anchor_range' must hold two ascending distances and a positive one; the model file is damaged."
        )
    return Anchor(torch.tensor(points), start, full, spacing)


def _network(
    entry: Fields, role: str, tensors: Tensors, members: int, inputs: int, outputs: int, factory: Any
) -> tuple[Network, dict[str, torch.Tensor]]:
    maps = MAPS[role]
    own = entry.word("kind", ("mlp", "given back")) == "mlp"
    if own and factory is not None:
        raise InputError(f"this model has a {role} of the library's own; leave {role} out of load.")
    if own:
        widths = [inputs, *entry.widths("hidden"), outputs]
        network: Network = MLP(inputs, outputs, widths[1:-1], entry.word("activation", ACTIVATIONS), maps)
        shapes: dict[str, tuple[tuple[int, ...], Any]] = {}
        for layer, (fan_in, fan_out) in enumerate(pairwise(widths)):
            shapes[f"weight{layer}"] = ((maps, fan_in, fan_out), np.float32)
            shapes[f"bias{layer}"] = ((maps, 1, fan_out), np.float32)
    else:
        if not callable(factory):
            raise InputError(f"the {role} is your own code and not in the file; give it back: load(path, {role}=...).")
        network = ModuleStack(lambda: factory(inputs, maps * outputs), maps)
        drawn = network.initialise([torch.Generator()])
        shapes = {name: (tuple(value.shape[1:]), as_array(value).dtype) for name, value in drawn.items()}
    entry.done()
    try:
        arrays = {n: tensors.take(f"{role}/{n}", (members, *shape), dtype) for n, (shape, dtype) in shapes.items()}
    except InputError as error:
        raise error if own else InputError(f"the {role} given back does not fit the saved one: {error}") from None
    return network, {name: torch.tensor(array) for name, array in arrays.items()}
