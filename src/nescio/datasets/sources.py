"""Where the twelve regression sets of the paper are published, in which form, and what their numbers amount to."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SOURCES", "Source"]

_UCI = "https://archive.ics.uci.edu/static/public/"
_UCI_OLD = "https://archive.ics.uci.edu/ml/machine-learning-databases/"

_WINE = (
    "fixed acidity", "volatile acidity", "citric acid", "residual sugar", "chlorides", "free sulfur dioxide",
    "total sulfur dioxide", "density", "pH", "sulphates", "alcohol",
)  # fmt: skip


class Source(NamedTuple):
    """One published table.

    ``member`` is the file's name inside the archive, empty where ``url`` is the file itself. ``form`` is a name of
    ``nescio.datasets.formats``. ``features`` is empty where the file's own header names them. ``first`` says that the
    target column comes first in the file. ``values`` is the digest of the numbers (``formats.digest_of``), taken from a
    copy whose values were compared with the publisher's file; None where no such copy was at hand.
    """

    name: str
    about: str
    url: str
    member: str
    form: str
    rows: int
    features: tuple[str, ...]
    targets: tuple[str, ...]
    values: str | None
    first: bool = False
    n_features: int = 0

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, inputs and outputs."""
        return self.rows, self.n_features or len(self.features), len(self.targets)


_ALL = (
    Source(
        "boston", "house prices in Boston (Harrison and Rubinfeld 1978)",
        _UCI_OLD + "housing/housing.data", "", "blanks", 506,
        ("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"), ("MEDV",),
        "c8a54113c8b973797b43e34edefaeb4fcaca6935f5c842e593963d3b7347bd90",
    ),
    Source(
        "carbon", "atoms of carbon nanotubes (Aci and Avci 2016)",
        _UCI_OLD + "00448/carbon_nanotubes.csv", "", "semicolons", 10721,
        ("Chiral indice n", "Chiral indice m", "Initial atomic coordinate u", "Initial atomic coordinate v",
         "Initial atomic coordinate w"),
        ("Calculated atomic coordinates u'", "Calculated atomic coordinates v'", "Calculated atomic coordinates w'"),
        "c5fd86bcdc537ea11054418fc8adc32b317891ec43fb229263928c15a5228723",
    ),
    Source(
        "ccpp", "power of a combined cycle plant (Tufekci 2014)",
        _UCI + "294/combined+cycle+power+plant.zip", "Folds5x2_pp.xlsx", "spreadsheet", 9568,
        ("AT", "V", "AP", "RH"), ("PE",),
        "2749a30362b3c453a5c6fe8b0d0ea77972999febfa6b94fd0da6f604b55a21e1",
    ),
    Source(
        "concrete", "strength of concrete (Yeh 1998)",
        _UCI + "165/concrete+compressive+strength.zip", "Concrete_Data.xls", "spreadsheet", 1030,
        ("Cement (component 1)(kg in a m^3 mixture)", "Blast Furnace Slag (component 2)(kg in a m^3 mixture)",
         "Fly Ash (component 3)(kg in a m^3 mixture)", "Water (component 4)(kg in a m^3 mixture)",
         "Superplasticizer (component 5)(kg in a m^3 mixture)", "Coarse Aggregate (component 6)(kg in a m^3 mixture)",
         "Fine Aggregate (component 7)(kg in a m^3 mixture)", "Age (day)"),
        ("Concrete compressive strength(MPa)",),
        None,  # our copy has the cells as displayed, rounded; the spreadsheet's own are not
    ),
    Source(
        "energy", "heating and cooling of buildings (Tsanas and Xifara 2012)",
        _UCI + "242/energy+efficiency.zip", "ENB2012_data.xlsx", "spreadsheet", 768,
        ("relative_compactness", "surface_area", "wall_area", "roof_area", "overall_height", "orientation",
         "glazing_area", "glazing_area_distribution"),
        ("heating_load", "cooling_load"),
        "0356610819e4ff1b2df635d783ffbf58b773eb13934ba6cccc4ad860cb7a0188",
    ),
    Source(
        "kin8nm", "a simulated robot arm (DELVE)",
        "https://www.openml.org/data/download/3626/dataset_2175_kin8nm.arff", "", "arff", 8192,
        tuple(f"theta{joint}" for joint in range(1, 9)), ("y",),
        "53b5dc21f9f87a19216d1fa42cefc38872f41534ea9f9464de8d4d3c6efcf210",
    ),
    Source(
        "naval", "decay of a simulated naval gas turbine (Coraddu et al. 2014)",
        _UCI + "316/condition+based+maintenance+of+naval+propulsion+plants.zip", "data.txt", "blanks", 11934,
        ("lever_position", "ship_speed_v", "gas_turbine_shaft_torque_GTT", "gas_turbine_rate_of_revolutions_GTn",
         "gas_generator_rate_of_revolutions_GGn", "starboard_propeller_torque_Ts", "port_propeller_torque_Tp",
         "hp_turbine_exit_temperature_T48", "gt_compressor_inlet_air_temperature_T1",
         "gt_compressor_outlet_air_temperature_T2", "hp_turbine_exit_pressure_P48",
         "gt_compressor_inlet_air_pressure_P1", "gt_compressor_outlet_air_pressure_P2",
         "gas_turbine_exhaust_gas_pressure_Pexh", "turbine_injection_control_TIC", "fuel_flow_mf"),
        ("gt_compressor_decay_state_coefficient", "gt_turbine_decay_state_coefficient"),
        "f6868c68f7504a215bcd9aec51ee248ca13ba47ba5c817c428f4aac784890415",
    ),
    Source(
        "protein", "protein structures of CASP 5 to 9 (Rana 2013)",
        _UCI + "265/physicochemical+properties+of+protein+tertiary+structure.zip", "CASP.csv", "commas", 45730,
        tuple(f"F{number}" for number in range(1, 10)), ("RMSD",),
        "f91987fe3316911fc78073b896b047859b3a1a589fb4c79031e1bbdb495db3b6", first=True,
    ),
    Source(
        "superconductivity", "critical temperatures of superconductors (Hamidieh 2018)",
        _UCI + "464/superconductivty+data.zip", "train.csv", "commas", 21263,
        (), ("critical_temp",), None, n_features=81,
    ),
    Source(
        "wine_red", "quality of red wine (Cortez et al. 2009)",
        _UCI + "186/wine+quality.zip", "winequality-red.csv", "semicolons", 1599, _WINE, ("quality",),
        "2fe3d36ef778cb9813a92c17231e7e9094487722bff782f4e7a4d92552f0491c",
    ),
    Source(
        "wine_white", "quality of white wine (Cortez et al. 2009)",
        _UCI + "186/wine+quality.zip", "winequality-white.csv", "semicolons", 4898, _WINE, ("quality",),
        "3dc6ee0e89b55d49fa583da3f8d45fd51e91bca2fee9820c22067bb1e0eaa842",
    ),
    Source(
        "yacht", "resistance of yacht hulls (Gerritsma et al. 1981)",
        _UCI + "243/yacht+hydrodynamics.zip", "yacht_hydrodynamics.data", "blanks", 308,
        ("longitudinal_position_center_of_buoyancy", "prismatic_coefficient", "length_displacement_ratio",
         "beam_draught_ratio", "length_beam_ratio", "froude_number"),
        ("residuary_resistance_per_unit_weight",),
        "9094835a50254fe3c7a325f1c3dee71dbda663bbd36f7015789a24b753147de2",
    ),
)  # fmt: skip

SOURCES: dict[str, Source] = {source.name: source for source in _ALL}
"""The twelve sets by name."""
