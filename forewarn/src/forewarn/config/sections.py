"""The sections of a monitor file: what each key means, and what is accepted."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from forewarn.config.actions import ACTIONS, COMFORTABLE_STOP, Asked
from forewarn.config.fields import (
    LARGEST,
    Duration,
    Finite,
    Positive,
    Seconds,
    Section,
    default,
    endless,
)
from forewarn.config.fields import no_bool as _no_bool
from forewarn.config.signals import Expr
from forewarn.config.templates import with_formula
from forewarn.registry import ESTIMATORS, extensions

Horizon = Annotated[float, endless("unbounded"), Field(gt=0)]
Probability = Annotated[Finite, Field(ge=0, le=1)]
Ticks = Annotated[int, BeforeValidator(_no_bool), Field(ge=1, le=int(LARGEST))]


class StatesSpec(Section):
    """What a state is.

    Attributes
    ----------
    kind : str
        ``predicates`` or ``tree``.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    kind: Annotated[str, Field(min_length=1)] = "predicates"


class ShapeSpec(Section):
    """Lines and polygons that derived signals may ask about.

    Attributes
    ----------
    file, layer : str or None
        A map file and one of its layers; ``$VARIABLES`` of the environment are filled in.
    polygon, line : list of [x, y] or None
        A single shape: a list of ``[x, y]`` in metres.
    """

    file: str | None = None
    layer: str | None = None
    polygon: Annotated[tuple[tuple[Finite, Finite], ...], Field(min_length=3)] | None = None
    line: Annotated[tuple[tuple[Finite, Finite], ...], Field(min_length=2)] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> ShapeSpec:
        if (self.file is None) != (self.layer is None):
            raise ValueError("file and layer go together")
        if sum(source is not None for source in (self.file, self.polygon, self.line)) != 1:
            raise ValueError("one of: file and layer, polygon, line")
        return self


class ForbidSpec(Section):
    """Transitions that cannot happen: from states where `from` holds to those where `to` does."""

    source: Expr = Field(alias="from")
    target: Expr = Field(alias="to")


class ConstraintSpec(Section):
    """One declared fact about which states and transitions are possible.

    Attributes
    ----------
    exclusive : tuple of str or None
        Of these predicates at most one holds: ``{exclusive: [red, green]}``.
    implies : tuple of str or None
        Where the first holds, so does the second: ``{implies: [a, b]}``.
    irreversible : str or None
        Once it holds, it stays: ``{irreversible: started}``.
    forbid : ForbidSpec or None
        No step leads from one to the other: ``{forbid: {from: standing, to: fast}}``.
    """

    exclusive: tuple[str, ...] | None = None
    implies: tuple[str, str] | None = None
    irreversible: str | None = None
    forbid: ForbidSpec | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> ConstraintSpec:
        if len(self.model_fields_set) != 1:
            raise ValueError("each entry holds one of: exclusive, implies, irreversible, forbid")
        return self


class Thresholds(Section):
    """Risk levels of the policy.

    Attributes
    ----------
    warn, act : float
        Levels at which a warning begins and the intervention is asked for. ``warn`` is at most
        ``act``.
    release : float
        Level below which an intervention may end, lower than ``act``. Where not given: 0.2, or half
        of ``act`` if that is less. A warning may end below the lesser of it and ``warn``.
    """

    warn: Probability = 0.3
    act: Probability = 0.5
    release: Probability = 0.2

    @model_validator(mode="after")
    def _ordered(self) -> Thresholds:
        given = self.model_fields_set
        # Users need not mend a value that they did not write.
        if "release" not in given:
            object.__setattr__(self, "release", min(self.release, self.act / 2))
        if "warn" not in given:
            object.__setattr__(self, "warn", min(self.warn, self.act))
        if not self.release < self.act:
            raise ValueError(
                f"release {self.release:g} must be below act {self.act:g}, or alerts flicker"
            )
        if self.release == 0:
            raise ValueError(
                "release 0 must be above 0: no risk is below it, and no alert would end"
            )
        if self.warn > self.act:
            raise ValueError(f"warn {self.warn:g} must not be above act {self.act:g}")
        return self


def _check_limit(action: str, speed_limit: float | None) -> None:
    if ACTIONS[action].limits and speed_limit is None:
        raise ValueError(f"{action} needs speed_limit: in m/s")


class EscalationStep(Section):
    """What is asked for once an alert has lasted some time.

    Attributes
    ----------
    after : float
        Seconds since the alert began.
    action : str
        Intervention.
    speed_limit : float or None
        Limit in m/s, for ``LIMIT_SPEED``.
    """

    after: Duration
    action: Asked
    speed_limit: Seconds | None = None

    @model_validator(mode="after")
    def _speed_limit(self) -> EscalationStep:
        _check_limit(self.action, self.speed_limit)
        return self


def _estimator(value: Any, own: ValidatorFunctionWrapHandler) -> Any:
    try:
        return own(value)
    except ValidationError:
        if value in extensions(ESTIMATORS):
            return value
        raise


Estimator = Literal["chain", "frequency", "bayes", "logistic", "multi_step", "ensemble"]


class PropertySpec(Section):
    """One safety rule and what to do about its risk.

    Attributes
    ----------
    formula : str
        Formula over predicates, terminal labels and comparisons. `template` with its parts may
        stand in its place.
    horizon : float
        Seconds that the risk looks ahead, longer than the formula's own bound.
    thresholds : Thresholds
        Levels of risk at which warnings and interventions begin and end.
    risk_measure : str
        What is compared with the thresholds: the estimate (``risk``), its upper bound (``upper``),
        the mean risk over what the state may be (``expected``), or the least risk over all choices
        among recorded actions (``min_risk``). ``min_risk`` needs a model that counts actions; its
        bounds hold for all counts at once. Where no action was seen, ``out_of_model`` holds.
    estimator : str
        What the risk is estimated from; other packages may add some. Not with ``risk_of: action``,
        nor with bounds of the kind ``sound``.
    scores : tuple of str
        Signals in (0, 1) that say by themselves how likely a violation within the horizon is:
        ``ensemble`` adds their weighted logits at each tick. Learned scores ``for`` the property
        count without being named. Where one is unknown, a table without scores answers. A score
        that was fitted to the same recordings flatters itself.
    risk_of : str
        Whose risk it is: that of the state, or that of the action in force from this tick on (for
        an agent the proposed call). ``action`` needs a model that counts actions; its bounds hold
        for all counts at once, and no calibration is applied. Where the action is not known it is
        the state's risk; for one never seen in the state, ``out_of_model`` holds.
    enter, exit : int
        Ticks in a row, with a figure that is high enough or the rule broken, that begin and end an
        alert. A terminal label that breaks the rule, or a violation after which it is kept again,
        begins one at once.
    hold : float
        Seconds that an alert lasts at least.
    hold_while : str or None
        With ``mode: act``, what is asked for at ``act`` does not end while this is true or unknown.
        Where not given: never.
    on_unknown : str
        What becomes of a call or goal of which it is not known whether it breaks the rule.
    out_of_model : str
        What a state unknown to the model asks for. Where not given, a file that only observes
        (no ``mode: act``, actuator or guard) warns.
    out_of_model_timeout : float
        Seconds after which such a state asks for less: a limit of ``out_of_model_speed`` where an
        actuator can limit the speed, else a warning.
    out_of_model_speed : float
        That limit, in m/s. It lasts until the state is known again or an operator calls
        ``~/release``.
    intervention : str
        What is asked for at ``act``, from the mildest to the strongest.
    speed_limit : float or None
        Limit in m/s, for ``LIMIT_SPEED``.
    escalation : tuple of EscalationStep
        Stronger interventions the longer an alert lasts: ``[{after: 2.0, action:
        EMERGENCY_STOP}]``.
    breach_clear_time : float
        Seconds in a row without a breach after which it has cleared; a pending obligation that is
        met clears it at once. Violations before count as one.
    description, source : str
        For people: what the rule says, and where it comes from.
    """

    formula: Annotated[str, Field(min_length=1)]
    horizon: Horizon = 3.0
    thresholds: Thresholds = default(Thresholds)
    risk_measure: Literal["risk", "upper", "min_risk", "expected"] = "risk"
    estimator: Annotated[Estimator, WrapValidator(_estimator)] = "chain"
    scores: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    risk_of: Literal["state", "action"] = "state"
    enter: Ticks = 2
    exit: Ticks = 5
    hold: Duration = 1.0
    hold_while: Expr | None = None
    on_unknown: Literal["block", "ask", "pass"] = "block"
    out_of_model: Literal["act", "warn", "ignore"] = "act"
    out_of_model_timeout: Duration = 3.0
    out_of_model_speed: Positive = 0.5
    intervention: Asked = COMFORTABLE_STOP
    speed_limit: Seconds | None = None
    escalation: tuple[EscalationStep, ...] = ()
    breach_clear_time: Duration = 1.0
    description: str = ""
    source: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_template(cls, data: Any) -> Any:
        return with_formula(data) if isinstance(data, dict) and "template" in data else data

    @model_validator(mode="after")
    def _estimated(self) -> PropertySpec:
        if self.risk_of == "action" and self.estimator != "chain":
            raise ValueError(
                f"estimator {self.estimator}: the risk of an action is the decision process's; "
                "risk_of: state, or estimator: chain"
            )
        if self.scores and self.estimator != "ensemble":
            raise ValueError(f"estimator {self.estimator} adds no scores; estimator: ensemble does")
        if len(set(self.scores)) < len(self.scores):
            raise ValueError("scores: each signal once")
        return self

    @model_validator(mode="after")
    def _speed_limit(self) -> PropertySpec:
        _check_limit(self.intervention, self.speed_limit)
        times = [step.after for step in self.escalation]
        if times != sorted(set(times)) or any(time <= 0 for time in times):
            raise ValueError(f"escalation after {times} s: the times must rise, from above 0")
        return self


class LearningSpec(Section):
    """How counts become a chain.

    Attributes
    ----------
    alpha : float or str
        Weight of each possible successor before anything was counted. ``sparse``: one in all;
        ``none``: maximum likelihood; 1: as published (ProbGuard eq. 1), which overrates what was
        never seen.
    candidates : str
        What may follow: states seen in recordings, or all ``admissible`` ones.
    recording_end : str
        ``drop``: the end of a recording ends observation. ``absorb``: it is a state of its own.
    online : bool
        The node goes on learning, until it has counted 200,000 different transitions.
    refresh : float
        Seconds after which it takes new counts into its risk tables.
    regrow : float or None
        Seconds (steps) after which the node grows the tree of its states again from what it has
        seen.
    remember : int
        Moments that are kept for that.
    calibration : str
        How ``learn --calibrate BAG...`` maps risks to the frequencies that held-out recordings
        show: ``isotonic`` (linear between pools), ``platt`` (a logistic curve), ``none``.
    group_by : str or None
        Keys such as ``robot,day``: recordings with the same values belong together, and are left
        out and drawn together.
    group_source : str or None
        Where these values come from: a table in CSV with a column ``recording``, or a pattern of
        paths such as ``bags/{robot}/*``. Where not given: the metadata of recordings.
    """

    alpha: Annotated[Finite, Field(ge=0)] | Literal["sparse", "none"] = "sparse"
    online: bool = False
    refresh: Positive = 10.0
    regrow: Positive | None = None
    remember: Annotated[int, Field(ge=100, le=10_000_000)] = 100_000
    candidates: Literal["observed", "admissible"] = "observed"
    recording_end: Literal["drop", "absorb"] = "drop"
    calibration: Literal["none", "isotonic", "platt"] = "none"
    group_by: Annotated[str, Field(min_length=1)] | None = None
    group_source: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _by_something(self) -> LearningSpec:
        if self.group_source is not None and self.group_by is None:
            raise ValueError(
                "group_source says where the values of `group_by` come from; name its keys"
            )
        return self


class BoundsSpec(Section):
    """What the bounds of a risk are.

    Attributes
    ----------
    kind : str
        What the bounds claim. ``clustered`` takes the place of ``credible`` where a risk is not the
        chain's.
    confidence : float
        Posterior probability, or confidence level.
    samples : int
        Chains that are drawn for credible bounds. For clustered bounds, a quarter as many sets of
        recordings are drawn.
    """

    kind: Literal["none", "credible", "sound", "clustered"] = "credible"
    confidence: Annotated[Finite, Field(gt=0, lt=1)] = 0.95
    samples: Annotated[int, BeforeValidator(_no_bool), Field(ge=20, le=100_000)] = 200
