"""``nescio predict``: from a saved model and a table to predictions, with a verdict on each row."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from nescio._files import check_destination
from nescio._validation import InputError, check_fraction, counted, join_names
from nescio.cli.card import check_card, row_names, write_new_card
from nescio.cli.tables import check_columns, check_kind, check_not_input, numeric_frame, read_table, write_table

if TYPE_CHECKING:
    import polars as pl

    from nescio.estimators.explanation import Explanation

__all__ = ["model_inputs", "output_columns", "predict", "reading", "target_names"]

BLOCK = 20_000  # rows at a time: memory does not grow with the table
PARTS = ("mean", "std", "lower", "upper", "aleatoric_std", "epistemic_std")


def output_columns(targets: list[str], explain: bool = False) -> list[str]:
    """The columns that predictions of these targets have.

    >>> output_columns(["price"])[:2]
    ['price_mean', 'price_std']
    """
    more = ["support", "verdict", "interval", *(["why"] if explain else [])]
    return [*(f"{name}_{part}" for name in targets for part in PARTS), *more]


def predict(
    model: Annotated[Path, typer.Argument(help="What fit saved.", show_default=False)],
    data: Annotated[Path, typer.Argument(help="The table: .csv, .csv.gz or .parquet.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Where to write the predictions.", show_default=False)],
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.9,
    rates: Annotated[
        str, typer.Option(metavar="EDGE,OUTSIDE", help="How often rows from inside may be called edge and outside.")
    ] = "0.05,0.005",  # those of calibration, written out: the help need not wait for torch
    explain: Annotated[
        bool, typer.Option("--explain", help="Add a column that says why rows are at the edge or outside.")
    ] = False,
    card: Annotated[
        Path | None, typer.Option(help="Also write a page (.html) on the verdicts and the rows to look at.")
    ] = None,
) -> None:
    """Predict each row of a table: mean, spread, interval, and whether the model has seen anything like it.

    Columns that the model does not use are carried through, in front of the predictions.
    """
    from nescio import load
    from nescio.calibration import VERDICTS
    from nescio.estimators.watch import watch_rows

    check_fraction("--level", level)
    edge, outside = _rates(rates)
    check_kind(out)
    check_not_input(out, model, data)
    check_destination(out)
    if card is not None:
        check_card(card, out, model, data)
    regressor = load(model)
    frame = read_table(data, *reading(regressor))
    features, inputs = model_inputs(regressor, frame, data)
    targets = target_names(regressor)
    carried = frame.select([name for name in frame.columns if name not in features])
    outputs = output_columns(targets, explain)
    clash = [name for name in carried.columns if name in outputs]
    if clash:
        raise InputError(f"column '{clash[0]}' of '{data}' has the name of an output column; rename or drop it.")
    parts = [
        _answers(regressor, inputs[start : start + BLOCK], level, (edge, outside), explain)
        for start in range(0, frame.height, BLOCK)
    ]
    answers = [np.concatenate(column) for column in zip(*parts, strict=True)]
    write_table(carried.to_dict() | dict(zip(outputs, answers, strict=True)), out)
    words = answers[outputs.index("verdict")]
    counts = Counter(words.tolist())
    listed = ", ".join(f"{counts[word]} {word}" for word in VERDICTS if counts[word])
    typer.echo(f"Predicted {counted(frame.height, 'row')}: {listed}.\nWritten to {out}.", err=True)
    if carried.width:
        typer.echo(f"Not used by the model and carried through: {join_names(carried.columns)}.", err=True)
    watch = watch_rows(answers[outputs.index("support")], regressor.support_, edge, outside)
    typer.echo(str(watch), err=True)
    if card is not None:
        names = row_names(frame, getattr(regressor, "id_names_", ()))
        write_new_card(card, regressor, inputs, names, edge, outside)
        typer.echo(f"The card is in {card}.", err=True)


def _rates(text: str) -> tuple[float, float]:
    try:
        edge, outside = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--rates must be two numbers with a comma between them; got '{text}'.") from None
    check_fraction("--rates", edge)
    check_fraction("--rates", outside)
    if outside > edge:
        raise InputError(f"--rates must not have more false alarms outside than at the edge; got '{text}'.")
    return edge, outside


def reading(regressor: Any) -> tuple[list[str] | None, dict[str, tuple[str, ...]]]:
    """The columns that the model uses, None where it knows no names, and the levels of those that are text."""
    if not hasattr(regressor, "feature_names_in_"):
        return None, {}
    columns = () if regressor.columns_ is None else regressor.columns_.columns
    return regressor.feature_names_in_.tolist(), {column.name: column.levels for column in columns if column.levels}


def model_inputs(regressor: Any, frame: pl.DataFrame, data: Path) -> tuple[list[str], Any]:
    """Names of the features in the table ``data``, and their columns as the model takes them."""
    features = _features(regressor, frame, data)
    if hasattr(regressor, "feature_names_in_"):
        return features, frame.select(features)
    # A model that was fitted on an array has no names to compare with.
    return features, numeric_frame(frame, features, "the model was fitted on numbers there").to_numpy()


def _features(regressor: Any, frame: pl.DataFrame, data: Path) -> list[str]:
    if hasattr(regressor, "feature_names_in_"):
        names = [str(name) for name in regressor.feature_names_in_]
        check_columns(data, names, frame.columns, "the model needs")
        return names
    if frame.width != regressor.n_features_in_:
        raise InputError(
            f"the model was fitted on {counted(regressor.n_features_in_, 'column')} without names and '{data}' has "
            f"{frame.width}; leave only the features, in their order."
        )
    return frame.columns


def target_names(regressor: Any) -> list[str]:
    """Names of the targets: those of the table it was fitted on, or else ``y`` or ``y0, y1, ...``."""
    names = getattr(regressor, "target_names_", None)
    if names is not None:
        return list(names)
    return ["y"] if regressor.n_outputs_ == 1 else [f"y{number}" for number in range(regressor.n_outputs_)]


def _answers(regressor: Any, inputs: Any, level: float, rates: tuple[float, float], explain: bool) -> list[np.ndarray]:
    """The output columns in order."""
    rows = regressor._read(inputs)
    inputs = rows._replace(p=regressor._p_values(rows))  # found once, for all that ask for it
    dist = regressor.predict_dist(inputs)
    lower, upper = regressor.predict_interval(inputs, level)
    beyond_noise = np.hypot(dist.epistemic_std, dist.mean_std)  # with the noise it gives the std
    parts = [dist.mean, dist.std, lower, upper, dist.aleatoric_std, beyond_noise]
    tables = [part.reshape(len(part), -1) for part in parts]
    columns = [table[:, target] for target in range(regressor.n_outputs_) for table in tables]
    columns += [regressor.support(inputs), regressor.verdict(inputs, *rates), regressor.interval_kind(inputs, level)]
    if explain:
        words = [str(_counted_from_one(one)) if one.reasons else "" for one in regressor.explain(inputs, *rates)]
        columns.append(np.array(words, dtype=object))
    return columns


def _counted_from_one(explanation: Explanation) -> Explanation:
    """Training rows are numbered from 0 in Python, and from 1, as data rows, wherever the command line names one."""
    return replace(explanation, nearest=tuple(replace(near, row=near.row + 1) for near in explanation.nearest))
