"""``nescio fit``: from a table to a saved model."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nescio._files import check_destination
from nescio._validation import InputError, RowError, counted, join_names
from nescio.cli.card import check_card, check_card_rows, row_names, write_fit_card
from nescio.cli.predict import output_columns
from nescio.cli.tables import (
    as_categories,
    check_columns,
    check_not_input,
    numeric_frame,
    read_header,
    read_table,
    with_targets,
)

if TYPE_CHECKING:
    from nescio import DissipativeRegressor

__all__ = ["NAMES", "column_names", "fit"]

NAMES = "COLUMN[,COLUMN]"
WORDS = ("auto", "target", "residual")  # of the level outside


def fit(
    data: Annotated[Path, typer.Argument(help="The table: .csv, .csv.gz or .parquet.", show_default=False)],
    target: Annotated[list[str], typer.Option(metavar=NAMES, help="Columns to predict.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Where to save the model.", show_default=False)],
    outside: Annotated[
        str,
        typer.Option(
            metavar="LEVEL[,LEVEL]",
            help="Standard deviation far from the data, in units of the target, or a word for it: target (its spread), "
            "residual (the errors inside), auto (a little above its spread, the error of a mean that has lost touch).",
        ),
    ] = "auto",
    ignore: Annotated[list[str] | None, typer.Option(metavar=NAMES, help="Columns that are not features.")] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(metavar=NAMES, help="Columns of codes that look like numbers."),
    ] = None,
    id: Annotated[list[str] | None, typer.Option(metavar=NAMES, help="Columns that name rows, no features.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same model.")] = 0,
    members: Annotated[
        int | None, typer.Option(min=1, help="How many models to mix. Default: 2 to 10, by the number of rows.")
    ] = None,
    max_steps: Annotated[int | None, typer.Option(min=1, help="Longest training of each phase.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    conformal: Annotated[bool, typer.Option(help="Calibrate intervals, so that they cover inside the data.")] = True,
    card: Annotated[
        Path | None,
        typer.Option(
            help="Also write a page (.html) on how far the model can be trusted. It is judged by a second fit, on four "
            "fifths of the rows, so this takes twice the time."
        ),
    ] = None,
) -> None:
    """Learn to predict one or more columns of a table from the others."""
    from nescio import DissipativeRegressor, save
    from nescio.estimators.arrays import LEAST_ROWS
    from nescio.training.devices import resolve_device

    levels = _levels(outside)
    check_not_input(out, data)
    check_destination(out)
    if card is not None:
        check_card(card, out, data)
    resolve_device(device)
    columns = read_header(data)
    targets = column_names(target, columns)
    ids = column_names(id, columns)
    left_out = [*column_names(ignore, columns), *ids]
    check_columns(data, targets, columns, "--target names")
    check_columns(data, left_out, columns, "--ignore or --id names")
    categories = column_names(category, columns)
    check_columns(data, categories, columns, "--category names")
    features = _features(columns, targets, left_out)
    for name in categories:
        if name not in features:
            raise InputError(f"column '{name}' is in --category and no feature; take it out of one of the options.")
    if not isinstance(levels, str) and len(levels) not in (1, len(targets)):
        raise InputError(
            f"--outside has {len(levels)} levels for {counted(len(targets), 'target')}; give one, or one for each."
        )
    frame = read_table(data, [*features, *targets], dict.fromkeys(categories, ()), features)
    if frame.height < LEAST_ROWS:
        raise InputError(f"'{data}' has {counted(frame.height, 'row')}; at least {LEAST_ROWS} are needed to fit.")
    frame, rows = with_targets(frame, targets)
    if frame.height < LEAST_ROWS:
        raise InputError(
            f"'{data}' has {counted(frame.height, 'row')} with a target; at least {LEAST_ROWS} are needed to fit."
        )
    if card is not None:
        check_card_rows(frame.height)
    y = numeric_frame(frame, targets, "a target must be numeric", rows).to_numpy()
    table = as_categories(frame.select(features), categories)

    settings: dict[str, Any] = {"random_state": seed, "device": device, "verbose": True}
    settings["outside"] = levels if isinstance(levels, str) or len(levels) > 1 else levels[0]
    settings["calibrate"] = "conformal" if conformal else None
    if members is not None:
        settings["n_members"] = members
    if max_steps is not None:
        settings["max_steps"] = max_steps
    model = DissipativeRegressor(**settings)
    began = time.perf_counter()
    try:
        model.fit(table, y[:, 0] if len(targets) == 1 else y)
    except RowError as error:
        raise error.in_file(rows) from error
    model.verbose = False
    model.support_ = replace(model.support_, rows=rows[model.support_.rows])  # of the file: explanations name them
    model.target_names_ = targets
    if ids:
        model.id_names_ = ids
    save(model, out)
    typer.echo("\n".join([*_columns_table(model), _summary(model, time.perf_counter() - began, out)]), err=True)
    if card is not None:
        names = row_names(frame, ids) or [str(row + 1) for row in rows]
        judged = write_fit_card(card, model, table, y, names, seed)
        typer.echo(f"Judged by a second fit without {judged} rows. The card is in {card}.", err=True)


def column_names(options: list[str] | None, columns: list[str]) -> list[str]:
    """Names from options with commas between them; a column whose own name has a comma is taken whole."""
    names: list[str] = []
    for option in options or []:
        names += [option] if option in columns else [name.strip() for name in option.split(",")]
    return names


def _levels(outside: str) -> str | tuple[float, ...]:
    """A word, or numbers."""
    if outside in WORDS:
        return outside
    try:
        levels = tuple(float(part) for part in outside.split(","))
    except ValueError:
        raise InputError(
            f"--outside must be a number, numbers with commas between them, or one of {join_names(WORDS)}; "
            f"got '{outside}'."
        ) from None
    if not all(math.isfinite(level) and level > 0 for level in levels):
        raise InputError(f"--outside must be positive, a standard deviation in units of the target; got '{outside}'.")
    return levels


def _features(columns: list[str], targets: list[str], left_out: list[str]) -> list[str]:
    """All columns that are left; refuses targets that contradict the rest."""
    for name in targets:
        if targets.count(name) > 1:
            raise InputError(f"--target names '{name}' twice; once is enough.")
        if name in left_out:
            raise InputError(f"column '{name}' is a target and also in --ignore or --id; take it out of one of them.")
    outputs = output_columns(targets)
    clash = [name for name in outputs if outputs.count(name) > 1]
    if clash:
        raise InputError(f"the targets would give two output columns called '{clash[0]}'; rename one of the targets.")
    features = [name for name in columns if name not in targets and name not in left_out]
    if not features:
        raise InputError("no feature column is left; take some out of --target, --ignore or --id.")
    return features


def _columns_table(model: DissipativeRegressor) -> list[str]:
    """What was done with each column, a line for each; plain numbers are counted only."""
    records = [] if model.columns_ is None else model.columns_.describe()
    told = [one for one in records if one["kind"] != "number" or one["columns"] != 1 or one["note"]]
    if not told:
        return []
    names, kinds = (max(len(one[key]) for one in told) for key in ("name", "kind"))
    notes = [f" ({one['note']})" if one["note"] else "" for one in told]
    lines = [
        f"  {one['name']:{names}}  {one['kind']:{kinds}}  {one['done']}{note}"
        for one, note in zip(told, notes, strict=True)
    ]
    plain = len(records) - len(told)
    if plain:
        lines.append(f"  and {counted(plain, 'number')} as {'it is' if plain == 1 else 'they are'}")
    return ["Columns:", *lines]


def _summary(model: DissipativeRegressor, seconds: float, out: Path) -> str:
    return "\n".join(
        [
            f"Learned from {counted(model.n_rows_, 'row')} and {counted(model.n_features_in_, 'feature')} "
            f"({join_names(model.feature_names_in_)}) in {seconds:.1f} s; shape {model.shape_:g}, "
            f"KL weight {model.kl_weight_:g}.",
            *(
                f"{name}: standard deviation about {inside:.3g} inside the data, {outside:.3g} far outside."
                for name, inside, outside in zip(
                    model.target_names_, model.inside_std_, model.outside_std_, strict=True
                )
            ),
            f"Saved to {out}.",
        ]
    )
