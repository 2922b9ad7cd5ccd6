"""Tables on the device: what a phase's loss gathers its batches from."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from nescio.training.sampling import Draw

__all__ = ["Table"]


@dataclass(frozen=True)
class Table:
    """One table shared by the M models of a stack, with each model's scalers.

    ``inputs (N, D)`` is shared. ``targets`` is ``(N, P)``, shared, or ``(M, N, P)`` where models have targets of
    their own, such as out-of-fold residuals. A model sees ``(inputs - input_shift) / input_scale`` and
    ``(targets - target_shift) / target_scale``, with scalers of shape ``(M, D)`` and ``(M, P)``; None leaves the
    values as they are.
    """

    inputs: Tensor
    targets: Tensor
    input_shift: Tensor | None = None
    input_scale: Tensor | None = None
    target_shift: Tensor | None = None
    target_scale: Tensor | None = None

    def gather(self, draw: Draw) -> tuple[Tensor, Tensor]:
        """Scaled inputs ``(A, B, D)`` and targets ``(A, B, P)`` of a draw."""
        x = self.inputs[draw.rows]
        if self.input_shift is not None and self.input_scale is not None:
            x = (x - self.input_shift[draw.models].unsqueeze(1)) / self.input_scale[draw.models].unsqueeze(1)
        own = self.targets.dim() == 3
        y = self.targets[draw.models.unsqueeze(1), draw.rows] if own else self.targets[draw.rows]
        if self.target_shift is not None and self.target_scale is not None:
            y = (y - self.target_shift[draw.models].unsqueeze(1)) / self.target_scale[draw.models].unsqueeze(1)
        return x, y

    def whole(self, models: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Scaled inputs and targets of ``rows (A, B)``, for validation."""
        return self.gather(Draw(models, rows, None, None))

    def to(self, device: torch.device) -> Table:
        """The same table on another device."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: part.to(device) for name, part in parts.items() if part is not None})
