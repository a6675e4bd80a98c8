"""A danger score: what a learned ensemble of trees makes of signals and of their recent past."""

from forewarn.states.danger.fit import DangerFit, Ensemble, lags_of
from forewarn.states.danger.score import Scoring

__all__ = ["DangerFit", "Ensemble", "Scoring", "lags_of"]
