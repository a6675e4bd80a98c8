"""Estimates of risk that share strength: what follows states, judged by recording.

Each base gives a probability for every state of the product of chain and automaton from what some
of the recordings gave (`Sample`). So all are made without a recording where that one judges them.
"""
