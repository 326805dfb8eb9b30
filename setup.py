"""Builds the optional compiled kernel of the limiter; without a C compiler Frontrow works the same, more slowly.

The extension names its Cython source, so a source distribution contains it, and setuptools translates it only when it
compiles. The generated C file belongs to no distribution.
"""

from setuptools import Extension, setup

KERNEL = Extension("frontrow.limits.stores._kernel", ["src/frontrow/limits/stores/_kernel.pyx"], optional=True)

setup(ext_modules=[KERNEL])
