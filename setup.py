"""Builds the optional compiled kernel of the limiter; without a C compiler Frontrow works the same, more slowly."""

from setuptools import Extension, setup

try:
    from Cython.Build import cythonize

    modules = cythonize(
        [
            Extension(
                "frontrow.limits.stores._kernel",
                ["src/frontrow/limits/stores/_kernel.pyx"],
                extra_compile_args=["-O2"],
            )
        ],
        quiet=True,
    )
    for module in modules:
        module.optional = True  # cythonize makes new extensions and drops the flag: set it on what it returned
except ImportError:
    modules = []

setup(ext_modules=modules)
