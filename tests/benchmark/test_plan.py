"""The plan: every task once, grouped by rules that look at nothing but the plan."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nescio._validation import InputError
from nescio.benchmark.methods import make_method
from nescio.benchmark.names import DATASETS, FAMILY, FULL_DATASETS, KINDS, METHODS, METRICS, PAPER_METHODS
from nescio.benchmark.plan import Request, Stack, Table, Task, check_request, make_plan, task_seed
from nescio.benchmark.stack import stack_parts
from nescio.training import can_compile

TABLES = {
    name: Table(
        45_730 if name == "protein" else 100 + 7 * number,
        40_000 if name == "naval" else 9,  # so many that protocol paper runs two or three of its trials together
        {"standard": 10, "gap": 3 + number, "tail": 4},
    )
    for number, name in enumerate(DATASETS)
}


def some(names):
    return st.lists(st.sampled_from(names), min_size=1, unique=True).map(tuple)


requests = st.sampled_from(["sound", "paper"]).flatmap(
    lambda protocol: st.builds(
        Request,
        st.just(protocol),
        some(DATASETS),
        some(tuple(PAPER_METHODS) if protocol == "paper" else METHODS),
        some(KINDS[protocol]),
    )
)


@settings(max_examples=60, deadline=None)
@given(requests)
def test_every_task_is_in_exactly_one_stack(request_):
    planned = [task for stack in make_plan(request_, TABLES) for task in stack.tasks]
    wanted = {
        Task(request_.protocol, dataset, kind, method, trial)
        for dataset in request_.datasets
        for kind in request_.kinds
        for method in request_.methods
        for trial in range(TABLES[dataset].trials[kind])
        if request_.protocol == "sound" or dataset in PAPER_METHODS[method]
    }
    assert len(planned) == len(set(planned))
    assert set(planned) == wanted


@settings(max_examples=60, deadline=None)
@given(requests)
def test_stacks_keep_the_rules(request_):
    for stack in make_plan(request_, TABLES):
        first = stack.tasks[0]
        assert len({(task.protocol, task.dataset, task.kind) for task in stack.tasks}) == 1
        trials = {task.trial for task in stack.tasks}
        if request_.protocol == "paper":
            there = [method for method in request_.methods if first.dataset in PAPER_METHODS[method]]
            assert list(stack.methods) == there
            assert len(stack.tasks) == len(there) * len(trials)
            if first.dataset == "naval":
                assert len(trials) in (2, 3)
            else:
                assert trials == set(range(TABLES[first.dataset].trials[first.kind]))
        elif first.method in FAMILY:
            assert set(stack.methods) == set(FAMILY) & set(request_.methods)
            assert len(trials) == 1
        else:
            assert stack.methods == (first.method,)
            whole, most = TABLES[first.dataset].trials[first.kind], 2 if first.dataset == "protein" else 10
            assert len(trials) == len(stack.tasks) <= most + (whole % most == 1)
            assert len(trials) > 1 or whole == 1


@settings(max_examples=30, deadline=None)
@given(requests, st.randoms())
def test_a_stack_does_not_depend_on_the_other_data_sets_of_the_plan(request_, random):
    whole = make_plan(request_, TABLES)
    dataset = random.choice(request_.datasets)
    alone = make_plan(request_._replace(datasets=(dataset,)), TABLES)
    assert alone == [stack for stack in whole if stack.tasks[0].dataset == dataset]


def test_large_tables_come_first_and_a_piece_is_ten_long_or_two_with_none_left_alone():
    table = {"yacht": Table(308, 6, {"standard": 23}), "protein": Table(45_730, 9, {"standard": 5})}
    plan = make_plan(Request("sound", ("yacht", "protein"), ("gp",), ("standard",)), table)
    assert [(stack.tasks[0].dataset, len(stack.tasks)) for stack in plan] == [
        ("protein", 2), ("protein", 3), ("yacht", 10), ("yacht", 10), ("yacht", 3),
    ]  # fmt: skip


def test_the_paper_s_trials_are_one_stack_unless_their_tables_are_too_large_side_by_side():
    table = {
        "superconductivity": Table(21_263, 81, {"standard": 3, "gap": 81}),
        "protein": Table(45_730, 9, {"gap": 9}),
    }
    plan = make_plan(Request("paper", ("superconductivity",), ("vv", "d-vv"), ("standard", "gap")), table)
    assert [len({task.trial for task in stack.tasks}) for stack in plan] == [3, *[9] * 9]
    assert all(stack.methods == ("vv", "d-vv") and len(stack.tasks) in (6, 18) for stack in plan)
    (whole,) = make_plan(Request("paper", ("protein",), ("vv",), ("gap",)), table)
    assert len(whole.tasks) == 9


def test_what_is_left_open_is_filled_in_and_the_paper_s_sets_are_the_full_ones():
    sound = check_request("sound")
    assert (sound.datasets, sound.methods, sound.kinds) == (DATASETS, METHODS, ("standard", "gap", "tail"))
    paper = check_request("paper", methods=["vv", "d-vv"])
    assert (paper.datasets, paper.methods, paper.kinds) == (FULL_DATASETS, ("d-vv", "vv"), ("standard", "gap"))
    assert set(DATASETS) - set(FULL_DATASETS) == {"superconductivity_partial"}
    assert len(FULL_DATASETS) == 12


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fair",), "protocol must be one of"),
        (("sound", ["bosten"]), "datasets of protocol sound must be among .* got 'bosten'"),
        (("sound", None, ["d-vv-swapped"]), "methods of protocol sound"),
        (("paper", None, ["gp"]), "methods of protocol paper"),
        (("paper", None, None, ["tail"]), "split of protocol paper must be among 'standard', 'gap'"),
        (("sound", None, None, None, 0), "trials must be a whole number of at least 1"),
    ],
)
def test_wrong_names_are_one_sentence(arguments, words):
    with pytest.raises(InputError, match=words):
        check_request(*arguments)


def test_fewer_trials_are_the_first_and_more_are_for_the_standard_split_only():
    request_ = check_request("sound", trials=3)
    assert [request_.trials_of(kind, 10) for kind in ("standard", "gap")] == [3, 3]
    request_ = check_request("sound", trials=20)
    assert [request_.trials_of(kind, 6) for kind in ("standard", "gap")] == [20, 6]
    assert check_request("paper").trials_of("gap", 13) == 13
    assert check_request("paper").trials_of("standard", 3) == 3


def test_the_seed_is_that_of_the_split_and_not_of_the_method():
    task = Task("sound", "boston", "gap", "vv", 3)
    assert task_seed(task) == task_seed(task._replace(method="gp"))
    others = [task._replace(trial=4), task._replace(kind="tail"), task._replace(dataset="yacht")]
    assert len({task_seed(each) for each in [task, *others]}) == 4
    assert task_seed(task._replace(protocol="paper")) == 5  # the authors' 2 + trial


def test_the_metrics_are_those_of_the_results():
    assert len(METRICS) == 20 + 4 * 6 + 1
    assert {"elbo", "coverage_90", "auroc_support_push", "fpr95_tail", "std_box", "seconds"} <= METRICS.keys()
    assert METRICS["coverage_90"].target == 0.9
    assert (METRICS["log_likelihood"].better, METRICS["rmse"].better, METRICS["width_50"].better) == (1, -1, 0)
    assert Stack(()).methods == ()


def test_stacks_are_compiled_where_it_is_asked_for_also_those_that_are_tried_again_alone():
    plain = check_request("sound", ["yacht"])
    assert not any(stack.compiled for stack in make_plan(plain, TABLES))
    asked = make_plan(check_request("sound", ["yacht"], compiled=True), TABLES)
    assert {stack.tasks for stack in asked} == {stack.tasks for stack in make_plan(plain, TABLES)}
    assert all(part.compiled for stack in asked for part in stack_parts(stack))


def test_one_stack_of_each_kind_comes_first_where_steps_are_compiled():
    stacks = make_plan(check_request("sound", compiled=True), TABLES)
    kinds = [(stack.tasks[0].dataset, stack.methods) for stack in stacks]
    datasets = [dataset for dataset, _ in kinds]
    assert datasets == sorted(datasets, key=lambda name: -TABLES[name].rows)
    for dataset in DATASETS:
        own = [methods for name, methods in kinds if name == dataset]
        several = len(set(own))
        assert len(set(own[:several])) == several > 2


def test_a_compiled_method_is_the_same_but_for_its_steps():
    plain, compiled = (make_method("vv", seed=3, compiled=compiled) for compiled in (False, True))
    differ = {name for name, value in plain.get_params().items() if value != compiled.get_params()[name]}
    assert differ == ({"compile"} if can_compile() else set())
    assert "compile" not in make_method("gp", seed=3, compiled=True).get_params()
    assert make_method("mc-dropout", seed=3, compiled=True).get_params()["compile"] == "auto"
