"""Where to compute."""

from __future__ import annotations

import torch

from nescio._validation import InputError

__all__ = ["resolve_device"]


def resolve_device(device: str | torch.device) -> torch.device:
    """The device called ``device``; ``"auto"`` is the first CUDA device where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"device must be 'auto', 'cpu' or a CUDA device; got {device!r}.") from error
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device={device!r} was asked for, but torch sees no CUDA device; use device='auto'.")
    return chosen
