"""A fitted model of images as named arrays and a plain description, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from nescio._fields import Fields, Tensors
from nescio._validation import InputError
from nescio.densities import AggregatePosterior
from nescio.distributions import Gamma
from nescio.generative.bernoulli import BernoulliVAE
from nescio.generative.core import Autoencoder, Decoded, PrecisionDecoder, make_decoder, make_encoder
from nescio.generative.dissipative import DissipativeVAE
from nescio.generative.v3ae import VariationalVarianceVAE
from nescio.generative.vae import GaussianVAE
from nescio.networks import Anchor, ConcentrationRateHead, VarianceShapeHead
from nescio.pseudo_inputs.settings import settings_from_json, settings_to_json

__all__ = ["FACTORIES", "MODELS", "from_state", "given_networks", "to_state"]

MODELS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (BernoulliVAE, DissipativeVAE, GaussianVAE, VariationalVarianceVAE)
}
FACTORIES = ("encoder", "decoder")
"""Arguments that may be the user's code: never written then, given back at load."""
HEADS: dict[str, type[Any]] = {kind.__name__: kind for kind in (ConcentrationRateHead, VarianceShapeHead)}
NUMBERS = ("residual_std_", "outside_std_")
"""Learned numbers that some models have."""
PROBES = 6
TOLERANCES = {"probe_mean": (0.0, 5e-3), "probe_variance": (0.05, 1e-3)}
"""Relative and absolute: another device rounds, more coarsely so in convolutions and where a Gamma's shape is near one;
another network answers something else altogether."""


def given_networks(model: Any) -> dict[str, Any]:
    """The functions that must be given back to load this model."""
    return {name: getattr(model, name) for name in FACTORIES if callable(getattr(model, name))}


def to_state(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and description of a fitted model; the description holds JSON values only."""
    kind = type(model).__name__
    if MODELS.get(kind) is not type(model):
        raise InputError(f"save knows {' and '.join(MODELS)}; got {kind}.")
    if not hasattr(model, "decoded_"):
        raise InputError(f"this {kind} is not fitted, so there is nothing to save; call fit first.")
    decoded: Decoded = model.decoded_
    arrays = {"codes_loc": _array(model.codes_.loc), "codes_scale": _array(model.codes_.scale)}
    arrays["radius"] = np.array([model.radius_], dtype=np.float64)
    arrays["held_out"] = np.asarray(model.held_out_, dtype=np.float64)  # whole numbers, exact up to 2 ** 53
    for role, module in _modules(model).items():
        floats = {name: value for name, value in module.state_dict().items() if value.is_floating_point()}
        arrays |= {f"{role}/{name}": _array(value) for name, value in floats.items()}
    if decoded.variance is not None:
        arrays["variance"] = _array(decoded.variance)
    if decoded.precision is not None:
        head: Any = decoded.precision.head
        arrays["head"] = np.array(dataclasses.astuple(head), dtype=np.float64)
        arrays |= _gamma("reference", model.reference_prior_)
    if decoded.outside is not None:
        arrays |= _gamma("outside", decoded.outside)
    if decoded.anchor is not None:
        arrays["anchor_centres"] = _array(decoded.anchor.centres)
        arrays["anchor_range"] = np.array([decoded.anchor.start, decoded.anchor.full], dtype=np.float64)
    arrays |= _probes(model)
    description = {
        "class": kind,
        "params": settings_to_json(model.get_params(deep=False), FACTORIES),
        "fitted": {
            "image_shape": [int(size) for size in model.image_shape_],
            "n_images": int(model.n_images_),
            "codes": len(model.codes_.loc),
            "held_out": len(model.held_out_),
            **{name.rstrip("_"): float(getattr(model, name)) for name in NUMBERS if hasattr(model, name)},
        },
        "decoder": {
            "variance": None if decoded.variance is None else decoded.variance.numel(),
            "scale": decoded.scale is not None,
            "head": "none" if decoded.precision is None else type(decoded.precision.head).__name__,
            "reference": None if decoded.precision is None else model.reference_prior_.rate.numel(),
            "outside": None if decoded.outside is None else decoded.outside.rate.numel(),
            "anchor": None if decoded.anchor is None else len(decoded.anchor.centres),
        },
    }
    return {name: np.ascontiguousarray(value) for name, value in arrays.items()}, description


def _modules(model: Any) -> dict[str, nn.Module]:
    found = {"autoencoder": model.autoencoder_, "scale": model.decoded_.scale, "precision": model.decoded_.precision}
    return {role: module for role, module in found.items() if module is not None}


def _array(value: torch.Tensor) -> np.ndarray:
    if value.dtype not in (torch.float32, torch.float64):
        raise InputError(f"a network with parameters of type {value.dtype} cannot be saved; use float32.")
    return value.detach().cpu().numpy()


def _gamma(name: str, prior: Gamma) -> dict[str, np.ndarray]:
    return {
        f"{name}_concentration": _array(prior.concentration.reshape(-1).float()),
        f"{name}_rate": _array(prior.rate.reshape(-1).float()),
    }


def _answers(model: Any, codes: np.ndarray) -> dict[str, np.ndarray]:
    found = model.decode(codes)
    return {"probe_mean": found.mean.double().numpy(), "probe_variance": found.variance.double().numpy()}


def _probes(model: Any) -> dict[str, np.ndarray]:
    """A few codes, of the data and ever farther away, and what the decoder said of them."""
    own = model.codes_.loc[: PROBES // 2].double().numpy()
    away = np.linspace(1.0, 3.0, PROBES - len(own))[:, None] * model.radius_ * np.ones((1, own.shape[1]))
    codes = np.concatenate([own, away / np.sqrt(own.shape[1])])
    answers = _answers(model, codes)
    if not all(np.isfinite(answer).all() for answer in answers.values()):
        raise InputError("this model's answers are not finite near its data, so it is not saved; fit it again.")
    return {"probe_codes": codes, **answers}


def from_state(arrays: dict[str, np.ndarray], description: Any, given: Mapping[str, Any], device: torch.device) -> Any:
    """The model that ``to_state`` described, on ``device``; ``given`` holds the user's functions."""
    entry = Fields(description, "model")
    kind = MODELS[entry.word("class", MODELS)]
    params = settings_from_json(entry.section("params").rest(), kind._get_param_names())
    fitted, decoder = entry.section("fitted"), entry.section("decoder")
    entry.done()
    for name in FACTORIES:
        if params.get(name) is None and name not in given:
            raise InputError(f"the {name} is your own code and not in the file; give it back: load(path, {name}=...).")
        if params.get(name) is not None and name in given:
            raise InputError(f"this model has a {name} of the library's own; leave {name} out of load.")
    model = kind(**{**params, **given})
    model._check_common()
    model._check()
    shape = tuple(fitted.widths("image_shape"))
    if len(shape) != 3:
        raise InputError("the manifest's model.fitted.image_shape must have three sizes.")
    latents, tensors = int(model.n_latents), Tensors(arrays)
    count, pixels = fitted.whole("codes", least=1), int(np.prod(shape, dtype=object))
    codes = (count, latents)
    # What has the size of a code or of an image is read before a network of that size is made.
    model.codes_ = AggregatePosterior(
        torch.tensor(tensors.take("codes_loc", codes)), torch.tensor(tensors.take("codes_scale", codes, positive=True))
    )
    probes = {"probe_codes": tensors.take("probe_codes", (PROBES, latents), np.float64)}
    for name in ("probe_mean", "probe_variance"):
        probes[name] = tensors.take(name, (PROBES, pixels), np.float64)
    model.radius_ = float(tensors.take("radius", (1,), np.float64, positive=True)[0])
    model.held_out_ = tensors.take("held_out", (fitted.whole("held_out", least=1),), np.float64).astype(np.int64)
    model.image_shape_, model.n_images_ = shape, fitted.whole("n_images", least=1)
    for name in NUMBERS:
        if name.rstrip("_") in description["fitted"]:
            setattr(model, name, fitted.number(name.rstrip("_"), least=0.0))
    fitted.done()
    _networks(model, decoder, tensors, shape, device)
    decoder.done()
    tensors.done()
    answers = _answers(model, probes["probe_codes"])
    for name, answer in answers.items():
        relative, absolute = TOLERANCES[name]
        if not (np.abs(answer - probes[name]) <= absolute + relative * np.abs(probes[name])).all():
            raise InputError("the model does not give the answers that were stored with it.")
    return model


def _networks(model: Any, entry: Fields, tensors: Tensors, shape: tuple[int, ...], device: torch.device) -> None:
    latents, pixels = int(model.n_latents), int(np.prod(shape))
    autoencoder = Autoencoder(
        make_encoder(model.encoder, shape, latents, shared_trunk=bool(model.shared_trunk)),
        make_decoder(model.decoder, latents, shape, 1, batch_norm=True),
    )
    model.autoencoder_ = _loaded(autoencoder, "autoencoder", tensors).to(device)
    variance = scale = precision = outside = None
    size = entry.optional_whole("variance", least=1)
    if size is not None:
        variance = torch.tensor(tensors.take("variance", (size,), positive=True)).to(device)
    if entry.flag("scale"):
        network = make_decoder(model.decoder, latents, shape, 1, batch_norm=bool(model.batch_norm))
        scale = _loaded(network, "scale", tensors).to(device)
    head, reference = entry.word("head", ("none", *HEADS)), entry.optional_whole("reference", least=1)
    if head != "none":
        precision = _precision(model, HEADS[head], tensors, shape).to(device)
        model.reference_prior_ = _prior("reference", reference or 1, tensors, torch.device("cpu"))
    size = entry.optional_whole("outside", least=1)
    if size is not None:
        outside = _prior("outside", size, tensors, device)
    anchor = _anchor(entry.optional_whole("anchor", least=1), tensors, latents, device)
    told = [part is not None for part in (variance, scale, precision)]
    if sum(told) > 1 or (size is not None and size not in (1, pixels)):
        raise InputError("the manifest's model.decoder contradicts itself; the model file is damaged.")
    smallest = float(getattr(model, "smallest_scale", 1e-3))
    model.decoded_ = Decoded(variance, scale, precision, outside, anchor, smallest)


def _precision(model: Any, kind: type[Any], tensors: Tensors, shape: tuple[int, ...]) -> PrecisionDecoder:
    settings = tensors.take("head", (len(dataclasses.fields(kind)),), np.float64)
    if settings.min() < 0.0 or settings[0] == 0.0 or settings.max() > 80.0:  # exp(80) is still a float32
        raise InputError("the tensor 'head' holds a setting beyond its bounds; the model file is damaged.")
    maps = make_decoder(
        model.decoder, int(model.n_latents), shape, 2,
        batch_norm=bool(model.batch_norm), shared_trunk=bool(model.shared_trunk),
    )  # fmt: skip
    return _loaded(PrecisionDecoder(maps, kind(*settings.tolist()), torch.zeros(2, 1)), "precision", tensors)


def _loaded(module: Any, role: str, tensors: Tensors) -> Any:
    """The module with the file's numbers in it, frozen."""
    state = module.state_dict()
    for name, value in state.items():
        if value.is_floating_point():
            taken = tensors.take(f"{role}/{name}", tuple(value.shape), value.numpy().dtype)
            state[name] = torch.tensor(taken)
    module.load_state_dict(state)
    return module.eval().requires_grad_(False)


def _prior(name: str, size: int, tensors: Tensors, device: torch.device) -> Gamma:
    values = [
        torch.tensor(tensors.take(f"{name}_{part}", (size,), positive=True)).to(device)
        for part in ("concentration", "rate")
    ]
    return Gamma(values[0], values[1])


def _anchor(count: int | None, tensors: Tensors, latents: int, device: torch.device) -> Anchor | None:
    if count is None:
        return None
    centres = tensors.take("anchor_centres", (count, latents))
    start, full = tensors.take("anchor_range", (2,), np.float64).tolist()
    if not 0.0 <= start < full:
        raise InputError("the tensor 'anchor_range' must hold two ascending distances; the model file is damaged.")
    return Anchor(torch.tensor(centres).to(device), start, full)
