"""The d-V3AE: the posterior over the precision is also trained at codes where there are no data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.cluster import kmeans_plusplus

from nescio._random import child_seed
from nescio._validation import check_integer, check_one_of, check_positive
from nescio.distributions import Gamma
from nescio.generative.base import Learned
from nescio.generative.core import Decoded, PrecisionDecoder
from nescio.generative.phases import fit_precision
from nescio.generative.placement import drawn_codes, place_codes
from nescio.generative.priors import CodePrior
from nescio.generative.residuals import pixel_variance
from nescio.generative.v3ae import PrecisionVAE
from nescio.networks import Anchor
from nescio.objectives import prior_from_level
from nescio.pseudo_inputs import CodeDescent, Placement

__all__ = ["DissipativeVAE", "latent_anchor"]

POOL = 20_000
CENTRES = 1_024
REFERENCE = 10_000  # codes that centres and distances are taken from
USUAL, RARE = 0.99, 0.999  # of the codes of the data
MARGIN = 1.1  # times the distance from the centres that one code of the data in a thousand exceeds: the anchor starts
WIDTH = 1.25  # and is complete at this many times as far
DIRECTIONS = 1_024  # in which it is seen to that the anchor is complete in time
PSEUDO_SHARE = 0.5  # of a batch: a pseudo-input costs as much as an image


def latent_anchor(learned: Learned) -> Anchor:
    """Begun where one code of the data in a thousand comes, and complete at twice the radius of the data at the latest.

    The radius is the 99 % quantile of the norm of the codes' locations.
    """
    codes = drawn_codes(learned)
    rng = np.random.RandomState(child_seed(learned.seed, "centres") % 2**32)
    rows = codes[torch.as_tensor(rng.permutation(len(codes))[:REFERENCE]).to(codes.device)]
    centres = rows
    if len(rows) > CENTRES:
        found = kmeans_plusplus(rows.cpu().numpy(), CENTRES, random_state=rng, n_local_trials=1)[0]
        centres = torch.as_tensor(found).to(codes)
    anchor = Anchor(centres, 0.0, 1.0)
    away = anchor.distance_to_others(codes).cpu().numpy()
    directions = rng.normal(size=(DIRECTIONS, codes.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    radius = float(np.quantile(learned.codes[0].norm(dim=1).cpu().numpy(), 0.99))
    latest = float(anchor.distance(torch.as_tensor(2.0 * radius * directions).to(codes)).min())
    usual, rare = np.quantile(away, [USUAL, RARE]).tolist()
    full = max(min(WIDTH * MARGIN * rare, 0.95 * latest), usual, 1e-6)  # never so soon that the data are swallowed
    return Anchor(centres, full / WIDTH, full)


class DissipativeVAE(PrecisionVAE):
    """The d-V3AE: a decoder that is as sure as the data allow, and away from them says so, at a level you choose.

    Pseudo-inputs are placed in the space of codes, off those of the data, and there the posterior over the precision is
    trained towards the outside prior.

    Paper: eq:v3ae_loss.

    Deviation: two priors instead of one, pseudo-inputs at several distances instead of a descent of the aggregate
    posterior, the anchor, and no batch normalisation in the networks of the posterior. ``outside_prior="inside"``,
    ``placement=CodeDescent()``, ``anchor=False``, ``batch_norm=True``, ``head="concentration_rate"`` and
    ``kl_weight=1.0`` give the authors' form.

    Parameters
    ----------
    outside
        Standard deviation of a pixel far from the data, for pixels between 0 and 1; ``"pixels"``: the root of the mean
        variance of the training images' pixels.
    outside_prior
        ``"constant"``: the level is ``outside``; ``"inside"``: the prior at the data, the paper's single one. The
        prior ``"distance"`` belongs with ``"inside"``.
    outside_shape
        Shape of the outside prior.
    anchor
        Whether the posterior becomes the outside prior, by construction, where no code of the data comes.
    placement
        Where to put pseudo-inputs, a placement of ``nescio.pseudo_inputs`` or a function with the same signature; it is
        given codes instead of rows. ``None``: noise of several widths around codes, kept off the data;
        ``CodeDescent()``: the paper's.
    n_pseudo_inputs
        How many; ``"auto"``: 20,000.
    pseudo_weight
        Weight of their term.
    prior, shape, kl_weight, head, smallest_rate, smallest_excess, batch_norm
        As in :class:`~nescio.VariationalVarianceVAE`.
    n_latents, likelihood, annealed, encoder, decoder, shared_trunk, epochs, precision_epochs, batch_size
        As in :class:`~nescio.GaussianVAE`.
    learning_rate, n_samples, validation_fraction, device, compile, verbose, random_state
        As there.
    """

    def __init__(
        self,
        *,
        n_latents: int = 10,
        outside: float | str = "pixels",
        outside_prior: str = "constant",
        outside_shape: float = 3.0,
        anchor: bool = True,
        placement: Placement | CodeDescent | None = None,
        n_pseudo_inputs: int | str = "auto",
        pseudo_weight: float = 0.1,
        prior: str | tuple[Any, ...] = "weak",
        shape: float = 2.0,
        kl_weight: float = 0.2,
        head: str = "variance_shape",
        smallest_rate: float = 1e-7,
        smallest_excess: float | str = "auto",
        batch_norm: bool = False,
        likelihood: str = "gaussian",
        annealed: bool = False,
        encoder: str | Callable[..., Any] = "auto",
        decoder: str | Callable[..., Any] = "auto",
        shared_trunk: bool = False,
        epochs: int = 50,
        precision_epochs: int = 50,
        batch_size: int = 512,
        learning_rate: float = 3e-3,
        n_samples: int = 1,
        validation_fraction: float = 0.1,
        device: str | torch.device = "auto",
        compile: bool | str = "auto",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_latents = n_latents
        self.outside = outside
        self.outside_prior = outside_prior
        self.outside_shape = outside_shape
        self.anchor = anchor
        self.placement = placement
        self.n_pseudo_inputs = n_pseudo_inputs
        self.pseudo_weight = pseudo_weight
        self.prior = prior
        self.shape = shape
        self.kl_weight = kl_weight
        self.head = head
        self.smallest_rate = smallest_rate
        self.smallest_excess = smallest_excess
        self.batch_norm = batch_norm
        self.likelihood = likelihood
        self.annealed = annealed
        self.encoder = encoder
        self.decoder = decoder
        self.shared_trunk = shared_trunk
        self.epochs = epochs
        self.precision_epochs = precision_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.n_samples = n_samples
        self.validation_fraction = validation_fraction
        self.device = device
        self.compile = compile
        self.verbose = verbose
        self.random_state = random_state

    def _check_outside(self) -> None:
        check_one_of("outside_prior", self.outside_prior, ("constant", "inside"))
        if isinstance(self.outside, str):
            check_one_of("outside", self.outside, ("pixels",))
        else:
            check_positive("outside", self.outside)
        check_positive("outside_shape", self.outside_shape, above=1.0, why="for a finite predictive variance")
        check_positive("pseudo_weight", self.pseudo_weight)
        if self.n_pseudo_inputs != "auto":
            check_integer("n_pseudo_inputs", self.n_pseudo_inputs, least=1)

    def _fit_posterior(self, learned: Learned, network: PrecisionDecoder, prior: CodePrior) -> Decoded:
        count = POOL if self.n_pseudo_inputs == "auto" else int(self.n_pseudo_inputs)
        pool = place_codes(learned, self.placement, count)
        if isinstance(self.outside, str):
            level = pixel_variance(learned.images).mean().sqrt().clamp_min(1e-3)  # equal images have no spread
        else:
            level = pool.new_tensor(float(self.outside))
        if self.outside_prior == "constant":
            far = prior_from_level(level.reshape(1), float(self.outside_shape))
        else:
            farthest = prior(pool[pool.norm(dim=1).argmax()].unsqueeze(0))
            far = Gamma(farthest.concentration.flatten(), farthest.rate.flatten())
        at_pool = far if self.outside_prior == "constant" else prior(pool)
        wide = (len(pool), at_pool.rate.shape[-1])
        fit_precision(
            network,
            learned.model,
            learned.images,
            learned.codes,
            learned.course,
            prior,
            pool=pool,
            outside_prior=Gamma(at_pool.concentration.expand(wide), at_pool.rate.expand(wide)),
            kl_weight=float(self.kl_weight),
            pseudo_weight=float(self.pseudo_weight),
            pseudo_batch=max(1, round(PSEUDO_SHARE * learned.course.batch_size)),
        )
        self.outside_std_ = float((far.rate / (far.concentration - 1.0)).mean().sqrt())
        self.reference_prior_ = Gamma(far.concentration.cpu(), far.rate.cpu())
        return Decoded(precision=network, outside=far, anchor=latent_anchor(learned) if self.anchor else None)
