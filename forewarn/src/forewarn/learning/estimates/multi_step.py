"""A chain on the product whose steps are several ticks long.

What the Markov property loses from tick to tick adds up over a horizon; longer steps lose it less
often. The automaton runs over the recording itself, and a violation within the ticks of a step is
where the step ends. So nothing is lost of the property's own memory. What is left of the horizon
by whole steps is the chain's risk, which also counts as a few steps more in each product state.
"""

from __future__ import annotations

import numpy as np

from forewarn.learning.estimates.problem import Floats, Problem, Sample, Setting

PRIORS = (100.0, 10.0, 1.0)


class MultiStep:
    """A chain of longer steps; a setting is a lag in ticks, and the weight of the plain chain."""

    name = "multi_step"

    def settings(self, problem: Problem) -> tuple[Setting, ...]:
        """Return the lags that were counted."""
        return tuple((float(lag), prior) for prior in PRIORS for lag in problem.lags)

    def table(self, sample: Sample, setting: Setting) -> Floats:
        """Return the risk by backward induction in steps of the lag."""
        lag, prior = int(setting[0]), setting[1]
        within = sample.within
        steps = sample.steps(lag)
        total = np.asarray(steps.sum(axis=1)).ravel() + prior
        rest = (len(within) - 1) % lag
        values = within[rest].ravel()
        for done in range(rest + lag, len(within), lag):
            counted = steps @ np.append(values, (0.0, 1.0))
            values = (counted + prior * within[done].ravel()) / total
        return np.asarray(values.reshape(within[0].shape))

    def words(self, setting: Setting) -> str:
        """Say the lag."""
        return f"steps of {setting[0]:g} ticks, the chain as {setting[1]:g} of them"
