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
        chosen: torch.device | None = torch.device(device)
    except (RuntimeError, TypeError, ValueError):
        chosen = None
    if chosen is None or chosen.type not in ("cpu", "cuda"):
        raise InputError(f"device must be 'auto', 'cpu' or a CUDA device; got {device!r}.")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if chosen.type == "cuda" and (chosen.index or 0) >= count:
        raise InputError(
            f"device={device!r} was asked for, but the number of CUDA devices is {count}; use device='auto'."
        )
    return chosen
