"""Every point of a device's cases as text for the page's script: quantised, compressed, base64.

Inflated it is: a little-endian uint32 n, n bytes of JSON, then four planes of a byte a (case, run), cases one after the
other: the low and the high byte of the centre's level, the half-width's level, and the state. `history.js` reads it.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.comparison.sides import FAILED
from harness.history.devices import ABSENT, WORDS, Device
from harness.history.digests import Floats
from harness.history.standing import Standing
from reports import format as fmt
from reports.history.changes import Mark, marks
from reports.history.rows import day, remarks

FINEST = 1e-4
"""One level of a centre, as a difference of logarithms, unless a case spans more than 65 534 of them."""

LEVELS = 65_534
"""Of a centre; level 0 stands for none."""

HALF_FINEST, HALF_STEP, HALF_LEVELS = 1e-5, 0.055, 255
"""A half-width of level v > 0 is HALF_FINEST · e^(HALF_STEP · (v − 1)); level 0 stands for none."""

WORD, NONE = 200, 255
"""State of a verdict without figures is WORD + its code, of no verdict NONE; below it is the held-back share in %."""


def packed(device: Device, shown: Sequence[Standing]) -> str:
    """The data of the cases of `shown`, in their order."""
    places = [each.place for each in shown]
    levels, cases = _centres(device.centres_ns[:, places].T)
    header = {
        "runs": [
            [fmt.line(past.run.id), fmt.moment(past.run.started_utc), day(device, place)]
            for place, past in enumerate(device.runs)
        ],
        "marks": [_plain(mark) for mark in marks(device)],
        "cases": [
            {**case, "best": each.best, "began": each.began, "reasons": dict(_reasons(device, each.place)),
             "remarks": remarks(each),
             "kernel": [[run, fmt.line(what)] for run, what in device.kernel_changes[each.case.kernel].items()]}
            for case, each in zip(cases, shown, strict=True)
        ],
        "quantum": {"half": [HALF_FINEST, HALF_STEP], "failed": _failed(), "none": NONE},
    }  # fmt: skip
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    planes = (levels & 255, levels >> 8, _halves(device.half_widths[:, places].T), _states(device, places))
    content = struct.pack("<I", len(text)) + text + b"".join(plane.astype(np.uint8).tobytes() for plane in planes)
    return base64.b64encode(zlib.compress(content, 9)).decode()


def _plain(mark: Mark) -> list[Any]:
    return [mark.run, mark.kind, mark.label, mark.text]


def _centres(centres_ns: Floats) -> tuple[npt.NDArray[np.int64], list[dict[str, float]]]:
    """Levels (cases, runs), and for each case the time of level 1 in µs and a level's height."""
    logs = np.log(centres_ns)
    known = ~np.isnan(logs)
    levels = np.zeros(logs.shape, np.int64)
    cases = []
    for row, here, own in zip(logs, known, levels, strict=True):
        low, high = (float(row[here].min()), float(row[here].max())) if here.any() else (0.0, 0.0)
        height = max(FINEST, (high - low) / (LEVELS - 1))
        own[here] = 1 + np.rint((row[here] - low) / height).astype(np.int64)
        cases.append({"lowest_us": float(np.exp(low)) / 1e3, "height": height})
    return levels, cases


def _halves(half_widths: Floats) -> npt.NDArray[np.int64]:
    known = ~np.isnan(half_widths)
    levels = np.zeros(half_widths.shape, np.int64)
    found = 1 + np.rint(np.log(np.maximum(half_widths[known], HALF_FINEST) / HALF_FINEST) / HALF_STEP)
    levels[known] = np.clip(found, 1, HALF_LEVELS).astype(np.int64)
    return levels


def _states(device: Device, places: Sequence[int]) -> npt.NDArray[np.int64]:
    figures = ~np.isnan(device.centres_ns[:, places])
    words = device.words[:, places].astype(np.int64)
    shares = np.ceil(device.held_back[:, places] * 100).astype(np.int64)
    return np.where(figures, shares, np.where(words == ABSENT, NONE, WORD + words)).T


def _failed() -> list[int]:
    """States that are a failure."""
    return [WORD + code for code, word in enumerate(WORDS) if word in FAILED]


def _reasons(device: Device, place: int) -> Iterator[tuple[int, str]]:
    """Why runs have no figures of the case, by run."""
    for run in np.flatnonzero(np.isnan(device.centres_ns[:, place]) & (device.words[:, place] != ABSENT)):
        verdict = device.verdict(int(run), place)
        if verdict is not None:
            yield int(run), fmt.line(f"{verdict.word}: {verdict.reason or 'no reason kept'}")
