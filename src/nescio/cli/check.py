"""``nescio check``: does a saved model keep the contract?"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from nescio._validation import InputError, check_fraction, counted, join_names
from nescio.cli.fit import NAMES, column_names
from nescio.cli.predict import model_inputs, reading, target_names
from nescio.cli.tables import check_columns, numeric_frame, read_header, read_table, with_targets

__all__ = ["check"]


def check(
    model: Annotated[Path, typer.Argument(help="What fit saved.", show_default=False)],
    data: Annotated[
        Path | None, typer.Argument(help="Rows that the model was not fitted on, with their targets.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(metavar=NAMES, help="The columns that were to be predicted. Default: as in fit.")
    ] = None,
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.9,
) -> None:
    """Check what a model promises: its level far away, no dip before, coverage and false alarms on fresh rows.

    Without DATA only what needs no fresh rows is checked. The exit code is 1 where a check failed.
    """
    from nescio import load
    from nescio.testing import check_extrapolation

    check_fraction("--level", level)
    if target and data is None:
        raise InputError("--target names columns of DATA; give the table too.")
    regressor = load(model)
    X = y = None
    if data is not None:
        X, y = _rows(regressor, data, target)
    report = check_extrapolation(regressor, X, y, level=level)
    typer.echo(report.table())
    failed = sum(line.passed is False for line in report.checks)
    made = sum(line.passed is not None for line in report.checks)
    if failed:
        typer.echo(f"The contract is broken: {failed} of {made} checks failed.", err=True)
        raise typer.Exit(1)
    typer.echo(f"The contract holds: {made} checks passed, {len(report.checks) - made} not made.", err=True)


def _rows(regressor: Any, data: Path, target: list[str] | None) -> tuple[Any, Any]:
    """Features and targets of a table; no targets, and a note, where they are not named and not there."""
    columns = read_header(data)
    names = column_names(target, columns) if target else target_names(regressor)
    if target:
        check_columns(data, names, columns, "--target names")
    if len(names) != regressor.n_outputs_:
        raise InputError(
            f"--target must name the {counted(regressor.n_outputs_, 'target')} of the model; got {len(names)}."
        )
    features, levels = reading(regressor)
    frame = read_table(data, None if features is None else [*features, *names], levels)
    missing = [name for name in names if name not in columns]
    if missing:
        warnings.warn(
            f"'{data}' has no column {join_names(missing)}, so coverage was not checked; where the target has another "
            "name, give that with --target.",
            UserWarning,
            stacklevel=2,
        )
        return model_inputs(regressor, frame, data)[1], None
    frame, rows = with_targets(frame, names)
    inputs = model_inputs(regressor, frame.drop(names), data)[1]
    values = numeric_frame(frame, names, "a target must be numeric", rows).to_numpy()
    return inputs, values[:, 0] if regressor.single_target_ else values
