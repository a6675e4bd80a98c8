from setuptools import Extension, setup

# Decodes messages some hundred times faster than Python.
setup(
    ext_modules=[
        Extension(
            "forewarn.messages._cdr",
            ["src/forewarn/messages/_cdr.c"],
            extra_compile_args=["-std=c11", "-O2"],
        )
    ]
)
