from typing import Any

def times_to_conflict(
    path: Any, vehicle: tuple[float, float, float, float], boxes: Any, horizon: float, /
) -> bytes: ...
