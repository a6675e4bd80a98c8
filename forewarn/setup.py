from setuptools import Extension, setup

# Decodes messages, and evaluates trees, some hundred times faster than Python.
setup(
    ext_modules=[
        Extension(
            "forewarn.messages._cdr",
            ["src/forewarn/messages/_cdr.c"],
            extra_compile_args=["-std=c11", "-O2"],
        ),
        Extension(
            "forewarn.states.danger._trees",
            ["src/forewarn/states/danger/_trees.c"],
            # A product and a sum made one operation would be rounded once, on some machines only.
            extra_compile_args=["-std=c11", "-O2", "-ffp-contract=off"],
        ),
    ]
)
