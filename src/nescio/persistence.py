"""Save a fitted model and load it again: safetensors and a JSON manifest in a zip. Nothing is executed on load."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save as pack

from nescio._archive import read_archive, write_archive
from nescio._fields import Fields
from nescio._validation import InputError
from nescio.estimators import state as regressors
from nescio.generative import state as images
from nescio.training.devices import resolve_device

__all__ = ["FORMAT_VERSION", "load", "save"]

FORMAT = "nescio model"
FORMAT_VERSION = 2
LIMITS = {"manifest.json": 16 * 2**20, "tensors.safetensors": 2**31}
"""Largest size of each member, in bytes: names of 100,000 columns, and 10,000 reference rows of 20,000 columns."""
_DTYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to ``path``.

    The file holds numbers and a description, no code: a mean that is not ours, or a network that you gave as a
    function, is not in it and must be given back to :func:`load`; a placement that is a function of yours, and a
    ``random_state`` that is not a whole number, are None after loading, since predictions do not need them. The file is
    written beside ``path`` and renamed: an older file stays whole until the new one is.

    Note that it holds up to 10,000 training rows (inputs only), which ``support`` measures distances to.
    """
    kind = images if type(model).__name__ in images.MODELS else regressors
    arrays, description = kind.to_state(model)
    try:
        kind.from_state(arrays, description, kind.given_networks(model), torch.device("cpu"))
    except InputError as error:
        raise InputError(f"this model would not load again, so it is not saved: {error}") from None
    tensors = pack(arrays)
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": _versions(),
        "tensors_sha256": hashlib.sha256(tensors).hexdigest(),
        "model": description,
    }
    text = json.dumps(manifest, indent=1, allow_nan=False).encode()
    write_archive(path, {"manifest.json": text, "tensors.safetensors": tensors}, LIMITS)


def _versions() -> dict[str, str]:
    from nescio import __version__

    others = {name: version(name) for name in ("torch", "numpy", "scikit-learn", "safetensors")}
    return {"nescio": __version__, "python": platform.python_version(), **others}


def load(path: str | os.PathLike[str], *, device: str | torch.device = "auto", **given_back: Any) -> Any:
    """The model that :func:`save` wrote: the same predictions, bit for bit on the same device.

    Parameters
    ----------
    path
        The file.
    device
        Where the model shall compute; also becomes its ``device`` parameter, unless ``"auto"``.
    **given_back
        ``mean`` where it was not ours: the fitted regressor, ``model.mean_``, or your function or module.
        ``outside`` where the level was a function of yours. ``mean_network`` and ``precision_network``, or ``encoder``
        and ``decoder``, where the model was fitted with functions of yours.

    Raises
    ------
    InputError
        Where the file is missing, damaged, altered, too large or from a later version, where something is to be given
        back, or where the model does not give the predictions that were stored with it.
    """
    for name, value in given_back.items():
        if name not in (*regressors.FACTORIES, *images.FACTORIES):
            raise InputError(
                f"load takes back mean, mean_network and precision_network, outside, encoder and decoder; got {name!r}."
            )
        if name != "mean" and not callable(value):
            what = "of x" if name == "outside" else "that returns an nn.Module"
            raise InputError(f"{name} must be a function {what}; got {value!r}.")
    where = resolve_device(device)
    members = read_archive(path, LIMITS)
    try:
        manifest = Fields(_parse(members["manifest.json"]))
        _check_format(manifest)
        if hashlib.sha256(members["tensors.safetensors"]).hexdigest() != manifest.text("tensors_sha256"):
            raise InputError("the checksum of its tensors is wrong; the file was altered or damaged.")
        description = manifest.section("model").rest()
        manifest.done()
        kind = images if str(description.get("class")) in images.MODELS else regressors
        for name in given_back:
            if name not in kind.FACTORIES:
                raise InputError(f"this model takes back {' and '.join(kind.FACTORIES)}; leave {name} out of load.")
        model = kind.from_state(_unpack(members["tensors.safetensors"]), description, given_back, where)
    except RecursionError:
        raise InputError(f"'{path}' cannot be loaded: its manifest is nested too deeply.") from None
    except InputError as error:
        raise InputError(f"'{path}' cannot be loaded: {error}") from None
    if device != "auto":
        model.device = device
    return model


def _check_format(manifest: Fields) -> None:
    manifest.word("format", [FORMAT])
    number = manifest.whole("format_version", least=1)
    if number > FORMAT_VERSION:
        raise InputError(
            f"it has format version {number} and this version of nescio reads up to {FORMAT_VERSION}; update nescio."
        )
    if number < FORMAT_VERSION:
        raise InputError(f"it has format version {number}, from before the first release; fit the model again.")
    manifest.section("versions")


def _parse(text: bytes) -> Any:
    def refuse(name: str) -> Any:
        raise ValueError(name)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            raise ValueError("a key is there twice")
        return values

    try:
        return json.loads(text.decode("utf-8"), parse_constant=refuse, object_pairs_hook=unique)
    except ValueError:
        raise InputError("its manifest is not valid JSON.") from None


def _unpack(data: bytes) -> dict[str, np.ndarray]:
    arrays = {}
    try:
        for name, entry in deserialize(data):  # type: ignore[no-untyped-call]
            kind = _DTYPES.get(entry["dtype"])
            if kind is None:
                raise InputError(f"its tensors must be floating-point numbers; one is {entry['dtype']}.")
            flat = np.frombuffer(entry["data"], dtype=kind)
            arrays[name] = flat.reshape(entry["shape"]).astype(np.dtype(kind).newbyteorder("="))
    except (SafetensorError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("its tensors cannot be read; the file is damaged.") from None
    return arrays
