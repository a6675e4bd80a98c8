from typing import Any

class Ensemble:
    def __init__(
        self,
        signals: int,
        base: float,
        lags: bytes,
        roots: bytes,
        features: bytes,
        thresholds: bytes,
        left: bytes,
        right: bytes,
        missing_left: bytes,
        values: bytes,
        needed: bytes,
        line: bytes,
        /,
    ) -> None: ...
    def row(self, values: list[Any], /) -> tuple[float | None, ...] | int: ...
    def features(self, window: tuple[tuple[float | None, ...], ...], /) -> list[float]: ...
    def score(self, window: tuple[tuple[float | None, ...], ...], /) -> float | None: ...
    def shares(self, window: tuple[tuple[float | None, ...], ...], /) -> list[float] | None: ...
    def judge(self, features: Any, /) -> float | None: ...
    def explain(self, features: Any, /) -> list[float] | None: ...
