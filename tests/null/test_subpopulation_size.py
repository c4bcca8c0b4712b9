"""How often a group is said to differ from a population that it does not differ from.

Outcomes follow p^2, far from calibrated but alike for all, and who is in the group depends on the
score: only the comparison at the same scores is fair.
"""

import numpy as np
import pytest

from calibrant.inference.laws import brownian_range
from calibrant.inference.null import DealtCounts, DealtOutcomes, rank_p_value, simulate
from calibrant.measures.group_walk import GroupCells
from calibrant.measures.walk import Statistic
from calibrant.sample import Sample

LEVEL = 0.05
REPETITIONS = 1000
RANGE = Statistic.RANGE
SCORES = {
    "uniform": lambda rng, n: rng.random(n),
    "tenths": lambda rng, n: rng.integers(0, 11, n) / 10,
}


def rates(n, scores, weighted):
    """Return the rates of rejection of Monte-Carlo and of asymptotic P-values."""
    rng = np.random.default_rng([n, len(scores), weighted])
    rejected = np.zeros(2)
    for _ in range(REPETITIONS):
        p = SCORES[scores](rng, n)
        y, member = rng.random(n) < p**2, rng.random(n) < 0.1 + 0.6 * p
        sample = Sample(y, p, rng.exponential(1, n) if weighted else None)
        cells = GroupCells.around(sample, member)
        walk = cells.walk()
        if walk.sigma == 0:  # nothing to compare: the test refuses, which is not a rejection
            continue
        reach = walk.reach(RANGE)
        dealt = (DealtOutcomes if weighted else DealtCounts).of(cells)
        simulated = RANGE.of(*simulate(dealt, 39, rng)) / walk.total
        rejected[0] += rank_p_value(simulated, reach, walk.sigma) <= LEVEL
        rejected[1] += brownian_range.sf(reach / walk.sigma) <= LEVEL
    return rejected / REPETITIONS


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [60, 600])
def test_group_like_its_population(n, scores, weighted):
    monte_carlo, asymptotic = rates(n, scores, weighted)
    # Standard error 0.7%: at most 5% by three of them, and with 600 rows not far below.
    assert monte_carlo <= 0.07
    assert asymptotic <= 0.07
    if n == 600:
        assert monte_carlo >= 0.03
