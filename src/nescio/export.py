"""A fitted regressor as an ONNX graph: from raw numeric columns to distributions and verdicts, without this library."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from nescio._files import check_destination, written_beside
from nescio._validation import InputError
from nescio.calibration import EDGE, EDGE_RATE, INSIDE, OUTSIDE, OUTSIDE_RATE, TIE, UNKNOWN
from nescio.estimators.arrays import LARGEST
from nescio.estimators.core import Bag
from nescio.estimators.dissipative import DissipativeRegressor
from nescio.estimators.variational_variance import VariationalVarianceRegressor
from nescio.networks import ACTIVATIONS, MLP, VarianceShapeHead

__all__ = ["VERDICTS", "to_onnx"]

OPSET, IR_VERSION = 18, 8  # onnxruntime 1.14 reads both
VERDICTS = {0: INSIDE, 1: EDGE, 2: OUTSIDE, -1: UNKNOWN}
"""What the numbers of the output ``verdict`` mean."""
PLAIN = ("number", "boolean")
OPERATORS = {"tanh": "Tanh", "sigmoid": "Sigmoid", "elu": "Elu", "relu": "Relu", "softplus": "Softplus"}
FLOAT, DOUBLE, INT64 = 1, 11, 7  # ONNX's numbers for types


def to_onnx(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted regressor to ``path`` as ONNX.

    The graph takes ``X (N, D)``, float64, the columns in their order at fit, and gives in units of y and as float64:
    ``mean`` and ``std`` ``(N, P)`` of the mixture; ``member_mean``, ``concentration`` and ``rate`` ``(M, N, P)`` of the
    members, whose Student-t has 2 concentration degrees of freedom and the scale sqrt(rate/concentration); ``score``
    ``(N,)``, the distance from the data; ``support`` ``(N,)`` with ties counted half, where the model draws lots; and
    ``verdict`` ``(N,)``, int64, as in :data:`VERDICTS`. Names, levels and rates are in the metadata.

    Note that, like a saved model, the file holds up to 10,000 training rows (inputs only).
    """
    _refuse(model)
    check_destination(path)
    try:
        import onnx
    except ModuleNotFoundError:
        raise InputError("to_onnx needs the package onnx: pip install 'nescio[onnx]'.") from None
    graph = _Graph()
    _build(graph, model)
    with written_beside(path) as file:
        file.write(graph.model(onnx, model).SerializeToString())


def _refuse(model: Any) -> None:
    """One sentence on what has no place in a graph."""
    if type(model) not in (DissipativeRegressor, VariationalVarianceRegressor):
        raise InputError(
            f"to_onnx knows DissipativeRegressor and VariationalVarianceRegressor; got {type(model).__name__}."
        )
    if not hasattr(model, "core_"):
        raise InputError("this model is not fitted, so there is nothing to export; call fit first.")
    if model.columns_ is not None and not model.columns_.plain:
        odd = next(column for column in model.columns_.columns if column.kind not in PLAIN or column.width != 1)
        raise InputError(
            f"column '{odd.name}' is not a plain number ({odd.describe()['done']}), and only those are exported."
        )
    if getattr(model, "level_", None) is not None:
        raise InputError("the level outside is a function of yours, and only a number is exported.")
    mean = model.core_.mean
    if not isinstance(mean, Bag):
        raise InputError("the mean of this model is not the library's own network, and only that is exported.")
    for role, network in (("mean_network", mean.network), ("precision_network", model.core_.precision_network)):
        if not isinstance(network, MLP):
            raise InputError(f"the {role} of this model is not one of the library's own, and only those are exported.")


class _Graph:
    """Nodes and constants in the order they were asked for; a call adds a node and names its result."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str, list[str], list[str], dict[str, Any]]] = []
        self.constants: dict[str, np.ndarray] = {}
        self.outputs: list[tuple[str, int, list[Any]]] = []

    def __call__(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node; an input that is not a name becomes a float64 constant."""
        return self.several(operator, 1, *inputs, **attributes)[0]

    def several(self, operator: str, count: int, *inputs: Any, **attributes: Any) -> list[str]:
        """Add a node with several results."""
        names = [value if isinstance(value, str) else self.constant(value, np.float64) for value in inputs]
        results = [f"value{len(self.nodes)}_{number}" for number in range(count)]
        self.nodes.append((operator, names, results, attributes))
        return results

    def constant(self, value: Any, kind: Any) -> str:
        """The name of a new constant of this type."""
        name = f"constant{len(self.constants)}"
        self.constants[name] = np.array(value, dtype=kind, order="C")
        return name

    def whole(self, *values: int) -> str:
        """A constant list of whole numbers."""
        return self.constant(values, np.int64)

    def reduce(self, operator: str, value: str, axis: int, *, keep: bool = False) -> str:
        """A reduction over one axis."""
        return self(operator, value, self.whole(axis), keepdims=int(keep))

    def output(self, name: str, value: str, shape: list[Any], kind: int = DOUBLE) -> None:
        """Make a value an output of this name, shape and type."""
        self.nodes.append(("Identity", [value], [name], {}))
        self.outputs.append((name, kind, shape))

    def model(self, onnx: Any, regressor: Any) -> Any:
        """The whole as a checked ONNX model, with the metadata."""
        from nescio import __version__

        helper = onnx.helper
        nodes = [helper.make_node(kind, inputs, results, **rest) for kind, inputs, results, rest in self.nodes]
        constants = [onnx.numpy_helper.from_array(value, name) for name, value in self.constants.items()]
        outputs = [helper.make_tensor_value_info(*output) for output in self.outputs]
        inputs = [helper.make_tensor_value_info("X", DOUBLE, ["N", int(regressor.n_features_in_)])]
        graph = helper.make_graph(nodes, "nescio", inputs, outputs, constants)
        whole = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="nescio",
            producer_version=__version__,
        )
        helper.set_model_props(whole, _metadata(regressor))
        onnx.checker.check_model(whole, full_check=True)
        return whole


def _metadata(model: Any) -> dict[str, str]:
    names = getattr(model, "feature_names_in_", None)
    level = getattr(model, "outside_std_", None)
    values = {
        "class": type(model).__name__,
        "features": None if names is None else [str(name) for name in names],
        "targets": getattr(model, "target_names_", None),
        "outside_std": None if level is None else level.tolist(),
        "verdicts": VERDICTS,
        "edge": EDGE_RATE,
        "outside": OUTSIDE_RATE,
        "support_rows": len(model.support_.scores),
    }
    return {f"nescio.{name}": json.dumps(value) for name, value in values.items()}


def _build(graph: _Graph, model: Any) -> None:
    """From rows to outputs, step by step as the fitted model goes."""
    core, outputs, scale = model.core_.to("cpu"), model.n_outputs_, model.y_scale_
    rows = graph("Div", graph("Sub", "X", model.x_shift_), model.x_scale_)
    rows = graph("Clip", rows, -LARGEST, LARGEST)
    x = graph("Cast", rows, to=FLOAT)
    seen, weight = x, None
    if core.anchor is not None:
        distance = _nearest(graph, graph("Cast", x, to=DOUBLE), core.anchor.centres.double().numpy())
        weight = _weight(graph, distance, core.anchor)
        if core.distance_input:
            told = graph("Log", graph("Add", graph("Div", distance, core.anchor.spacing), 1.0))
            seen = graph("Concat", x, graph("Cast", told, to=FLOAT), axis=1)
    member = graph("Add", graph("Mul", _location(graph, core, x, weight), scale), model.y_shift_)
    concentration, rate = _posterior(graph, core, seen, weight)
    rate = graph("Mul", rate, np.square(scale))

    mean = graph.reduce("ReduceMean", member, 0, keep=True)
    gap = graph("Sub", member, mean)
    each = graph("Add", graph("Div", rate, graph("Sub", concentration, 1.0)), graph("Mul", gap, gap))
    graph.output("mean", graph("Squeeze", mean, graph.whole(0)), ["N", outputs])
    graph.output("std", graph("Sqrt", graph.reduce("ReduceMean", each, 0)), ["N", outputs])
    for name, value in (("member_mean", member), ("concentration", concentration), ("rate", rate)):
        graph.output(name, value, [core.members, "N", outputs])
    _support(graph, model.support_, rows)


def _weight(graph: _Graph, distance: str, anchor: Any) -> str:
    """How far the outside prior has taken over, ``(1, N, 1)``."""
    t = graph("Clip", graph("Div", graph("Sub", distance, anchor.start), anchor.full - anchor.start), 0.0, 1.0)
    smooth = graph("Mul", graph("Mul", t, t), graph("Sub", 3.0, graph("Mul", t, 2.0)))
    return graph("Unsqueeze", smooth, graph.whole(0))


def _nearest(graph: _Graph, z: str, centres: np.ndarray) -> str:
    """Distance to the nearest centre, ``(N, 1)``."""
    squares = graph.reduce("ReduceSum", graph("Mul", z, z), 1, keep=True)
    products = graph("Sub", np.square(centres).sum(1), graph("MatMul", z, 2.0 * centres.T))
    least = graph.reduce("ReduceMin", products, 1, keep=True)
    return graph("Sqrt", graph("Max", graph("Add", least, squares), 0.0))


def _network(graph: _Graph, network: Any, parameters: Any, x: str) -> str:
    """The stacked perceptrons, ``(N, D)`` to ``(models x maps, N, P)``, float32 and then float64."""
    activation = next(name for name, function in ACTIVATIONS.items() if function is network._activation)
    layers = sum(name.startswith("weight") for name in parameters)
    for layer in range(layers):
        weight, bias = (parameters[f"{part}{layer}"].flatten(0, 1).numpy() for part in ("weight", "bias"))
        product = graph("MatMul", x, graph.constant(weight, np.float32))
        x = graph("Add", product, graph.constant(bias, np.float32))
        if layer < layers - 1:
            x = _activate(graph, activation, x)
    return graph("Cast", x, to=DOUBLE)


def _activate(graph: _Graph, name: str, x: str) -> str:
    if name == "silu":
        return graph("Mul", x, graph("Sigmoid", x))
    return graph("LeakyRelu", x, alpha=0.01) if name == "leaky_relu" else graph(OPERATORS[name], x)


def _location(graph: _Graph, core: Any, x: str, weight: str | None) -> str:
    """Means of the members, ``(M, N, P)``, standardised, float64."""
    each = _network(graph, core.mean.network, core.mean.parameters, x)
    bag, outputs = len(core.mean), core.offset.shape[-1]
    shares = np.arange(core.members)[:, None] == np.arange(bag)[None, :] % core.members
    flat = graph("Reshape", each, graph.whole(bag, -1))
    averaged = graph("MatMul", shares / shares.sum(1, keepdims=True), flat)
    loc = graph("Reshape", averaged, graph.whole(core.members, -1, outputs))
    if weight is None:
        return loc
    if core.fade_mean:
        return graph("Mul", loc, graph("Sub", 1.0, weight))
    if core.members > 1 and core.anchor_variance:
        return _blend(graph, loc, graph.reduce("ReduceMean", loc, 0, keep=True), weight)
    return loc


def _blend(graph: _Graph, near: str, far: Any, weight: str) -> str:
    return graph("Add", graph("Mul", near, graph("Sub", 1.0, weight)), graph("Mul", far, weight))


def _posterior(graph: _Graph, core: Any, seen: str, weight: str | None) -> tuple[str, str]:
    """Concentration and rate of the members, each ``(M, N, P)``, standardised, float64."""
    raw = _network(graph, core.precision_network, core.precision_parameters, seen)
    outputs = core.offset.shape[-1]
    raw = graph("Reshape", raw, graph.whole(core.members, 2, -1, outputs))
    raw = graph("Add", raw, core.offset.double().numpy())
    first, second = (graph("Gather", raw, graph.constant(place, np.int64), axis=1) for place in (0, 1))
    head = core.head
    if isinstance(head, VarianceShapeHead):
        bound = head.largest_log_variance
        variance = graph("Exp", graph("Mul", graph("Tanh", graph("Div", first, bound)), bound))
        excess = graph("Add", graph("Softplus", second), head.smallest_excess)
        concentration, rate = graph("Add", excess, 1.0), graph("Mul", variance, excess)
    else:
        concentration = graph("Add", graph("Softplus", first), 1.0 + head.smallest_excess)
        rate = graph("Add", graph("Softplus", second), head.smallest_rate)
    prior = core.reference_prior
    if weight is not None and core.anchor_variance and prior is not None:
        concentration = _blend(graph, concentration, prior.concentration.double().numpy(), weight)
        rate = _blend(graph, rate, prior.rate.double().numpy(), weight)
    return concentration, rate


def _support(graph: _Graph, support: Any, rows: str) -> None:
    """Score, support and verdict: comparisons with the scores of training rows, counted."""
    reference = support.neighbours.reference.double().numpy()
    count, known = min(support.neighbours.k, len(reference)), len(support.scores)
    closeness = graph("Sub", graph("MatMul", rows, reference.T), 0.5 * np.square(reference).sum(1))
    _, nearest = graph.several("TopK", 2, closeness, graph.whole(count))
    gap = graph("Sub", graph("Gather", reference, nearest, axis=0), graph("Unsqueeze", rows, graph.whole(1)))
    distance = graph("Sqrt", graph.reduce("ReduceSum", graph("Mul", gap, gap), 2))
    score = graph.reduce("ReduceMean", distance, 1, keep=True)

    def share(operator: str, factor: float) -> str:
        found = graph("Cast", graph(operator, support.scores, graph("Mul", score, factor)), to=DOUBLE)
        return graph.reduce("ReduceSum", found, 1)

    above, least = share("Greater", 1.0 + TIE), share("GreaterOrEqual", 1.0 - TIE)
    middle = graph("Add", graph("Add", above, least), 1.0)  # the strangers, half of the equals and of the row itself
    p = graph("Div", middle, 2.0 * (known + 1))
    verdict = graph("Mul", p, 0.0)
    for rate in (EDGE_RATE, OUTSIDE_RATE):
        if support.can_tell(rate):
            verdict = graph("Add", verdict, graph("Cast", graph("LessOrEqual", p, rate), to=DOUBLE))
        elif rate == EDGE_RATE:
            verdict = graph("Sub", verdict, 1.0)
    graph.output("score", graph("Squeeze", score, graph.whole(1)), ["N"])
    graph.output("support", p, ["N"])
    graph.output("verdict", graph("Cast", verdict, to=INT64), ["N"], INT64)
