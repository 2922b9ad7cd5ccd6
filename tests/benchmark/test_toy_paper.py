"""The toy problem with the authors' settings."""

from __future__ import annotations

import numpy as np
import pytest

from nescio.benchmark.desiderata import Desiderata
from nescio.benchmark.toy_paper import PRIOR, fit_paper_toy, main
from nescio.benchmark.toy_runs import read_toy


def test_the_authors_form_comes_back_to_its_prior_and_vv_does_not():
    ours, theirs = (fit_paper_toy("standard", method, [3], steps=400)[0] for method in ("d-vv-as-run", "vv-as-run"))
    level = (PRIOR[1] / (PRIOR[0] - 1.0)) ** 0.5
    assert ours.level == theirs.level == pytest.approx(4.472, abs=1e-3)
    assert abs(level / np.std(ours.y_data) - 1.0) < 0.15  # the prior lies at the spread of the targets
    far = (ours.x <= -10.0) | (ours.x >= 20.0)
    assert np.median(ours.kl[far]) < 0.2 * np.median(theirs.kl[far])  # after a fifteenth of the training
    np.testing.assert_allclose(np.hypot(ours.aleatoric_std, ours.epistemic_std), ours.std, rtol=1e-9)


def test_a_seed_does_not_depend_on_its_stack_mates_where_the_rows_are_as_many():
    together = fit_paper_toy("standard", "vv-as-run", [1, 2], steps=20)
    alone = fit_paper_toy("standard", "vv-as-run", [2], steps=20)[0]
    np.testing.assert_allclose(together[1].std, alone.std, rtol=1e-4)


def test_records_have_a_line_for_each_fit(tmp_path, monkeypatch):
    from nescio.benchmark import toy_paper

    monkeypatch.setattr(toy_paper, "fit_paper_toy", lambda *task: fit_paper_toy(*task, steps=2))
    assert main(["--csv", str(tmp_path / "t.csv"), "--seeds", "2"]) == 0
    rows = read_toy(tmp_path / "t.csv")
    assert [(row["data"], row["method"], row["seed"]) for row in rows[:3]] == [
        ("standard", "d-vv-as-run", "0"), ("standard", "d-vv-as-run", "1"), ("standard", "vv-as-run", "0"),
    ]  # fmt: skip
    assert Desiderata.of_record(rows[0]).has_prior
