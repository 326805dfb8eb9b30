"""Planted bugs: small wrong variants of the code, each with the law that it breaks and the tests that must catch it.

`corpus` holds them, one file per area. `python -m tests.mutants` plants one at a time into a copy of the tree and runs
its tests there. A normal test asserts that each still fits the code (`test_corpus.py`).
"""
