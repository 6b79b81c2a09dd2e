"""Nsight Compute on single launches, for the «why» of a figure: `python -m harness.ncu`."""
