"""L2E: distil an explainer into a small network that explains as it does, and costs little.

`distil.distil` does all of it: a teacher's scores of the training split are computed once and kept
(`training/explained_split.py`), `lessons` turns them into what a student learns, `losses` are the
paper's and those of its released code, and `fit` trains one network per initialisation. The student
itself is in `explainers/students`, and the explainer that asks it is `l2e`. All of this imports
torch, and is imported where it is used.
"""
