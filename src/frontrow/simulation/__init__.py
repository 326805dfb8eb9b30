"""The whole platform played in one process and in virtual time, one seeded history at a time, with faults and laws.

`frontrow rehearse --chaos` plays it for anybody, with their own room and sale. `docs/simulation.md` says what is real.
"""
