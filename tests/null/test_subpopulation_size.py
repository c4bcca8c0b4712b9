"""How often a group is said to differ from a population that it does not differ from.

Outcomes follow p^2, far from calibrated but alike for all, and who is in the group depends on the
score: only the comparison at the same scores is fair. Where the group's scores are rounded and the
others' are not, cells are wide, and outcomes follow p.
"""

import numpy as np
import pytest

from calibrant.data.rows import Sample
from calibrant.inference.null_simulation import TIE, permuted_within, simulate
from calibrant.measures.cumulative import Statistic
from calibrant.measures.subpopulation import GroupCells
from calibrant.numerics.probability import brownian_range, rank_p_value

LEVEL = 0.05
REPETITIONS = 1000
RANGE = Statistic.RANGE
SCORES = {
    "uniform": lambda rng, n: rng.random(n),
    "tenths": lambda rng, n: rng.integers(0, 11, n) / 10,
}


def rejections(sample, member, rng):
    """Return whether Monte-Carlo and asymptotic P-values reject."""
    cells = GroupCells.around(sample, member)
    if not cells.is_informative:  # nothing to compare: the test refuses, which is not a rejection
        return np.zeros(2)
    walk = cells.differences()
    reach = walk.excursion(RANGE)
    simulated = RANGE.of(*simulate(permuted_within(cells), 39, rng)) / walk.total
    p_values = (
        rank_p_value(simulated, reach, TIE * walk.sigma),
        brownian_range.sf(reach / walk.sigma),
    )
    return np.array(p_values) <= LEVEL


def rates(n, scores, weighted):
    rng = np.random.default_rng([n, len(scores), weighted])
    rejected = np.zeros(2)
    for _ in range(REPETITIONS):
        p = SCORES[scores](rng, n)
        y, member = rng.random(n) < p**2, rng.random(n) < 0.1 + 0.6 * p
        sample = Sample(y, p, rng.exponential(1, n) if weighted else None)
        rejected += rejections(sample, member, rng)
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


@pytest.mark.parametrize(("n", "levels"), [(2000, 5), (4000, 10)])
@pytest.mark.parametrize("rounded", [np.round, np.floor])
def test_group_of_rounded_scores_among_others(n, levels, rounded):
    rng = np.random.default_rng(levels)
    repetitions, rejected = 300, np.zeros(2)
    for _ in range(repetitions):
        p, member = rng.beta(1, 9, n), rng.random(n) < 0.5
        p[member] = rounded(levels * p[member]) / levels
        rejected += rejections(Sample(rng.random(n) < p, p, None), member, rng)
    # Standard error 1.3%. Were outcomes dealt out, and not residuals, those rounded down to fifths
    # would be rejected in 99% of cases, to tenths in 18%.
    assert np.all(rejected / repetitions <= 0.09)
