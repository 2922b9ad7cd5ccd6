"""``nescio export``: a saved model in a form that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nescio._files import check_destination
from nescio._validation import counted
from nescio.cli.tables import check_not_input

__all__ = ["export"]


def export(
    model: Annotated[Path, typer.Argument(help="What fit saved.", show_default=False)],
    onnx: Annotated[Path, typer.Option(help="Where to write the ONNX graph.", show_default=False)],
) -> None:
    """Write a saved model as an ONNX graph: from raw numeric columns to mean, std and verdict."""
    from nescio import load
    from nescio.export import to_onnx

    check_not_input(onnx, model, option="--onnx")
    check_destination(onnx)
    regressor = load(model, device="cpu")
    to_onnx(regressor, onnx)
    typer.echo(f"Written to {onnx}: input X ({counted(regressor.n_features_in_, 'column')}, float64).", err=True)
