"""Builds the optional compiled kernel; without a C compiler the limiter works the same, more slowly.

The extension names its Cython source, so a source distribution contains it, and setuptools translates it only when it
compiles. The generated C file belongs to no distribution. Symbols for debuggers, five times the program, are left out.
So are tables for C++ exceptions and the padding between segments: a tenth.
A free-threaded Python gets no kernel: it relies on the interpreter lock.
"""

import sys
import sysconfig

from setuptools import Extension, setup

ON_LINUX = sys.platform == "linux"  # the compilers of other systems do not know these words
KERNEL = Extension(
    "frontrow.limits.stores._kernel",
    ["src/frontrow/limits/stores/_kernel.pyx"],
    extra_compile_args=["-g0", "-fno-asynchronous-unwind-tables"] if ON_LINUX else [],
    extra_link_args=["-Wl,-s", "-Wl,-z,noseparate-code"] if ON_LINUX else [],
    optional=True,
)

setup(ext_modules=[] if sysconfig.get_config_var("Py_GIL_DISABLED") else [KERNEL])
