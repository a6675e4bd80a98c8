from typing import Any

FORMAT: int

class Program:
    def __init__(self, words: bytes, kinds: bytes) -> None: ...
    def __call__(self, data: Any) -> list[Any]: ...
