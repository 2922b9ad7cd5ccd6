"""Energy of a run: what the tracker says is told, and without it one sentence is."""

from __future__ import annotations

import math
import sys
from types import ModuleType, SimpleNamespace

import pytest

from nescio._validation import InputError
from nescio.benchmark.energy import measured_energy


class Tracker:
    """Stands in for codecarbon's; it uses two watt hours."""

    running = 0
    region = "the south"

    def __init__(self, **options):
        assert options["output_methods"] == []

    def start(self):
        Tracker.running += 1

    def stop(self):
        Tracker.running -= 1
        self.final_emissions_data = SimpleNamespace(energy_consumed=0.002, region=self.region, country_name="Iceland")
        return 0.0007


def install(monkeypatch, tracker):
    module = ModuleType("codecarbon")
    module.EmissionsTracker = tracker
    monkeypatch.setitem(sys.modules, "codecarbon", module)


@pytest.fixture
def tracker(monkeypatch):
    install(monkeypatch, Tracker)


@pytest.mark.usefixtures("tracker")
def test_energy_carbon_and_place_are_told_in_one_sentence(monkeypatch):
    with measured_energy() as energy:
        assert Tracker.running == 1
    assert energy.words() == "Energy: 0.002 kWh, 0.0007 kg of CO2, by codecarbon's estimate for the south, Iceland."
    assert energy.facts() == {"kilowatt_hours": 0.002, "kilograms_co2": 0.0007, "place": "the south, Iceland"}
    monkeypatch.setattr(Tracker, "region", None)
    with measured_energy() as energy:
        pass
    assert energy.place == "Iceland"


@pytest.mark.usefixtures("tracker")
def test_the_tracker_stops_whatever_happens():
    with pytest.raises(RuntimeError, match="broke"), measured_energy():
        raise RuntimeError("broke")
    assert Tracker.running == 0


def test_a_tracker_that_fails_at_its_end_takes_nothing_with_it(monkeypatch):
    class Failing(Tracker):
        def stop(self):  # codecarbon swallows its own errors
            Tracker.running -= 1

    install(monkeypatch, Failing)
    with measured_energy() as energy:
        pass
    assert math.isnan(energy.kilowatt_hours)
    assert math.isnan(energy.kilograms)
    assert energy.words() == "Energy: codecarbon could not tell."
    assert energy.facts() == {}


def test_without_codecarbon_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "codecarbon", None)
    with pytest.raises(InputError, match=r"--energy needs codecarbon.*nescio\[energy\]"), measured_energy():
        pass


def test_a_codecarbon_that_is_too_old_is_told(monkeypatch):
    class Older(Tracker):
        def __init__(self, **options):
            raise TypeError("unexpected keyword argument 'output_methods'")

    install(monkeypatch, Older)
    with pytest.raises(InputError, match=r"--energy needs codecarbon 3\.3 or newer"), measured_energy():
        pass
