import sys

from setuptools import Extension, setup
from setuptools.command.egg_info import egg_info

# From 3.11 on the stable ABI has buffers: one build serves that version and all later ones.
STABLE = sys.version_info >= (3, 11) and sys.implementation.name == "cpython"
ABI = {
    "define_macros": [("Py_LIMITED_API", "0x030b0000")] if STABLE else [],
    "py_limited_api": STABLE,
}


class EggInfo(egg_info):
    """Say which Pythons will do when metadata are written: what `setup` knows, colcon must read."""

    def finalize_options(self):
        self.distribution.metadata.python_requires = ">=3.10"
        super().finalize_options()


# A product and a sum made one operation would be rounded once, on some machines only.
EXACTLY = ["-std=c11", "-O2", "-ffp-contract=off"]

# Decodes messages, evaluates trees and looks ahead, some hundred times faster than Python.
setup(
    ext_modules=[
        Extension(
            "forewarn.messages._cdr",
            ["src/forewarn/messages/_cdr.c"],
            extra_compile_args=["-std=c11", "-O2"],
            **ABI,
        ),
        Extension(
            "forewarn.wings.scores._trees",
            ["src/forewarn/wings/scores/_trees.c"],
            extra_compile_args=EXACTLY,
            **ABI,
        ),
        Extension(
            "forewarn.expressions.functions._encounters",
            ["src/forewarn/expressions/functions/_encounters.c"],
            extra_compile_args=EXACTLY,
            **ABI,
        ),
    ],
    cmdclass={"egg_info": EggInfo},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
