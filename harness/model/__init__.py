"""The records that everything else speaks in: frozen, keyword-only, with units in their names.

A record is plain data. `to_dict` gives JSON-ready values, `from_dict` checks types and says which field is wrong.
Unknown is None, and the record that owns the field says why in `unknown`.
"""

from harness.model.case import Cache, Case, Choice, Kernel, Launch, Layout, Operands, Problem, Role, supports_everything
from harness.model.record import SCHEMA_VERSION, Record, RecordError
from harness.model.result import (
    Check,
    DeviceKernel,
    DeviceState,
    Digest,
    Energy,
    Measurement,
    TrialResult,
    Verdict,
    Word,
)
from harness.model.run import BuildRecord, Environment, KernelResources, Options, Run

__all__ = [
    "SCHEMA_VERSION",
    "BuildRecord",
    "Cache",
    "Case",
    "Check",
    "Choice",
    "DeviceKernel",
    "DeviceState",
    "Digest",
    "Energy",
    "Environment",
    "Kernel",
    "KernelResources",
    "Launch",
    "Layout",
    "Measurement",
    "Operands",
    "Options",
    "Problem",
    "Record",
    "RecordError",
    "Role",
    "Run",
    "TrialResult",
    "Verdict",
    "Word",
    "supports_everything",
]
