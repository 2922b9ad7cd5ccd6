"""Tables of the models of images: means of their own records, printed numbers only where they belong."""

from __future__ import annotations

import math

import pytest

from nescio.benchmark.detection_tables import detection_tables, tables_of_models
from nescio.benchmark.image_tables import image_tables, printed_metrics_table, printed_times_table


def image_row(method, metric, value, seed=0, *, protocol="sound", dataset="fashion_mnist", latent="10"):
    return {
        "protocol": protocol,
        "dataset": dataset,
        "method": method,
        "latent": latent,
        "seed": str(seed),
        "metric": metric,
        "value": str(value),
    }


def detection_row(score, outside, value, seed=0, *, refit="none", inside="fashion_mnist", metric="auroc"):
    return {
        "protocol": "sound",
        "inside": inside,
        "outside": outside,
        "method": "d-v3ae",
        "latent": "10",
        "score": score,
        "refit": refit,
        "seed": str(seed),
        "metric": metric,
        "value": str(value),
    }


def column(table, name):
    place = table.columns.index(name)
    return {str(row[0].value): row[place] for row in table.rows}


def named(tables, name):
    return next(table for table in tables if table.name == name)


MEASURED = [
    image_row(method, metric, value + seed, seed)
    for method, shift in (("vae", 0.0), ("d-v3ae", 10.0), ("bernoulli", 900.0))
    for seed in (0, 1, 2)
    for metric, value in (("elbo", 100.0 + shift), ("rmse_sample", 5.0 - 0.1 * shift))
]


def test_cells_are_means_and_deviations_over_seeds_and_the_best_density_is_marked():
    table = named(image_tables(MEASURED), "images_sound_fashion_mnist_10")
    bound = column(table, "ELBO")
    assert bound["d-v3ae"].value == pytest.approx(111.0)
    assert bound["d-v3ae"].spread == pytest.approx(1.0)
    assert [name for name, cell in bound.items() if cell.best] == ["d-v3ae"]  # shares of ones are never compared
    assert [name for name, cell in column(table, "RMSE of samples").items() if cell.best] == ["d-v3ae"]
    assert column(table, "seeds")["vae"].value == "3"


def test_printed_numbers_stand_beside_the_models_they_were_printed_for_alone():
    printed = column(named(image_tables(MEASURED), "images_sound_fashion_mnist_10"), "printed log p")
    assert (printed["vae"].value, printed["d-v3ae"].value) == (2215.54, 2349.71)
    assert printed["bernoulli"].value is None
    for change in ({"latent": "2"}, {"protocol": "tf32"}, {"dataset": "cifar10_subset"}):
        (table,) = image_tables([row | change for row in MEASURED])
        assert "printed log p" not in table.columns


def test_the_printed_tables_are_whole_and_say_which_numbers_come_from_two_models():
    rows = printed_metrics_table().rows
    assert [(row[0].value, row[2].value) for row in rows if row[3].notes] == [("svhn", "d-v3ae"), ("cifar10", "d-v3ae")]
    assert [row[4].value for row in rows] == [0.171, 0.158, 0.097, 0.087, 0.154, 0.129]
    assert [row[2].value for row in printed_times_table("v3ae").rows] == [407.991, 2022.803, 2023.293]


def test_the_lowest_and_highest_ray_are_over_all_seeds():
    rows = [
        *MEASURED,
        *(
            image_row("d-v3ae", f"ray_variance_{name}", value, seed)
            for seed, ends in enumerate(((0.2, 0.5, 0.9), (0.1, 0.4, 0.7)))
            for name, value in zip(("lowest", "mean", "highest"), ends, strict=True)
        ),
    ]
    table = named(image_tables(rows), "rays_sound_fashion_mnist_10")
    assert column(table, "lowest ray")["d-v3ae"].value == 0.1
    assert column(table, "highest ray")["d-v3ae"].value == 0.9
    assert column(table, "mean over rays")["d-v3ae"].value == pytest.approx(0.45)


def test_seconds_stand_beside_the_printed_ones_with_and_without_pseudo_inputs():
    rows = [image_row("v3ae", "seconds_train", 10.0), image_row("d-v3ae", "seconds_train", 12.0)]
    table = named([*image_tables([*rows, image_row("d-v3ae", "overhead_pseudo_inputs", 0.2)])], "image_times")
    seconds = {row[1].value: (row[4].value, row[5].value, row[6].value) for row in table.rows}
    assert seconds == {"v3ae": (10.0, None, 407.991), "d-v3ae": (12.0, 0.2, 504.19)}


def test_scores_are_compared_by_their_auroc_and_those_that_know_the_answer_are_never_marked_best():
    rows = [
        detection_row("novelty", "mnist", 0.9),
        detection_row("elbo", "mnist", 0.8),
        detection_row("elbo", "mnist", 0.99, refit="transductive"),
        detection_row("elbo", "noise", 0.7),
        detection_row("novelty", "mnist", 0.1, metric="fpr95"),
    ]
    tables = detection_tables(rows)
    scores = column(named(tables, "detection_sound_fashion_mnist_10_d-v3ae"), "mnist")
    assert (scores["novelty"].value, scores["elbo"].value) == (0.9, 0.8)
    assert scores["novelty"].best
    refits = column(named(tables, "refit_sound_fashion_mnist_10_d-v3ae"), "mnist")
    assert (refits["none"].value, refits["transductive"].value) == (0.8, 0.99)
    assert not refits["transductive"].best  # it knows the answer
    assert tables_of_models(rows) == tables[:-1]


def test_the_worst_pair_is_among_sets_and_not_among_turned_images():
    rows = [
        detection_row("elbo", "mnist", 0.9),
        detection_row("elbo", "fashion_mnist", 0.7, inside="mnist"),
        detection_row("elbo", "rotate_90", 0.1),
    ]
    (row,) = named(detection_tables(rows), "detection_worst").rows
    assert row[3].value == 0.7
    assert row[4].value == "mnist / fashion_mnist"
    assert math.isclose(row[2].value, 0.8)
