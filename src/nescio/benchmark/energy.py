"""Energy of a run and what it costs the climate, where codecarbon is installed and somebody asks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from nescio._validation import InputError

__all__ = ["Energy", "measured_energy"]


@dataclass
class Energy:
    """What the machine took while a run went on; the fields are filled at its end, where the tracker could tell."""

    kilowatt_hours: float = float("nan")
    kilograms: float = float("nan")
    """Of CO₂ equivalents, by the mix of power at the place."""
    place: str = ""
    """Where codecarbon takes the machine to be: it asks a server, and where it reaches none it takes Quebec."""

    def facts(self) -> dict[str, object]:
        """As columns of the record of a run; none where the tracker could not tell."""
        if math.isnan(self.kilowatt_hours):
            return {}
        place = {"place": self.place} if self.place else {}
        return {"kilowatt_hours": self.kilowatt_hours, "kilograms_co2": self.kilograms, **place}

    def words(self) -> str:
        """One sentence."""
        if math.isnan(self.kilowatt_hours):
            return "Energy: codecarbon could not tell."
        amounts = f"{self.kilowatt_hours:.3g} kWh, {self.kilograms:.3g} kg of CO2"
        return f"Energy: {amounts}, by codecarbon's estimate{f' for {self.place}' if self.place else ''}."


def measured_energy() -> AbstractContextManager[Energy]:
    """Measure from here to the end of the block; this machine as a whole, whatever else it does."""
    try:
        from codecarbon import EmissionsTracker
    except ModuleNotFoundError as error:
        raise InputError("--energy needs codecarbon, which is not installed: pip install 'nescio[energy]'.") from error
    try:
        tracker = EmissionsTracker(output_methods=[], log_level="critical")
    except TypeError as error:
        raise InputError(f"--energy needs codecarbon 3.3 or newer: pip install 'nescio[energy]' ({error}).") from error
    return _measured(tracker)


@contextmanager
def _measured(tracker: Any) -> Iterator[Energy]:
    energy = Energy()
    tracker.start()
    try:
        yield energy
    finally:
        kilograms, found = tracker.stop(), getattr(tracker, "final_emissions_data", None)
        if kilograms is not None and found is not None:  # it swallows its own errors, and then tells nothing
            energy.kilograms, energy.kilowatt_hours = float(kilograms), float(found.energy_consumed)
            names = (getattr(found, name, None) for name in ("region", "country_name"))
            energy.place = ", ".join(filter(None, names))
