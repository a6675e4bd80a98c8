"""SUMO's random numbers, begun anew in the midst of a run.

SUMO offers no way to change the seed of a running simulation, so this calls its own function by
the name that the wheel of libsumo exports. Drivers draw from generators that belong to the lanes,
everything else from a global one.
"""

from __future__ import annotations

import ctypes

INIT = "_ZN10RandHelper8initRandEP7SumoRNGbi"
COMMON = "_ZN10RandHelper23myRandomNumberGeneratorE"
LANES = "_ZN6MSLane6myRNGsE"
LANE_GENERATORS = 64  # option --thread-rngs


class Generators:
    """The generators of the SUMO that runs in this process.

    Raises
    ------
    AttributeError
        If this libsumo does not export what is needed.
    """

    def __init__(self) -> None:
        from libsumo import _libsumo

        library = ctypes.CDLL(_libsumo.__file__)
        self._init = library[INIT]
        self._init.argtypes = [ctypes.c_void_p, ctypes.c_bool, ctypes.c_int]
        self._init.restype = None
        self._common = ctypes.addressof(ctypes.c_char.in_dll(library, COMMON))
        # A std::vector: where it begins and where it ends.
        self._lanes = (ctypes.c_size_t * 2).in_dll(library, LANES)

    def seed(self, seed: int) -> None:
        """Begin all of them anew."""
        begin, end = self._lanes
        size, rest = divmod(end - begin, LANE_GENERATORS)
        if rest or not size:
            raise RuntimeError(f"SUMO has not {LANE_GENERATORS} generators for its lanes")
        self._init(self._common, False, seed)
        for index in range(LANE_GENERATORS):
            self._init(begin + index * size, False, seed + 1 + index)
