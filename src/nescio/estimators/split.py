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
from nescio.datasets.splits import group_rows
from nescio.distributions import Gamma
from nescio.estimators.conformal import fit_conformal, fit_spared, spared_rows
from nescio.estimators.core import CoreModel
from nescio.estimators.foreign_means import fit_foreign
from nescio.estimators.means import MeanPhase, fit_means, hold_out
from nescio.estimators.pilot import Pilot, fit_pilot
from nescio.estimators.precision import Outside, fit_precision, stacked_prior
from nescio.estimators.precision_regressor import PrecisionRegressor
from nescio.estimators.problem import Fitted, Problem
from nescio.estimators.schedules import (
    mean_schedule,
    pilot_share,
    posterior_share,
    precision_schedule,
    warm_up_schedule,
)
from nescio.estimators.sizes import count_divisions, count_folds, count_members, count_repeats, first_to_see
from nescio.estimators.split_settings import GAIN, candidates, check_settings, make_learner, make_network
from nescio.networks import MLP, make_head
from nescio.networks.side_by_side import as_one
from nescio.objectives import prior_from_residuals
from nescio.training import Schedule
from nescio.training.devices import resolve_device

__all__ = ["SplitTrainingRegressor"]

PILOT_HIDDEN = (50,)  # the paper's width: tails can be told apart with a small network
WARM_UP = 0.4  # in units of max_steps, the length of the means' training: shorter, the std dips beside the data
OF_MEANS = (
    *("prefit", "mean_hidden", "mean_activation", "n_folds", "max_steps"),
    *("batch_size", "learning_rate", "validation_fraction", "device"),
)
LOOSE = ("calibrate", "mean", "mean_network", "n_members", "random_state", "verbose")
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
        problem: Problem,
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

    @property
    def mean_(self) -> Any:
        """The fitted mean that is not ours, to be given back to ``load``; one for each target where it takes but one.

        None where the mean is a bag of networks.
        """
        return None if self.foreign_ is None else self.foreign_.given_back

    def __sklearn_clone__(self) -> Any:
        """A copy with the same settings and without the fit; a mean that came fitted stays fitted."""
        copy = super().__sklearn_clone__()
        if self.prefit:
            copy.mean = self.mean
        return copy

    def _fit_cores(self, problems: Sequence[Problem]) -> list[Fitted]:
        # The folds, blocks and candidates of one table fill a stack already; more tables would leave the cache.
        return [self._fit_one(problem) for problem in problems]

    def _fit_one(self, problem: Problem) -> Fitted:
        check_settings(self)
        spared = None if self.calibrate is None or self.mean is not None else spared_rows(problem)
        if spared is None:
            return self._train(problem)
        core, learned = self._train(problem.without(spared))
        return Fitted(core, learned | {"conformal_": fit_spared(core, problem, spared)})

    def _train(self, problem: Problem) -> Fitted:
        x, y, weights, y_scale, seed = problem.x, problem.y, problem.weights, problem.y_scale, problem.seed
        self._check_outside(y_scale)
        device = resolve_device(self.device)
        members = count_members(self, *x.shape)
        rows, targets = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y, dtype=torch.float32)
        heft = None if weights is None else torch.as_tensor(weights, dtype=torch.float32)
        head, groups = make_head(self.head), group_rows(x)
        steps = int(self.max_steps)
        schedule = Schedule(steps, int(self.batch_size), float(self.learning_rate), check_every=min(50, steps))
        in_steps = lambda share: max(1, round(share * steps))
        pilot_steps, warm_steps = in_steps(pilot_share(x.shape[1])), in_steps(WARM_UP)

        own_modules = self.mean_network is not None or self.precision_network is not None
        scope = seeded_scope(child_seed(seed, "modules"), device) if own_modules else nullcontext()
        with (
            scope,
            tqdm(
                total=steps + pilot_steps + (warm_steps if self._warms_up() else 0),  # the posterior's follow
                desc="mean",
                disable=None if self.verbose else True,
            ) as bar,
        ):
            common: dict[str, Any] = {"device": device, "compile": self.compile, "progress": bar.update}
            means: MeanPhase = problem.once(
                ("means", *self._first_phase(*x.shape)),
                lambda: self._fit_mean(problem, rows, targets, groups, heft, schedule, common),
            )
            variance = prior_from_residuals(means.residuals, 2.0, heft, floor=SMALLEST_VARIANCE).rate
            precision_steps = in_steps(self._precision_length(len(x), x.shape[1], variance))
            _lengthen(bar, precision_steps)
            choices = candidates(self)
            pilot: Pilot
            if len(choices) == 1 and not self._warms_up():  # nothing to choose, and nobody to tell the noise to
                pilot = Pilot(*choices[0], variance.expand(len(x), -1))
                bar.update(pilot_steps)
            else:
                bar.set_description("pilot")
                pilot = problem.once(
                    ("pilot", self.head, self.activation, *choices, *self._first_phase(*x.shape)),
                    lambda: fit_pilot(
                        rows,
                        means.residuals,
                        groups,
                        heft,
                        MLP(x.shape[1], y.shape[1], PILOT_HIDDEN, self.activation, 2, gain=GAIN),
                        head,
                        replace(schedule, max_steps=pilot_steps, check_every=min(50, pilot_steps)),
                        choices,
                        variance=variance,
                        seed=child_seed(seed, "pilot"),
                        repeats=count_divisions(len(x)),
                        validation_fraction=float(self.validation_fraction),
                        **common,
                    ),
                )
            shape, kl_weight = pilot.shape, pilot.kl_weight
            bar.set_description("precision")
            tail = shape + (0.5 / kl_weight if kl_weight else 3.0)  # without a KL any tail goes: a moderate one
            outside = problem.most(
                ("outside", *self._second_phase(*x.shape)),
                members,
                lambda: self._outside(rows, means, pilot, variance, tail, problem),
            )
            inputs = rows if outside is None else outside.inputs
            precision_network = make_network(self, self.precision_network, inputs.shape[1], y.shape[1], 2)
            learner = make_learner(self, precision_network, len(x), x.shape[1], inputs.shape[1], y.shape[1])
            prior, weight, offset = stacked_prior(variance, [(shape, kl_weight)] * members, head)
            divisions = [
                hold_out(np.arange(len(x)), groups, float(self.validation_fraction), child_seed(seed, "stop", member))
                for member in range(members)
            ]
            trained = problem.most(
                ("precision", *self._second_phase(*x.shape)),
                members,
                lambda: fit_precision(
                    inputs,
                    means.residuals,
                    heft,
                    [learn for learn, _ in divisions],
                    [stop for _, stop in divisions],
                    learner,
                    head,
                    precision_schedule(schedule, precision_steps, *x.shape),
                    inside_prior=prior,
                    kl_weight=weight,
                    offset=offset,
                    pseudo=None if outside is None else outside.pseudo,
                    sees=None if outside is None else outside.sees,
                    warm_up=warm_up_schedule(schedule, warm_steps, x.shape[1]) if self._warms_up() else None,
                    streams=generators(seed, "precision", members),
                    **common,
                )[0],
            )
            parameters = {name: value[:members] for name, value in trained.items()}
            if learner is not precision_network:
                parameters = as_one(parameters)
        inside = Gamma(prior.concentration[0, 0], prior.rate[0, 0]) if kl_weight else None
        core = CoreModel(
            means.mean,
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
        learned = {"shape_": shape, "kl_weight_": kl_weight, "inside_std_": inside_std, "foreign_": means.foreign}
        learned |= {"conformal_": None, "level_": None if outside is None else outside.level}
        if self.calibrate is not None:
            stops = [stop for _, stop in divisions]
            learned["conformal_"] = fit_conformal(core, x, means.residuals, stops, problem.support())
        return Fitted(core.to(device), learned)

    def _fit_mean(
        self,
        problem: Problem,
        x: Tensor,
        y: Tensor,
        groups: np.ndarray,
        weights: Tensor | None,
        schedule: Schedule,
        common: dict[str, Any],
    ) -> MeanPhase:
        """Phase one: the bag of networks, or the mean that was given."""
        n_folds, n_blocks = count_folds(self, len(x)), max(self._blocks(), problem.blocks)
        if self.mean is not None:
            means = fit_foreign(self.mean, self.prefit, problem, x, groups, n_folds=n_folds, n_blocks=n_blocks)
            common["progress"](schedule.max_steps)
            return means
        return fit_means(
            x,
            y,
            groups,
            weights,
            make_network(self, self.mean_network, x.shape[1], y.shape[1], 1),
            mean_schedule(schedule, x.shape[1]),
            seed=problem.seed,
            n_folds=n_folds,
            n_repeats=count_repeats(self, *x.shape),
            n_blocks=n_blocks,
            validation_fraction=float(self.validation_fraction),
            **common,
        )

    def _first_phase(self, n_rows: int, n_inputs: int) -> tuple[Any, ...]:
        """All that the means depend on."""
        settings = (f"{name}={getattr(self, name)!r}" for name in OF_MEANS)
        return id(self.mean), id(self.mean_network), count_repeats(self, n_rows, n_inputs), *settings

    def _precision_length(self, n_rows: int, n_inputs: int, variance: Tensor) -> float:
        """Most steps of the posterior, in units of ``max_steps``."""
        if self.precision_steps != "auto":
            return float(self.precision_steps)
        return self._length() * posterior_share(n_rows, n_inputs, variance)

    def _second_phase(self, n_rows: int, n_inputs: int) -> tuple[Any, ...]:
        """All that a posterior depends on: who sees the distance, and how many there are where folds are dealt anew."""
        own = sorted(self.get_params(deep=False).items())
        settings = (f"{name}={value!r}" for name, value in own if name not in (*LOOSE, *OF_MEANS))
        seeing = first_to_see(count_members(self, n_rows, n_inputs), n_rows, n_inputs)
        return type(self).__name__, seeing, *self._first_phase(n_rows, n_inputs), *settings


def _lengthen(bar: Any, steps: int) -> None:
    """Add to the end of a progress bar; one in a notebook learns of it by nothing but a reset."""
    done = bar.n
    bar.reset(bar.total + steps)
    bar.update(done)
