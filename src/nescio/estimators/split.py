"""Split training: the mean first and then frozen, the posterior over the precision after it. The wiring of VV and d-VV."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from nescio._random import child_seed, generators
from nescio._validation import InputError, check_fraction, check_integer, check_one_of, check_positive
from nescio.datasets.splits import group_rows
from nescio.distributions import Gamma
from nescio.estimators.base import DistributionRegressor, resolve_device
from nescio.estimators.core import CoreModel
from nescio.estimators.means import MeanPhase, fit_means
from nescio.estimators.precision import CANDIDATES, PseudoInputs, choose_prior, fit_precision, stacked_prior
from nescio.networks import MLP, Anchor, ModuleStack, Network, make_head
from nescio.training import Schedule

__all__ = ["Outside", "SplitTrainingRegressor"]

CHOICE_HIDDEN = (50,)  # the paper's width: tails can be told apart with a small network
SMALLEST_VARIANCE = 1e-8  # of a standardised residual: a mean that is right to four digits more needs no error bar


class Outside(NamedTuple):
    """What a method knows about the world beyond the data: the pools of its members, the level, the anchor."""

    pseudo: PseudoInputs
    prior: Gamma
    anchor: Anchor
    anchor_variance: bool
    fade_mean: bool


class SplitTrainingRegressor(DistributionRegressor):
    """Wiring of the two phases. What happens outside the data is the subclass's to say."""

    @abstractmethod
    def _outside(
        self, x: Tensor, means: MeanPhase, variance: Tensor, shape: float, y_scale: np.ndarray, seed: int
    ) -> Outside | None:
        """Pseudo-inputs with their prior and the anchor, from standardised rows; None where there are none."""

    @abstractmethod
    def _blocks(self) -> int:
        """How many blocks phase one should hold out besides its folds."""

    def _fit_core(
        self, x: np.ndarray, y: np.ndarray, weights: np.ndarray | None, y_scale: np.ndarray, seed: int
    ) -> CoreModel:
        self._check_parameters()
        device = resolve_device(self.device)
        members = int(self.n_members)
        rows, targets = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y, dtype=torch.float32)
        heft = None if weights is None else torch.as_tensor(weights, dtype=torch.float32)
        mean_network = self._network(self.mean_network, x.shape[1], y.shape[1], 1)
        precision_network = self._network(self.precision_network, x.shape[1], y.shape[1], 2)
        head = make_head(self.head)
        steps = int(self.max_steps)
        schedule = Schedule(steps, int(self.batch_size), float(self.learning_rate), check_every=min(50, steps))
        choosing = self.prior is not None and (self.shape == "auto" or self.kl_weight == "auto")
        choice_steps = max(1, steps // 2) if choosing else 0

        with tqdm(total=2 * steps + choice_steps, desc="mean", disable=None if self.verbose else True) as bar:
            common: dict[str, Any] = {"device": device, "compile": self.compile, "progress": bar.update}
            means = fit_means(
                rows,
                targets,
                group_rows(x),
                heft,
                mean_network,
                schedule,
                seed=seed,
                n_members=members,
                n_folds=self._folds(len(x)),
                n_blocks=self._blocks(),
                validation_fraction=float(self.validation_fraction),
                **common,
            )
            variance = self._inside_variance(means.residuals, heft, y_scale)
            shape, kl_weight = self._fixed_prior()
            if choosing:
                bar.set_description("shape")
                candidates = [
                    (a if self.shape == "auto" else float(self.shape), w if self.kl_weight == "auto" else float(self.kl_weight))
                    for a, w in CANDIDATES
                ]
                shape, kl_weight = choose_prior(
                    rows,
                    means.residuals,
                    heft,
                    MLP(x.shape[1], y.shape[1], CHOICE_HIDDEN, self.activation, 2),
                    head,
                    Schedule(choice_steps, schedule.batch_size, schedule.learning_rate, check_every=min(50, choice_steps)),
                    candidates,
                    variance=variance,
                    seed=child_seed(seed, "prior"),
                    repeats=1 if len(x) > 2000 else 3,
                    validation_fraction=float(self.validation_fraction),
                    **common,
                )
            bar.set_description("precision")
            outside = self._outside(rows, means, variance, shape + (0.5 / kl_weight if kl_weight else 3.0), y_scale, seed)
            prior, weight, offset = stacked_prior(variance, [(shape, kl_weight)] * members, head)
            everything = np.arange(len(x))
            parameters, _ = fit_precision(
                rows,
                means.residuals,
                heft,
                [torch.as_tensor(np.setdiff1d(everything, stop.numpy())) for stop in means.validation],
                means.validation,
                precision_network,
                head,
                schedule,
                inside_prior=prior,
                kl_weight=weight,
                offset=offset,
                pseudo=None if outside is None else outside.pseudo,
                streams=generators(seed, "precision", members),
                **common,
            )
        self.shape_, self.kl_weight_ = shape, kl_weight
        self.inside_std_ = np.sqrt(variance.double().numpy()) * y_scale
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
        )
        return core.to(device)

    def _check_parameters(self) -> None:
        check_integer("n_members", self.n_members, least=1)
        check_integer("max_steps", self.max_steps, least=1)
        check_integer("batch_size", self.batch_size, least=1)
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
                raise InputError("mean_network and precision_network must be functions (n_inputs, n_outputs) -> nn.Module.")
            return ModuleStack(lambda: factory(n_inputs, maps * n_outputs), maps)
        if maps == 1:
            return MLP(n_inputs, n_outputs, self.mean_hidden, self.mean_activation, maps)
        return MLP(n_inputs, n_outputs, self.hidden, self.activation, maps)

    def _folds(self, n_rows: int) -> int:
        if self.n_folds != "auto":
            return int(min(self.n_folds, n_rows))
        return 20 if n_rows < 500 else 10 if n_rows < 2_000 else 5

    def _inside_variance(self, residuals: Tensor, weights: Tensor | None, y_scale: np.ndarray) -> Tensor:
        """Mean squared out-of-fold residual of each output, ``(P,)``."""
        squares = residuals.square()
        mean = squares.mean(0) if weights is None else (squares * weights.unsqueeze(1)).sum(0) / weights.sum()
        return mean.clamp_min(SMALLEST_VARIANCE)

    def _fixed_prior(self) -> tuple[float, float]:
        shape = 3.0 if self.shape == "auto" else float(self.shape)
        if self.prior is None:
            return shape, 0.0
        return shape, 0.0 if self.kl_weight == "auto" else float(self.kl_weight)
