"""The settings of split training: checked before anything is trained, the networks, what the pilot may choose from."""

from __future__ import annotations

from typing import Any

from nescio._validation import InputError, check_fraction, check_integer, check_one_of, check_positive, check_widths
from nescio.estimators.foreign import check_mean
from nescio.estimators.pilot import CANDIDATES
from nescio.estimators.sizes import FEW_INPUTS, is_small
from nescio.networks import MLP, ModuleStack, Network
from nescio.networks.mlp import ACTIVATIONS
from nescio.networks.side_by_side import SideBySide

__all__ = ["GAIN", "candidates", "check_settings", "make_learner", "make_network"]

GAIN = 3.0  # of the precision networks' first layer, so that the variance can rise within a short distance
SMALL_GAIN = 1.2  # with few inputs, where rows lie dense and the variance would follow the luck of some of them
NO_PRIOR_SHAPE = 3.0  # enters nothing but the prior that is not used


def check_settings(model: Any) -> None:
    """Refuse settings that VV and d-VV have in common and cannot train with."""
    check_mean(model.mean, model.prefit)
    if model.mean is not None and model.mean_network is not None:
        raise InputError("mean and mean_network both say what the mean is; give one of them.")
    for name in ("mean_network", "precision_network"):
        factory = getattr(model, name)
        if factory is not None and not callable(factory):
            raise InputError(f"{name} must be a function (n_inputs, n_outputs) -> nn.Module; got {factory!r}.")
    for name in ("hidden", "mean_hidden"):
        check_widths(name, getattr(model, name))
    for name in ("activation", "mean_activation"):
        check_one_of(name, getattr(model, name), ACTIVATIONS)
    if model.calibrate is not None and model.calibrate != "conformal":
        raise InputError(f"calibrate must be None or 'conformal'; got {model.calibrate!r}.")
    if model.n_members != "auto":
        check_integer("n_members", model.n_members, least=1)
    check_integer("max_steps", model.max_steps, least=1)
    check_integer("batch_size", model.batch_size, least=1)
    if model.precision_steps != "auto":
        check_positive("precision_steps", model.precision_steps)
    check_positive("learning_rate", model.learning_rate)
    check_fraction("validation_fraction", model.validation_fraction)
    if model.n_folds != "auto":
        check_integer("n_folds", model.n_folds, least=2)
    if model.shape != "auto":
        check_positive("shape", model.shape, above=1.0, why="for a finite predictive variance")
    if model.kl_weight != "auto":
        check_positive("kl_weight", model.kl_weight)
    if model.prior is not None and model.prior != "residual":
        raise InputError(f"prior must be None or 'residual'; got {model.prior!r}.")


def candidates(model: Any) -> list[tuple[float, float]]:
    """Shapes of the inside prior and KL weights that the pilot may choose from."""
    if model.prior is None:
        return [(NO_PRIOR_SHAPE, 0.0)]
    pairs = [
        (
            shape if model.shape == "auto" else float(model.shape),
            weight if model.kl_weight == "auto" else float(model.kl_weight),
        )
        for shape, weight in CANDIDATES
    ]
    return list(dict.fromkeys(pairs))


def make_network(model: Any, factory: Any, n_inputs: int, n_outputs: int, maps: int) -> Network:
    """The network of the mean (one map) or of the precision (two): the user's own, or ours."""
    if factory is not None:
        stack = ModuleStack(lambda: factory(n_inputs, maps * n_outputs), maps, n_outputs)
        if stack.has_statistics:
            raise InputError("a network with batch normalisation cannot train among its folds: leave it out.")
        return stack
    if maps == 1:
        return MLP(n_inputs, n_outputs, model.mean_hidden, model.mean_activation, maps)
    gain = SMALL_GAIN if n_inputs <= FEW_INPUTS else GAIN
    return MLP(n_inputs, n_outputs, model.hidden, model.activation, maps, gain=gain)


def make_learner(model: Any, network: Network, n_rows: int, n_columns: int, n_inputs: int, n_outputs: int) -> Network:
    """The precision network as it is trained on a table ``(n_rows, n_columns)``.

    What is learned becomes ``network``'s by ``as_one``.

    The variance and the shape are two maps, and how heavy the tails are is the simpler thing to say: the shape has half
    the width, which saves a third of a step. With few inputs or on a small table it has the whole: a step costs little
    there, and luck would have the more to say.
    """
    given = model.precision_network is not None or model.head != "variance_shape"
    if given or n_columns <= FEW_INPUTS or is_small(n_rows, n_columns):
        return network
    half = [max(1, width // 2) for width in model.hidden]
    widths = {"variance": model.hidden, "shape": half}
    return SideBySide(
        {name: MLP(n_inputs, n_outputs, own, model.activation, gain=GAIN) for name, own in widths.items()}
    )
