"""Builds the optional compiled kernel; without a C compiler the limiter works the same, more slowly.

The extension names its Cython source, so a source distribution contains it, and setuptools translates it only when it
compiles. The generated C file belongs to no distribution. Symbols for debuggers, five times the program, are left out.
"""

from setuptools import Extension, setup

KERNEL = Extension(
    "frontrow.limits.stores._kernel",
    ["src/frontrow/limits/stores/_kernel.pyx"],
    extra_compile_args=["-g0"],
    extra_link_args=["-Wl,-s"],
    optional=True,
)

setup(ext_modules=[KERNEL])
