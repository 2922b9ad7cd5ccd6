"""How far a model can be trusted, in plain words: sentences that follow from the numbers by rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nescio.estimators.watch import Watch
from nescio.report.card_statistics import Accuracy, Coverage, Ranking

__all__ = ["Findings", "Mark", "percent", "short", "trust_marks", "trust_sentences", "written"]

# The share of a guess's squared error that is taken away: 0.9 leaves a third of the error, 0.5 seven tenths.
SKILLS = ((0.9, "closely", "good"), (0.5, "fairly well", "good"), (0.1, "roughly", "fair"))
FEW = 50  # rows: a share of half is then known to a seventh, no better
ORIGINS = {
    "data": "a level taken from the data, since none was set",
    "number": "the level that was set",
    "function": "the mean of the level that was set as a function of the row",
}
LONGEST = 34  # letters of a name in a figure or a table


@dataclass(frozen=True)
class Findings:
    """What the sentences about one target are made of; ``outside`` is None for a model that has no level there."""

    target: str
    accuracy: Accuracy
    coverage: Sequence[Coverage]
    ranking: Ranking
    watch: Watch | None
    inside: float
    outside: float | None
    chosen: str
    """Where the level comes from: ``"data"``, ``"number"`` or ``"function"``."""
    seen: bool
    """Whether the rows seem to be training rows."""


@dataclass(frozen=True)
class Mark:
    """One line of the summary: what was looked at, ``"good"``, ``"fair"`` or ``"poor"``, and in a few words why."""

    about: str
    grade: str
    words: str


def written(value: float) -> str:
    """A number in three figures, or as many as it has before the point.

    >>> written(16.7123), written(-4.6), written(0.00412), written(123456.7), written(math.inf), written(-0.0)
    ('16.7', '−4.60', '0.00412', '123,457', '∞', '0')
    """
    if not math.isfinite(value):
        return "—" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0.0:
        return "0"
    if abs(value) >= 1e9 or abs(value) < 1e-4:
        return f"{value:.2e}".replace("-", "−")
    text = f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:#.3g}"
    return text.replace("-", "−")


def percent(share: float) -> str:
    """A share in per cent, with a decimal below ten, and never broken over two lines.

    >>> [percent(share).replace("\\xa0", " ") for share in (0.9123, 0.0042, 0.0)]
    ['91 %', '0.4 %', '0 %']
    """
    return f"{100.0 * share:.1f}\xa0%" if 0.0 < share < 0.1 else f"{100.0 * share:.0f}\xa0%"


def short(name: object, longest: int = LONGEST) -> str:
    """A name cut to ``longest`` letters, after a whole word where that leaves half of them, on one line.

    >>> short("a very long name of a column", 14), short("oneverylongword", 8), short("two\\nlines")
    ('a very long…', 'onevery…', 'two lines')
    """
    text = " ".join(str(name).split())
    if len(text) <= longest:
        return text
    cut = text[: longest - 1]
    whole = cut.rpartition(" ")[0].rstrip("( ")
    return f"{whole if len(whole) >= longest // 2 else cut}…"


def trust_marks(findings: Findings) -> list[Mark]:
    """The summary in four marks: accuracy, intervals, knowing its errors, the level outside."""
    near = _near(findings.accuracy.skill)
    line = _ninety(findings.coverage)
    ranks = findings.ranking
    marks = [
        Mark("accuracy", near[1], f"explains {percent(max(0.0, findings.accuracy.skill))} of the variation"),
        Mark(
            "90 % intervals",
            {"as promised": "good", "too wide": "fair", "too narrow": "poor"}[line.word],
            f"{line.word}: {percent(line.share)} of rows",
        ),
        Mark("knows its errors", "good", "unsure where it errs")
        if ranks.tells
        else Mark("knows its errors", "fair", "not shown by these rows"),
    ]
    if findings.outside is None:
        return [*marks, Mark("outside the data", "poor", "no level is kept there")]
    return [*marks, Mark("outside the data", "good", f"falls back to ±\xa0{written(findings.outside)}")]


def trust_sentences(findings: Findings) -> list[str]:
    """The paragraph, sentence by sentence."""
    reached, line, name = findings.accuracy, _ninety(findings.coverage), short(findings.target)
    sentences = []
    if findings.seen:
        sentences.append(
            "These rows look like rows the model was trained on, so the numbers below are better than what new rows "
            "will see: make the card with rows that were held out."
        )
    near, _ = _near(reached.skill)
    on = f"On {_rows(reached.rows)}{'' if findings.seen else ' it had not seen'}, the model"
    if near:
        sentences.append(
            f"{on} followed {name} {near}: it was off by {written(reached.rmse)} in the usual case (root mean square), "
            f"where answering the mean of the training rows would have been off by {written(reached.guess_rmse)}."
        )
    else:
        sentences.append(
            f"{on} was no better than answering the mean of the training rows throughout: it was off by "
            f"{written(reached.rmse)}, the mean by {written(reached.guess_rmse)}. Do not decide anything by its means."
        )
    sentences.append(_interval_sentence(line))
    sentences.append(_ranking_sentence(findings.ranking))
    sentences += _outside_sentences(findings)
    if reached.rows < FEW:
        sentences.append(
            f"With only {_rows(reached.rows)} to judge by, all of this is rough: of true 90 % intervals, anything from "
            f"{percent(line.fewest / line.rows)} to {percent(line.most / line.rows)} may hold by luck alone."
        )
    return sentences


def _near(skill: float) -> tuple[str, str]:
    return next(((word, grade) for least, word, grade in SKILLS if skill >= least), ("", "poor"))


def _ninety(lines: Sequence[Coverage]) -> Coverage:
    return next(line for line in lines if line.group == "all" and line.level == 0.9)


def _rows(count: int) -> str:
    return f"{count:,} row" + ("" if count == 1 else "s")


def _interval_sentence(line: Coverage) -> str:
    found = f"Its 90 % intervals held {line.hits:,} of {line.rows:,} values ({percent(line.share)})"
    return {
        "as promised": f"{found}, as many as they promise.",
        "too narrow": f"{found}, fewer than they promise: they are too narrow, so widen them before you rely on them.",
        "too wide": f"{found}, more than they promise: they are wider than they need be, on the safe side.",
    }[line.word]


def _ranking_sentence(ranks: Ranking) -> str:
    halves = f"the half of the rows it was surer of, it was off by {written(ranks.sure)}; in the other half, by "
    if ranks.tells:
        return f"It knows where it errs: in {halves}{written(ranks.unsure)}."
    return (
        f"Whether it is surer where it errs less cannot be told from these rows: in {halves}{written(ranks.unsure)}. "
        "Take the width of its intervals as an average, not as a statement about single rows."
    )


def _outside_sentences(findings: Findings) -> list[str]:
    seen = findings.watch
    sentences = []
    if seen is not None and seen.alarm:
        sentences.append(
            f"It calls {seen.n_outside:,} of these rows outside what it has seen and {seen.n_edge - seen.n_outside:,} "
            "at the edge, more than rows like the training rows would give: some come from elsewhere."
        )
    if findings.outside is None:
        sentences.append(
            "Outside its data this kind of model says whatever its network happens to say, often with great certainty: "
            "go by the verdict, and do not use it for rows that are outside."
        )
        return sentences
    times = findings.outside / findings.inside if findings.inside > 0.0 else math.inf
    whose = ORIGINS[findings.chosen]
    sentences.append(
        f"Far from all it has seen its standard deviation goes to {written(findings.outside)}, {whose}; that is "
        f"{written(times)} times the usual {written(findings.inside)} inside. The mean it gives there is only a guess."
    )
    sentences.append(
        "So: use it for rows it calls inside, look twice at those at the edge, and ask another source about the rest."
    )
    return sentences
