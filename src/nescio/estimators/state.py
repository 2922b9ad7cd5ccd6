"""A fitted regressor as named arrays and a plain description, and back: everything its predictions depend on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from nescio._fields import Fields, Tensors
from nescio._validation import InputError
from nescio.estimators.core import Bag, CoreModel, Elsewhere
from nescio.estimators.dissipative import DissipativeRegressor
from nescio.estimators.foreign import given_mean
from nescio.estimators.levels import given_level
from nescio.estimators.probes import check_probes, probe_arrays, take_probes
from nescio.estimators.state_columns import table_state, take_support, take_table
from nescio.estimators.state_conformal import conformal_from_state, conformal_to_state
from nescio.estimators.state_core import as_array, read_core
from nescio.estimators.variational_variance import VariationalVarianceRegressor
from nescio.networks import ACTIVATIONS, MLP, ModuleStack, Network
from nescio.pseudo_inputs.settings import settings_from_json, settings_to_json

__all__ = ["FACTORIES", "from_state", "given_networks", "to_state"]

Arrays = dict[str, np.ndarray]

ESTIMATORS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (DissipativeRegressor, VariationalVarianceRegressor)
}
NETWORKS = ("mean_network", "precision_network")
FACTORIES = (*NETWORKS, "mean", "outside")
"""Arguments that are the user's code: never written, given back at load."""


def to_state(model: Any) -> tuple[Arrays, dict[str, Any]]:
    """Arrays and description of a fitted regressor; the description holds JSON values only.

    Every number that predictions depend on is in the arrays; the description has names, counts and switches.
    """
    kind = type(model).__name__
    if ESTIMATORS.get(kind) is not type(model):
        raise InputError(f"save knows {' and '.join(ESTIMATORS)}; got {kind}.")
    if not hasattr(model, "core_"):
        raise InputError(f"this {kind} is not fitted, so there is nothing to save; call fit first.")
    core, support = model.core_, model.support_
    outputs = model.n_outputs_
    arrays = {name: getattr(model, f"{name}_") for name in ("x_shift", "x_scale", "y_shift", "y_scale", "inside_std")}
    arrays["offset"] = as_array(core.offset)
    arrays["head"] = np.array(dataclasses.astuple(core.head), dtype=np.float64)
    arrays["support_reference"], arrays["support_scores"] = as_array(support.neighbours.reference), support.scores
    if core.reference_prior is not None:
        arrays["prior_concentration"] = as_array(core.reference_prior.concentration.expand(outputs))
        arrays["prior_rate"] = as_array(core.reference_prior.rate.expand(outputs))
    if core.anchor is not None:
        arrays["anchor_centres"] = as_array(core.anchor.centres)
        arrays["anchor_range"] = np.array([core.anchor.start, core.anchor.full, core.anchor.spacing], dtype=np.float64)
    arrays |= probe_arrays(model)
    calibration, conformal = conformal_to_state(model.conformal_)
    arrays |= calibration
    for role, (_, parameters) in _networks(core).items():
        arrays |= {f"{role}/{name}": as_array(value) for name, value in parameters.items()}
    more, table = table_state(model)
    arrays |= more
    names, targets, ids = (getattr(model, given, None) for given in ("feature_names_in_", "target_names_", "id_names_"))
    description = {
        "class": kind,
        "params": settings_to_json(model.get_params(deep=False), FACTORIES),
        "fitted": {
            "n_features": int(model.n_features_in_),
            "n_outputs": int(outputs),
            "n_rows": int(model.n_rows_),
            "single_target": bool(model.single_target_),
            "feature_names": None if names is None else [str(name) for name in names],
            "target_names": None if targets is None else [str(name) for name in targets],
            "id_names": None if ids is None else [str(name) for name in ids],
            "shape": float(model.shape_),
            "kl_weight": float(model.kl_weight_),
            "level_function": model.level_ is not None,
        },
        "core": {
            "members": core.members,
            "bag": len(core.mean) if isinstance(core.mean, Bag) else core.members,
            "mean_network": {"kind": "mean"},
            **{role: _describe_network(*network) for role, network in _networks(core).items()},
            "head": type(core.head).__name__,
            "reference_prior": core.reference_prior is not None,
            "anchor": None if core.anchor is None else len(core.anchor.centres),
            "anchor_variance": bool(core.anchor_variance),
            "fade_mean": bool(core.fade_mean),
            "distance_input": bool(core.distance_input),
        },
        "table": table,
        "support": {
            "k": int(support.neighbours.k),
            "reference": len(support.neighbours.reference),
            "scores": len(support.scores),
        },
        "conformal": conformal,
    }
    return {name: np.ascontiguousarray(value) for name, value in arrays.items()}, description


def _networks(core: CoreModel) -> dict[str, tuple[Network, Mapping[str, torch.Tensor]]]:
    """The networks of a model and their parameters: two, or one where the mean is not ours."""
    found: dict[str, tuple[Network, Mapping[str, torch.Tensor]]] = {}
    if isinstance(core.mean, Bag):
        found["mean_network"] = core.mean.network, core.mean.parameters
    return {**found, "precision_network": (core.precision_network, core.precision_parameters)}


def _describe_network(network: Network, parameters: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    if not isinstance(network, MLP):
        return {"kind": "given back"}
    layers = sum(name.startswith("weight") for name in parameters)
    return {
        "kind": "mlp",
        "hidden": [int(parameters[f"weight{layer}"].shape[-1]) for layer in range(layers - 1)],
        "activation": next(name for name, function in ACTIVATIONS.items() if function is network._activation),
    }


def given_networks(model: Any) -> dict[str, Any]:
    """What must be given back to load this model."""
    given: dict[str, Any] = {
        role: lambda inputs, outputs, network=network: network._factory()
        for role, (network, _) in _networks(model.core_).items()
        if isinstance(network, ModuleStack)
    }
    given |= {} if model.level_ is None else {"outside": model.level_.function}
    return given if model.foreign_ is None else {**given, "mean": model.mean_}


def from_state(arrays: Arrays, description: Any, given: Mapping[str, Any], device: torch.device) -> Any:
    """The regressor that ``to_state`` described, on ``device``; ``given`` holds what is the user's own."""
    entry = Fields(description, "model")
    kind = ESTIMATORS[entry.word("class", ESTIMATORS)]
    params = settings_from_json(entry.section("params").rest(), kind._get_param_names())
    fitted, core, support = entry.section("fitted"), entry.section("core"), entry.section("support")
    described = entry.section("table")
    conformal = entry.optional_section("conformal")
    entry.done()

    tensors = Tensors(arrays)
    n_features, outputs = fitted.whole("n_features", least=1), fitted.whole("n_outputs", least=1)
    table = take_table(described, tensors, n_features, outputs)
    inputs = table.x_range.shape[1]
    single = fitted.flag("single_target")
    if single and outputs > 1:
        raise InputError(f"the manifest's model.fitted.single_target contradicts its {outputs} outputs.")
    attributes: dict[str, Any] = {
        "x_shift_": tensors.take("x_shift", (inputs,), np.float64),
        "x_scale_": tensors.take("x_scale", (inputs,), np.float64, positive=True),
        "y_shift_": tensors.take("y_shift", (outputs,), np.float64),
        "y_scale_": tensors.take("y_scale", (outputs,), np.float64, positive=True),
        "inside_std_": tensors.take("inside_std", (outputs,), np.float64, positive=True),
        "columns_": table.columns,
        "x_range_": table.x_range,
        "n_features_in_": n_features,
        "n_outputs_": outputs,
        "n_rows_": fitted.whole("n_rows", least=1),
        "single_target_": single,
        "shape_": fitted.number("shape", above=0.0),
        "kl_weight_": fitted.number("kl_weight", least=0.0),
    }
    names, targets = fitted.names("feature_names", n_features), fitted.names("target_names", outputs)
    ids, level_function = fitted.optional_names("id_names"), fitted.optional_flag("level_function")
    fitted.done()
    if table.columns is not None and names != table.columns.names:
        raise InputError("the manifest's model.fitted.feature_names are not those of its columns.")
    if names is not None:
        attributes["feature_names_in_"] = np.array(names, dtype=object)
    if targets is not None:
        attributes["target_names_"] = targets
    if ids is not None:
        attributes["id_names_"] = ids
    attributes["support_"] = take_support(support, tensors, inputs)
    attributes["level_"] = given_level(params, level_function, given, attributes["y_scale_"])
    attributes["conformal_"] = conformal_from_state(conformal, tensors, outputs)
    members = core.whole("members", least=1)
    probes = take_probes(tensors, members, inputs, outputs, single)
    attributes["core_"] = read_core(core, tensors, members, inputs, outputs, given).to(device)
    tensors.done()
    absent = isinstance(attributes["core_"].mean, Elsewhere)
    attributes["foreign_"] = foreign = given_mean(absent, given, params.get("prefit") is True, outputs)
    if foreign is not None:
        params["mean"] = foreign.predictors[0]  # what a new fit would clone

    model = kind(**{**params, **{name: given[name] for name in NETWORKS if name in given}})
    for name, value in attributes.items():
        setattr(model, name, value)
    check_probes(model, probes, given)
    return model
