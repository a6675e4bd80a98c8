"""Shares of visits after which a violation followed, alone or with the chain as prior."""

from __future__ import annotations

from forewarn.learning.estimates.problem import Floats, Problem, Sample, Setting

STRENGTHS = (3000.0, 1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)


class Frequency:
    """The share itself.

    The share over all product states counts as one visit more: nothing that was counted once is
    certain.
    """

    name = "frequency"

    def settings(self, problem: Problem) -> tuple[Setting, ...]:
        """Return that there is nothing to choose."""
        return ((),)

    def table(self, sample: Sample, setting: Setting) -> Floats:
        """Return the shares."""
        return (sample.followed + sample.share) / (sample.visits + 1.0)

    def words(self, setting: Setting) -> str:
        """Return nothing."""
        return ""


class Bayes:
    """The share, to which the chain's risk is added as so many visits."""

    name = "bayes"

    def settings(self, problem: Problem) -> tuple[Setting, ...]:
        """Return the strengths of the prior, in visits."""
        return tuple((strength,) for strength in STRENGTHS)

    def table(self, sample: Sample, setting: Setting) -> Floats:
        """Return the posterior means."""
        (strength,) = setting
        return (sample.followed + strength * sample.risk) / (sample.visits + strength)

    def words(self, setting: Setting) -> str:
        """Say the strength."""
        return f"the chain counts as {setting[0]:g} visits"


class OfChain:
    """The chain's risk."""

    name = "chain"

    def settings(self, problem: Problem) -> tuple[Setting, ...]:
        """Return that there is nothing to choose."""
        return ((),)

    def table(self, sample: Sample, setting: Setting) -> Floats:
        """Return the chain's table."""
        return sample.risk

    def words(self, setting: Setting) -> str:
        """Return nothing."""
        return ""
