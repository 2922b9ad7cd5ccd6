"""The README's figures, made from the committed records: `make figures` writes them in, a test compares them.

Each table stands between two comments, ``<!-- figures:NAME -->`` and ``<!-- end of figures -->``.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from statistics import fmean

__all__ = ["fill", "main"]

Records = list[dict[str, str]]


def read_records(path: Path) -> Records:
    """Rows of a CSV of records."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def quality_table(records: Records) -> str:
    """Means over seeds for each data set: likelihood of both methods, coverage and detection of d-VV."""
    head = "| data | log-likelihood, d-VV | VV | difference | RMSE | coverage of 50 / 90 / 95 % | "
    head += "AUROC of std: box / far / near | near, by support | std at 100 std, over the level |"
    lines = [head, "|---" * 9 + "|"]
    for dataset in dict.fromkeys(record["dataset"] for record in records):
        ours, theirs = (
            {record["seed"]: record for record in records if (record["dataset"], record["method"]) == (dataset, method)}
            for method in ("d-vv", "vv")
        )
        mean = lambda name, runs=ours: fmean(float(run[name]) for run in runs.values())
        gap = fmean(float(ours[s]["log_likelihood"]) - float(theirs[s]["log_likelihood"]) for s in ours)
        cells = [
            dataset,
            f"{mean('log_likelihood'):.2f}",
            f"{mean('log_likelihood', theirs):.2f}",
            f"{gap:+.3f}",
            f"{mean('rmse'):.3f}",
            " / ".join(f"{mean(f'coverage_{level}'):.2f}" for level in (50, 90, 95)),
            " / ".join(f"{mean(f'auroc_{kind}'):.3f}" for kind in ("box", "far", "near")),
            f"{mean('auroc_near_support'):.3f}",
            f"{mean('std_far_ratio'):.3f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def speed_table(records: Records) -> str:
    """Microseconds per model-step and the ratio to the plain loop, for both kinds of networks."""
    lines = ["| | networks | models | µs per model-step | times as fast as the plain loop |", "|---|---|---|---|---|"]
    for record in records:
        if record["variant"].startswith("predict"):
            continue
        lines.append(
            f"| {record['variant']} | {record['net']} | {record['models']} "
            f"| {float(record['microseconds_per_model_step']):.0f} | {float(record['ratio_to_plain_loop']):.1f} |"
        )
    rows = {record["variant"]: float(record["microseconds_per_model_step"]) for record in records}
    ratio = rows["predict, ours"] / rows["predict, bare forward pass"]
    lines.append("")
    lines.append(
        f"`predict(X, return_std=True)` takes {ratio:.2f} times as long as a bare forward pass of its networks."
    )
    return "\n".join(lines)


def scaling_table(records: Records) -> str:
    """Seconds and memory of a fit against the number of rows."""
    head = ["| rows | columns | steps | seconds | memory of the fit, MiB |", "|---|---|---|---|---|"]
    rows = [
        f"| {int(record['rows']):,} | {record['columns']} | {record['max_steps']} "
        f"| {float(record['seconds']):.1f} | {float(record['fit_mib']):.0f} |"
        for record in records
    ]
    return "\n".join(head + rows)


TABLES = {"quality": quality_table, "speed": speed_table, "scaling": scaling_table}


def fill(text: str, results: Path) -> str:
    """The page with every table made anew from the records in ``results``."""
    for name, table in TABLES.items():
        begin, end = f"<!-- figures:{name} -->", "<!-- end of figures -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n\n{table(read_records(results / f'{name}.csv'))}\n\n{end}{after}"
    return text


def main(arguments: list[str] | None = None) -> int:
    """Rewrite the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, default=Path("README.md"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args(arguments)
    options.page.write_text(fill(options.page.read_text(), options.results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
