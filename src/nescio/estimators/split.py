"""Split training, the wiring of VV and d-VV: the mean first and then frozen, the posterior over the precision after."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from nescio._random import child_seed, generators, seeded_scope
from nescio._validation import InputError, check_fraction, check_integer, check_one_of, check_positive
from nescio.datasets.splits import group_rows
from nescio.distributions import Gamma
from nescio.estimators.core import CoreModel
from nescio.estimators.means import MeanPhase, fit_means, hold_out
from nescio.estimators.precision import CANDIDATES, Outside, Pilot, fit_pilot, fit_precision, stacked_prior
from nescio.estimators.precision_regressor import PrecisionRegressor
from nescio.estimators.problem import Fitted, Problem
from nescio.networks import MLP, ModuleStack, Network, make_head
from nescio.objectives import prior_from_residuals
from nescio.training import Schedule
from nescio.training.devices import resolve_device

__all__ = ["SplitTrainingRegressor"]

GAIN = 3.0  # of the precision networks' first layer, so that the variance can rise within a short distance
PILOT_HIDDEN = (50,)  # the paper's width: tails can be told apart with a small network
MEAN_TOLERANCE = 0.03  # of the logarithm of the validation error: a few hundred rows cannot tell less apart
VERY_FEW_ROWS = 500  # below it folds cost little
MEMBERS = 5
MANY_ROWS = 10_000  # from here on one posterior is learned well, and the time of five would be felt
FEW_ROWS = 2_000  # up to here the pilot chooses by three divisions of the rows, since one is a coarse judge
PILOT_STEPS, WARM_UP_STEPS, PRECISION_STEPS = 0.5, 0.4, 1.4  # in units of max_steps, the length of the means' training
PATIENCE = 0.4  # likewise: on a small table the best posterior is found within a few hundred steps
REPEATS = 2  # two networks that did not see a row are closer to the bag than one
NO_PRIOR_SHAPE = 3.0  # enters nothing but the prior that is not used
LOOSE = ("n_members", "random_state", "verbose")
SMALLEST_VARIANCE = 1e-8  # of a standardised residual: a mean that is right to four digits more needs no error bar


class SplitTrainingRegressor(PrecisionRegressor):
    """Wiring of the two phases. What happens outside the data is the subclass's to say."""

    @abstractmethod
    def _outside(
        self,
        x: Tensor,
        means: MeanPhase,
        pilot: Pilot,
        variance: Tensor,
        tail: float,
        y_scale: np.ndarray,
        seed: int,
    ) -> Outside | None:
        """Pseudo-inputs with their prior and the anchor, from standardised rows; None where there are none."""

    @abstractmethod
    def _check_outside(self, y_scale: np.ndarray) -> None:
        """Refuse bad parameters of the subclass's own, before anything is trained."""

    @abstractmethod
    def _blocks(self) -> int:
        """How many blocks phase one should hold out besides its folds."""

    @abstractmethod
    def _warms_up(self) -> bool:
        """Whether the posterior learns the priors before it sees a residual."""

    @abstractmethod
    def _length(self) -> float:
        """How long the posterior may train, against one that sees nothing but the rows."""

    @property
    def inside_prior_(self) -> Gamma | None:
        """The prior at the data, ``(P,)``, in standardised units; None where there is none."""
        if not self.kl_weight_:
            return None
        variance = torch.as_tensor(self.inside_std_ / self.y_scale_).square()
        return Gamma(torch.full_like(variance, self.shape_), (self.shape_ - 1.0) * variance)

    @property
    def outside_prior_(self) -> Gamma | None:
        """The prior far from the data, ``(P,)``, in standardised units; None where a method has no outside."""
        prior = self.core_.reference_prior
        if prior is None or self.core_.anchor is None:
            return None
        return Gamma(prior.concentration.cpu().double(), prior.rate.cpu().double())

    def _fit_cores(self, problems: Sequence[Problem]) -> list[Fitted]:
        # The folds, blocks and candidates of one table fill a stack already; more tables would leave the cache.
        return [self._fit_one(problem) for problem in problems]

    def _fit_one(self, problem: Problem) -> Fitted:
        x, y, weights, y_scale, seed = problem.x, problem.y, problem.weights, problem.y_scale, problem.seed
        self._check_parameters()
        self._check_outside(y_scale)
        device = resolve_device(self.device)
        members = self._members(len(x))
        rows, targets = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y, dtype=torch.float32)
        heft = None if weights is None else torch.as_tensor(weights, dtype=torch.float32)
        mean_network = self._network(self.mean_network, x.shape[1], y.shape[1], 1)
        head, groups = make_head(self.head), group_rows(x)
        steps = int(self.max_steps)
        schedule = Schedule(steps, int(self.batch_size), float(self.learning_rate), check_every=min(50, steps))
        pilot_steps, warm_steps, precision_steps = (
            max(1, round(part * steps)) for part in (PILOT_STEPS, WARM_UP_STEPS, self._precision_length())
        )

        own_modules = self.mean_network is not None or self.precision_network is not None
        scope = seeded_scope(child_seed(seed, "modules"), device) if own_modules else nullcontext()
        with (
            scope,
            tqdm(
                total=steps + pilot_steps + precision_steps + (warm_steps if self._warms_up() else 0),
                desc="mean",
                disable=None if self.verbose else True,
            ) as bar,
        ):
            common: dict[str, Any] = {"device": device, "compile": self.compile, "progress": bar.update}
            means: MeanPhase = problem.once(
                ("means", *self._first_phase(len(x))),
                lambda: fit_means(
                    rows,
                    targets,
                    groups,
                    heft,
                    mean_network,
                    replace(schedule, tolerance=MEAN_TOLERANCE),
                    seed=seed,
                    n_folds=self._folds(len(x)),
                    n_repeats=self._repeats(len(x)),
                    n_blocks=max(self._blocks(), problem.blocks),
                    validation_fraction=float(self.validation_fraction),
                    **common,
                ),
            )
            variance = prior_from_residuals(means.residuals, 2.0, heft, floor=SMALLEST_VARIANCE).rate
            candidates = self._candidates()
            pilot: Pilot
            if len(candidates) == 1 and not self._warms_up():  # nothing to choose, and nobody to tell the noise to
                pilot = Pilot(*candidates[0], variance.expand(len(x), -1))
                bar.update(pilot_steps)
            else:
                bar.set_description("pilot")
                pilot = problem.once(
                    ("pilot", self.head, self.activation, *candidates, *self._first_phase(len(x))),
                    lambda: fit_pilot(
                        rows,
                        means.residuals,
                        groups,
                        heft,
                        MLP(x.shape[1], y.shape[1], PILOT_HIDDEN, self.activation, 2, gain=GAIN),
                        head,
                        replace(schedule, max_steps=pilot_steps, check_every=min(50, pilot_steps)),
                        candidates,
                        variance=variance,
                        seed=child_seed(seed, "pilot"),
                        repeats=3 if len(x) <= FEW_ROWS else 1,
                        validation_fraction=float(self.validation_fraction),
                        **common,
                    ),
                )
            shape, kl_weight = pilot.shape, pilot.kl_weight
            bar.set_description("precision")
            tail = shape + (0.5 / kl_weight if kl_weight else 3.0)
            outside = self._outside(rows, means, pilot, variance, tail, y_scale, seed)
            inputs = rows if outside is None else outside.inputs
            precision_network = self._network(self.precision_network, inputs.shape[1], y.shape[1], 2)
            prior, weight, offset = stacked_prior(variance, [(shape, kl_weight)] * members, head)
            divisions = [
                hold_out(np.arange(len(x)), groups, float(self.validation_fraction), child_seed(seed, "stop", member))
                for member in range(members)
            ]
            trained = problem.most(
                ("precision", *self._second_phase()),
                members,
                lambda: fit_precision(
                    inputs,
                    means.residuals,
                    heft,
                    [learn for learn, _ in divisions],
                    [stop for _, stop in divisions],
                    precision_network,
                    head,
                    replace(schedule, max_steps=precision_steps, patience=max(1, round(PATIENCE * steps))),
                    inside_prior=prior,
                    kl_weight=weight,
                    offset=offset,
                    pseudo=None if outside is None else outside.pseudo,
                    warm_up=replace(schedule, max_steps=warm_steps, check_every=min(50, warm_steps)),
                    streams=generators(seed, "precision", members),
                    **common,
                )[0],
            )
            parameters = {name: value[:members] for name, value in trained.items()}
        inside = Gamma(prior.concentration[0, 0], prior.rate[0, 0]) if kl_weight else None
        core = CoreModel(
            mean_network,
            means.parameters,
            precision_network,
            parameters,
            head,
            offset,
            inside if outside is None else outside.prior,
            None if outside is None else outside.anchor,
            outside is not None and outside.anchor_variance,
            outside is not None and outside.fade_mean,
            inputs.shape[1] > x.shape[1],
        )
        inside_std = np.sqrt(variance.double().numpy()) * y_scale
        return Fitted(core.to(device), {"shape_": shape, "kl_weight_": kl_weight, "inside_std_": inside_std})

    def _first_phase(self, n_rows: int) -> tuple[Any, ...]:
        """All settings that the means depend on."""
        return (
            self._repeats(n_rows),
            tuple(self.mean_hidden),
            self.mean_activation,
            self.mean_network,
            self.n_folds,
            int(self.max_steps),
            int(self.batch_size),
            float(self.learning_rate),
            float(self.validation_fraction),
            str(self.device),
        )

    def _precision_length(self) -> float:
        """Most steps of the posterior, in units of ``max_steps``."""
        return PRECISION_STEPS * self._length() if self.precision_steps == "auto" else float(self.precision_steps)

    def _second_phase(self) -> tuple[str, ...]:
        """All settings that a member's posterior depends on; how many others there are is none of them."""
        settings = self.get_params(deep=False)
        return type(self).__name__, *(f"{name}={settings[name]!r}" for name in sorted(settings) if name not in LOOSE)

    def _check_parameters(self) -> None:
        if self.n_members != "auto":
            check_integer("n_members", self.n_members, least=1)
        check_integer("max_steps", self.max_steps, least=1)
        check_integer("batch_size", self.batch_size, least=1)
        if self.precision_steps != "auto":
            check_positive("precision_steps", self.precision_steps)
        check_positive("learning_rate", self.learning_rate)
        check_fraction("validation_fraction", self.validation_fraction)
        if self.n_folds != "auto":
            check_integer("n_folds", self.n_folds, least=2)
        if self.shape != "auto":
            check_positive("shape", self.shape, above=1.0, why="for a finite predictive variance")
        if self.kl_weight != "auto":
            check_positive("kl_weight", self.kl_weight)
        if self.prior is not None:
            check_one_of("prior", self.prior, ("residual",))

    def _network(self, factory: Any, n_inputs: int, n_outputs: int, maps: int) -> Network:
        if factory is not None:
            if not callable(factory):
                raise InputError(
                    "mean_network and precision_network must be functions (n_inputs, n_outputs) -> nn.Module."
                )
            stack = ModuleStack(lambda: factory(n_inputs, maps * n_outputs), maps, n_outputs)
            if stack.has_statistics:
                raise InputError("a network with batch normalisation cannot train among its folds: leave it out.")
            return stack
        if maps == 1:
            return MLP(n_inputs, n_outputs, self.mean_hidden, self.mean_activation, maps)
        return MLP(n_inputs, n_outputs, self.hidden, self.activation, maps, gain=GAIN)

    def _folds(self, n_rows: int) -> int:
        if self.n_folds != "auto":
            return int(min(self.n_folds, n_rows))
        return 20 if n_rows < VERY_FEW_ROWS else 10 if n_rows < 2_000 else 5

    def _members(self, n_rows: int) -> int:
        if self.n_members != "auto":
            return int(self.n_members)
        return MEMBERS if n_rows < MANY_ROWS else 1

    def _repeats(self, n_rows: int) -> int:
        """How often the folds are dealt: so often that each member has a network of its own."""
        return max(REPEATS, -(-self._members(n_rows) // self._folds(n_rows)))

    def _candidates(self) -> list[tuple[float, float]]:
        """Shapes of the inside prior and KL weights that the pilot may choose from."""
        if self.prior is None:
            return [(NO_PRIOR_SHAPE, 0.0)]
        pairs = [
            (
                shape if self.shape == "auto" else float(self.shape),
                weight if self.kl_weight == "auto" else float(self.kl_weight),
            )
            for shape, weight in CANDIDATES
        ]
        return list(dict.fromkeys(pairs))
