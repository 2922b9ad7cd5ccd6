"""Variational variance (VV): a Gamma posterior over the precision, trained on the data alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nescio.estimators.means import MeanPhase
from nescio.estimators.pilot import Pilot
from nescio.estimators.precision import Outside
from nescio.estimators.problem import Problem
from nescio.estimators.split import SplitTrainingRegressor

__all__ = ["VariationalVarianceRegressor"]


class VariationalVarianceRegressor(SplitTrainingRegressor):
    """Regression with a Student-t predictive distribution, without pseudo-inputs.

    Inside the data it is as good as :class:`~nescio.DissipativeRegressor`; outside, its variance is arbitrary.

    Paper: eq:variational_objective_vv.

    Parameters
    ----------
    prior
        ``"residual"``: a Gamma at the level of the out-of-fold residuals; None: no prior (the KL weight is zero).
    shape, kl_weight
        Shape of the prior and weight of the KL divergence; ``"auto"`` chooses them by validation likelihood.
    head
        ``"variance_shape"``, or ``"concentration_rate"`` as in the paper.
    mean
        The mean instead of our networks: an unfitted scikit-learn regressor (cloned and fitted to X and y as they are:
        ``predict`` is exactly what it would say alone), a fitted one with ``prefit=True``, a function of X, or a torch
        module. Its errors are taken at rows that it did not see.
    prefit
        Whether ``mean`` is fitted already: the rows given to ``fit`` must then be rows that it has not seen.
    calibrate
        None, or ``"conformal"``: ``predict_interval`` then covers inside the data at the level that it is asked for.
        From 5,000 rows on a thousand of them are kept from training to learn it from; with fewer, or a ``mean`` of
        yours, it is learned from the rows that the precision networks were stopped by.
    hidden, activation, mean_hidden, mean_activation
        The networks of the precision and of the mean. With the head ``"variance_shape"``, four inputs or more and 1,000
        rows or more the shape's own has half the width of ``hidden``.
    mean_network, precision_network
        Functions ``(n_inputs, n_outputs) -> torch.nn.Module`` to be used in their place.
    n_members
        How many precision networks to train and mix. The networks of the mean are shared out among them. ``"auto"``: 5
        below 10,000 rows, where one network is partly a matter of luck, 10 below 1,000 with four inputs or more; else
        2.
    n_folds
        Into how many folds the rows are dealt, twice; each fold has a network that did not see it. The mean is the
        average of these networks. ``"auto"``: 20 below 500 rows, 10 below 2,000, else 5; with a ``mean`` of yours 20
        below 10,000 rows, else 10.
    max_steps
        Steps of the mean's phase; the pilot takes a third as many, with up to three inputs half as many.
    precision_steps
        Most steps of the precision's phase, in units of ``max_steps``. ``"auto"``: 0.3 on small tables, growing with
        the root of the rows and the precision of the mean, up to 1.4, which it is with up to three inputs; twice that
        where there are pseudo-inputs, after a warm-up where they have a prior of their own. It ends when held-out rows
        have not improved for 0.4, or 0.2 below 1,000 rows of four inputs or more.
    batch_size, learning_rate, validation_fraction
        Of each phase; with four inputs or more the means take twice the rate, and half a batch of pseudo-inputs goes
        with each batch of rows.
    device, compile
        Where and how to train: ``"auto"`` takes CUDA where it is there, and compiles long runs. ``compile=True``
        compiles once for all fits of the process, of whatever size: for those who fit many models.
    verbose
        Whether to show a progress bar; it stays hidden where there is no terminal.
    random_state
        Same seed, same model.
    """

    def __init__(
        self,
        *,
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

    def _outside(
        self,
        x: Tensor,
        means: MeanPhase,
        pilot: Pilot,
        variance: Tensor,
        tail: float,
        problem: Problem,
    ) -> Outside | None:
        return None

    def _check_outside(self, y_scale: np.ndarray) -> None:
        pass

    def _blocks(self) -> int:
        return 0

    def _warms_up(self) -> bool:
        return False

    def _length(self) -> float:
        return 1.0
