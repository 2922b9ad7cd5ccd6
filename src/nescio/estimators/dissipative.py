"""Dissipative variational variance (d-VV): the posterior is also trained where there are no data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nescio._random import generators
from nescio._validation import InputError, check_integer, check_one_of, check_positive
from nescio.distributions import Gamma
from nescio.estimators.anchoring import anchor_centres, place_anchor
from nescio.estimators.grading import prior_from_blocks
from nescio.estimators.levels import LevelFunction, outside_level
from nescio.estimators.levels import Outside as OutsideLevel
from nescio.estimators.means import MeanPhase
from nescio.estimators.pilot import Pilot
from nescio.estimators.precision import Outside, PseudoInputs
from nescio.estimators.problem import Problem
from nescio.estimators.schedules import pseudo_batch
from nescio.estimators.sizes import FEW_INPUTS, count_members, first_to_see, is_small
from nescio.estimators.split import SplitTrainingRegressor
from nescio.objectives import constant_prior, prior_from_level
from nescio.pseudo_inputs import MultiScale, Placement, Rejected

__all__ = ["DissipativeRegressor", "default_placement"]

LARGEST_OUTSIDE_SHAPE = 3.0  # a stable variance, and tails no lighter than the data's
POOL = 20_000  # a small pool is learned by heart, and the std between its points is then arbitrary
ONE_INPUT = 0.25  # of the pool: what is beyond a range in one column must be learned, and the rest too
CONTRAST_POWER = 2.0  # the pull of the divergence on a too narrow posterior grows faster than the contrast itself
FINITE = "for a finite predictive variance"
LENGTH = 2.0  # there is more to learn than at the rows alone, and on large, precise tables it is still being learned


class DissipativeRegressor(SplitTrainingRegressor):
    """Regression that knows what it does not know: outside the data its std is at a level you choose.

    Points are placed in empty regions near the data, and there the posterior over the precision is trained towards
    the outside prior.

    Paper: eq:dissipative_loss.

    Deviation: two priors instead of one, the outer one graded; pseudo-inputs at several distances, off the data,
    instead of a descent of the density; the anchor; the distance from the data as an input.
    ``outside_prior="inside"``, ``placement=MixtureDescent()``, ``anchor=False`` and ``distance_input=False`` give the
    paper's form.

    Parameters
    ----------
    outside
        The standard deviation far from the data, in units of y: a number, one number per target, a word, or a function
        of rows ``(N, D)``, encoded as ``encoded_names_`` says, to ``(N,)`` or ``(N, P)``.
        ``"target"``: the spread of the training targets (1 where they do not vary). ``"residual"``: that of the errors
        inside, the paper's choice. ``"auto"``: the error of a mean that has lost touch with the targets but goes on
        varying as it did, ``spread * sqrt(1 + R2)``; where the mean fades to the training mean it is the spread.
    outside_prior
        ``"graded"``: the level rises with the distance from the data as blocked cross-validation says the error does;
        ``"constant"``: it jumps to ``outside`` at once; ``"inside"``: the paper's single prior.
    outside_mean
        ``"extrapolate"``: the mean goes where its network goes; ``"training"``: it fades to the training mean.
    anchor
        Whether the posterior becomes the outside prior, by construction, beyond all pseudo-inputs.
    distance_input
        Whether the precision networks see the distance from the data, ``log(1 + d / spacing)``, as one more input: the
        rim of the data is then easier to learn. A ``precision_network`` of your own is asked for one more input.
        ``"auto"``: with four inputs or more, those of every other member, two of five and five of ten, and every one of
        your own. Rows that are a little farther from the data than others are wider for members that see it, which not
        all of them need; the mixture says both. With fewer inputs the pseudo-inputs lie close enough together, and a
        distance that goes up and down from row to row would only make the std rough.
    placement
        Where to put pseudo-inputs: a placement of ``nescio.pseudo_inputs`` or a function with the same signature. None:
        ``Rejected(MultiScale())``, with four inputs and 1,000 rows or more a quarter of the points along one input.
    n_pseudo_inputs
        How many of them, K; ``"auto"``: 20,000, since a small pool is learned by heart.
    pseudo_weight
        Weight of the pseudo-input term; ``"auto"``: ``max(1, log(outside variance / inside variance)) ** -2``, since
        the pull of the divergence grows with the contrast and would blur the rim of very precise data.
    outside_shape
        Shape of the outside prior; ``"auto"``: that of the posterior inside, at most 3.
    n_blocks
        How many times a block of rows is held out to learn the graded level.
    prior, shape, kl_weight, head, mean, prefit, calibrate, hidden, activation, mean_hidden, mean_activation
        As in :class:`~nescio.VariationalVarianceRegressor`.
    mean_network, precision_network, n_members, n_folds, max_steps, precision_steps, batch_size, learning_rate
        As there.
    validation_fraction, device, compile, verbose, random_state
        As there.

    Examples
    --------
    >>> import numpy as np
    >>> from nescio import DissipativeRegressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = DissipativeRegressor(outside=5.0, max_steps=50, random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.5], [1000.0]], return_std=True)
    >>> float(std[1].round(3))
    5.0
    """

    def __init__(
        self,
        *,
        outside: OutsideLevel = "auto",
        outside_prior: str = "graded",
        outside_mean: str = "extrapolate",
        anchor: bool = True,
        distance_input: bool | str = "auto",
        placement: Placement | None = None,
        n_pseudo_inputs: int | str = "auto",
        pseudo_weight: float | str = "auto",
        outside_shape: float | str = "auto",
        n_blocks: int = 8,
        prior: str | None = "residual",
        shape: float | str = "auto",
        kl_weight: float | str = "auto",
        head: str = "variance_shape",
        mean: Any = None,
        prefit: bool = False,
        calibrate: str | None = None,
        hidden: Sequence[int] = (64, 64),
        activation: str = "tanh",
        mean_hidden: Sequence[int] = (50, 50),
        mean_activation: str = "tanh",
        mean_network: Callable[[int, int], Any] | None = None,
        precision_network: Callable[[int, int], Any] | None = None,
        n_members: int | str = "auto",
        n_folds: int | str = "auto",
        max_steps: int = 1500,
        precision_steps: float | str = "auto",
        batch_size: int = 256,
        learning_rate: float = 1e-2,
        validation_fraction: float = 0.1,
        device: str | torch.device = "auto",
        compile: bool | str = "auto",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.outside = outside
        self.outside_prior = outside_prior
        self.outside_mean = outside_mean
        self.anchor = anchor
        self.distance_input = distance_input
        self.placement = placement
        self.n_pseudo_inputs = n_pseudo_inputs
        self.pseudo_weight = pseudo_weight
        self.outside_shape = outside_shape
        self.n_blocks = n_blocks
        self.prior = prior
        self.shape = shape
        self.kl_weight = kl_weight
        self.head = head
        self.mean = mean
        self.prefit = prefit
        self.calibrate = calibrate
        self.hidden = hidden
        self.activation = activation
        self.mean_hidden = mean_hidden
        self.mean_activation = mean_activation
        self.mean_network = mean_network
        self.precision_network = precision_network
        self.n_members = n_members
        self.n_folds = n_folds
        self.max_steps = max_steps
        self.precision_steps = precision_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.device = device
        self.compile = compile
        self.verbose = verbose
        self.random_state = random_state

    @property
    def outside_std_(self) -> np.ndarray:
        """The level outside, ``(P,)`` in units of y: the standard deviation that the model falls back to.

        Where the level is a function of x, its geometric mean over the training rows.
        """
        prior = self.core_.reference_prior
        level = (prior.rate / (prior.concentration - 1.0)).sqrt().cpu().double().numpy()
        return np.asarray(level * self.y_scale_)

    def _check_outside(self, y_scale: np.ndarray) -> None:
        check_one_of("outside_prior", self.outside_prior, ("graded", "constant", "inside"))
        if not isinstance(self.distance_input, bool) and self.distance_input != "auto":
            raise InputError(f"distance_input must be True, False or 'auto'; got {self.distance_input!r}.")
        check_one_of("outside_mean", self.outside_mean, ("extrapolate", "training"))
        if self.pseudo_weight != "auto":
            check_positive("pseudo_weight", self.pseudo_weight)  # type: ignore[arg-type]
        if self.outside_shape != "auto":
            check_positive("outside_shape", self.outside_shape, above=1.0, why=FINITE)  # type: ignore[arg-type]
        if self.n_pseudo_inputs != "auto":
            check_integer("n_pseudo_inputs", self.n_pseudo_inputs, least=1)
        check_integer("n_blocks", self.n_blocks, least=1)
        if self.placement is not None and not callable(self.placement):
            raise InputError(f"placement must be one of nescio.pseudo_inputs or a function; got {self.placement!r}.")
        if not callable(self.outside):
            outside_level(self.outside, y_scale)

    def _blocks(self) -> int:
        return int(self.n_blocks) if self.outside_prior == "graded" else 0

    def _warms_up(self) -> bool:
        return self.outside_prior != "inside"  # as in the paper; a single level is where the networks start from

    def _length(self) -> float:
        return LENGTH

    def _outside(
        self,
        x: Tensor,
        means: MeanPhase,
        pilot: Pilot,
        variance: Tensor,
        tail: float,
        problem: Problem,
    ) -> Outside | None:
        seed, original = problem.seed, problem.original
        # A mean that fades to the training mean errs by the spread of the targets alone.
        fades = isinstance(self.outside, str) and self.outside == "auto" and self.outside_mean == "training"
        outside = "target" if fades else self.outside
        function = LevelFunction(outside, problem.y_scale) if callable(outside) else None
        if self.outside_prior == "inside":
            level, function = variance.sqrt(), None
        elif function is not None:
            level = as_float(np.exp(np.log(function(original.encoded)).mean(0)))
        else:
            level = as_float(outside_level(outside, problem.y_scale, variance.numpy()))
        concentration = min(tail, LARGEST_OUTSIDE_SHAPE) if self.outside_shape == "auto" else float(self.outside_shape)
        far = prior_from_level(level, concentration)

        placement = self.placement if self.placement is not None else default_placement(*x.shape)
        count = POOL if self.n_pseudo_inputs == "auto" else self.n_pseudo_inputs
        members, pool_key = count_members(self, *x.shape), (id(self.placement), count)
        points: Tensor = problem.most(
            ("pseudo-inputs", *pool_key),
            members,
            lambda: _placed(placement, x, int(count), generators(seed, "pseudo-inputs", members)),
        )[:members]
        levels = level
        if function is not None:
            levels = as_float(function(points.double().numpy() * original.x_scale + original.x_shift))
        prior = constant_prior(prior_from_level(levels, concentration))(points)
        if self.outside_prior == "graded":
            prior = prior_from_blocks(x, means.growth, pilot.variance, levels, concentration, problem)(points)
        shape_like = (*points.shape[:2], len(level))
        # By the first pool: the same for any number of members.
        anchor = problem.once(("anchor", *pool_key), lambda: place_anchor(x, anchor_centres(x, seed), points[:1], seed))
        inputs, sees = x, None
        if x.shape[1] > FEW_INPUTS if self.distance_input == "auto" else self.distance_input:
            inputs = anchor.append(x, anchor.distance_to_others(x))
            points = anchor.append(points, anchor.distances(points.flatten(0, 1)).view(points.shape[:2]))
            if self.distance_input == "auto" and self.precision_network is None:
                sees = torch.ones(members, inputs.shape[1])
                sees[:, -1] = 0.0
                sees[first_to_see(members, *x.shape) :: 2, -1] = 1.0
        select = getattr(placement, "select", None)
        pool = PseudoInputs(
            points,
            Gamma(prior.concentration.expand(shape_like).contiguous(), prior.rate.expand(shape_like).contiguous()),
            self._weight(level, variance),
            pseudo_batch(x.shape[1], int(self.batch_size)) if select is None else points.shape[1],
            select,
        )
        return Outside(inputs, pool, far, anchor, bool(self.anchor), self.outside_mean == "training", function, sees)

    def _weight(self, level: Tensor, variance: Tensor) -> float:
        if self.pseudo_weight != "auto":
            return float(self.pseudo_weight)
        contrast = float((2.0 * level.log() - variance.log()).mean())
        return max(1.0, contrast) ** -CONTRAST_POWER


def default_placement(n_rows: int, n_inputs: int) -> Placement:
    """Off the data at every distance; with more than a few inputs also along each of them.

    Not so on a small table: the growth of its error counts an input by the slope of the mean, and where that is flat
    points along it would teach that nothing is amiss.
    """
    along = n_inputs > FEW_INPUTS and not is_small(n_rows, n_inputs)
    return Rejected(MultiScale(one_input=ONE_INPUT if along else 0.0))


def _placed(placement: Placement, x: Tensor, count: int, streams: list[torch.Generator]) -> Tensor:
    """A pool for each of the streams, ``(M, K, D)``; what is none is refused."""
    points = placement(x, count, streams).to(x)
    wanted = (len(streams), points.shape[1] if hasattr(placement, "select") else count, x.shape[1])
    if tuple(points.shape) != wanted or not bool(torch.isfinite(points).all()):
        raise InputError(f"placement must return finite points of shape {wanted}; it returned {tuple(points.shape)}.")
    return points


def as_float(values: np.ndarray) -> Tensor:
    """As the networks take it."""
    return torch.as_tensor(values, dtype=torch.float32)
