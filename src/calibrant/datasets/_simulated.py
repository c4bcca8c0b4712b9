"""Samples drawn from a scenario, together with the truth they were drawn from."""

from dataclasses import dataclass

import numpy as np

from calibrant.checks import as_count, check_choice
from calibrant.datasets._dataset import MAX_ROWS, Dataset
from calibrant.datasets._scenarios import SCENARIOS, Scenario
from calibrant.randomness import read_generator

__all__ = ["Simulation", "simulate"]


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Dataset):
    """A simulated sample and the population behind it.

    Attributes
    ----------
    truth : Scenario
        The score distribution, the calibration function, and the population values of the
        calibration errors: ``truth.true_ece()``, ``truth.binned_ece(15)``,
        ``truth.ecce_mad()``, ``truth.ecce_r()``, ``truth.smooth_ece()``.
    """

    truth: Scenario


def simulate(scenario: str | Scenario, n: int, *, rng: int | np.random.Generator = 0) -> Simulation:
    """Draw a sample whose population calibration error is known.

    Predictions are independent draws from the scenario's score distribution, outcomes independent
    Bernoulli draws with the chance its calibration function gives. The named scenarios:

    ====================== ============================= =========================== ======== ======
    name                   scores p                      P(y = 1 | p)                true ECE smECE
    ====================== ============================= =========================== ======== ======
    perfect                Beta(2, 2)                    p                           0        0
    slightly_overconfident Beta(2, 2)                    sigmoid(0.9 logit p)        0.0145   0.0144
    overconfident          Beta(2, 2)                    sigmoid(0.6 logit p)        0.0638   0.0616
    underconfident         Beta(2, 2)                    sigmoid(1.5 logit p)        0.0594   0.0571
    sinusoidal             Beta(2, 2)                    p + 0.1 sin(4 pi p)         0.0645   0.0530
    shifted                Beta(2, 2)                    clip(p - 0.03, 0, 1)        0.0300   0.0300
    tenths                 Beta(2, 2) rounded to 1/10    sigmoid(0.6 logit p)        0.0619   0.0608
    rare                   Beta(1, 99)                   0.5 p + 0.005               0.0037   0.0034
    softmax                sigmoid(N(2, 2^2))            sigmoid(0.6 logit p)        0.0770   0.0759
    skewed                 Beta(1, 1), that is uniform   p + 0.1 sin(8 pi p)         0.0637   0.0408
    ====================== ============================= =========================== ======== ======

    In "rare" the base rate is exactly 1%. "skewed" is the synthetic example of Błasiok and
    Nakkiran (2023, Figure 2d), there with n = 1000.

    Parameters
    ----------
    scenario : str or Scenario
        A name from the table (the keys of `SCENARIOS`), or a scenario of your own.
    n : int
        The number of rows.
    rng : int or numpy.random.Generator
        The seed, or the generator to draw from. The same seed gives the same bytes.

    Returns
    -------
    Simulation
        The sample, and the population as `truth`.

    Examples
    --------
    >>> sample = simulate("overconfident", 1000)
    >>> sample
    Simulation(name='overconfident', n=1000)
    >>> round(sample.truth.true_ece(), 4)
    0.0638

    Scenarios are values: change a part to make another, here calibrated scores with ties.

    >>> from dataclasses import replace
    >>> tied = replace(SCENARIOS["tenths"], calibration=SCENARIOS["perfect"].calibration)
    >>> simulate(tied, 1000).truth.true_ece()
    0.0
    """
    if not isinstance(scenario, Scenario):
        check_choice(scenario, "scenario", SCENARIOS)
        scenario = SCENARIOS[scenario]
    n = as_count(n, "n", maximum=MAX_ROWS)
    generator = read_generator(rng)
    y_prob = scenario.scores.sample(n, generator)
    y_true = generator.random(n) < scenario.outcome_probability(y_prob)
    return Simulation(
        y_true=y_true.astype(np.uint8),
        y_prob=y_prob,
        name=scenario.name,
        source=f"simulated: {scenario.formula}",
        truth=scenario,
    )
