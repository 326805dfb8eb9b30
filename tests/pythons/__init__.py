"""README's two commands on Pythons and machines other than this one: `make test-pythons` (D1, O1).

`debian_roots` makes minimal Debians, `runs` says what runs where and what is told about it.
"""
