"""Charts are found by looking, show what the tables show, and look the same by kernel everywhere."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from harness.model import TrialResult, Verdict, Word
from reports.chart_data import ChartData
from reports.charts import charts
from reports.charts.clocks import stretches
from reports.charts.trials import quantiles_ns
from reports.device import Point
from reports.figures import figures
from reports.marks import kernel_marks
from tests.sample_roofline import roofline_run
from tests.sample_run import HOSTILE, cpu_run, empty_run, gpu_run, one_trial_run


def test_every_chart_has_its_numbers() -> None:
    """A chart with panels has tables with rows; every chart has panels in one of two runs."""
    plain, batch = figures(gpu_run()), figures(roofline_run(weights=((4096, 4096),), tokens=(1, 8, 512)))
    of_plain, of_batch = ({chart.section for chart in charts() if chart.spec(f)} for f in (plain, batch))
    assert of_plain == {"speed", "limit", "trials", "launches", "device"}
    assert of_batch >= {"roofline", "latency", "energy", "speed"}
    for chart in charts():
        f = plain if chart.spec(plain) else batch
        assert chart.spec(f)
        assert any(t.rows for t in chart.table(f))


def test_dtypes_have_panels_of_their_own() -> None:
    """Of several dtypes the first is shown at once; products with several tokens are in no panel of these."""
    speed = next(c for c in charts() if c.section == "speed")
    panels = speed.spec(figures(roofline_run(weights=((4096, 4096),), tokens=(1, 2))))
    assert [p.title for p in panels if not p.folded] == ["graph/cold, float32", "sync/cold, float32"]
    assert {p.title for p in panels if p.folded} >= {"graph/cold, float16", "graph/cold, bfloat16"}
    assert "4096×4096×2" not in json.dumps([p.spec for p in panels], ensure_ascii=False)


def test_roofline_points_and_roofs() -> None:
    """4096×4096 in float16 at T = 1: 33.55 MFLOP over 33.57 MB; the roof bends at the ridge."""
    chart = next(c for c in charts() if c.section == "roofline")
    panel = chart.spec(figures(roofline_run(weights=((4096, 4096),), tokens=(1, 512), dtypes=("float16",))))[0]
    lines, marks = panel.spec["layer"]
    point = next(e for e in marks["data"]["values"] if e["case"].startswith("hgemv-4096x4096"))
    assert point["ai"] == pytest.approx(0.9995, abs=1e-4)
    assert point["rate"] == pytest.approx(33.554e6 / 9.825e-6 / 1e12, rel=0.01)
    roof = [e for e in lines["data"]["values"] if e["dtype"] == "float16"]
    assert [e["rate"] for e in roof] == sorted(e["rate"] for e in roof)
    assert roof[1]["ai"] == pytest.approx(650e12 / 4.394e12, rel=0.01)
    assert roof[1]["rate"] == roof[2]["rate"]
    colours = marks["encoding"]["color"]
    named = json.loads(colours["legend"]["labelExpr"].removeprefix("(").removesuffix(")[datum.label]"))
    assert named["float16"] == "float16: 649\u00a0TFLOP/s"
    assert set(named) == set(colours["scale"]["domain"]) == {e["dtype"] for e in lines["data"]["values"]}


def test_only_a_trials_own_time_is_called_a_median() -> None:
    """In captions, heads, descriptions and titles: a case's figure is the geometric mean of its trials' medians."""
    for run in (gpu_run(), roofline_run(weights=((4096, 4096),), tokens=(1, 8), dtypes=("float16",))):
        f = figures(run)
        for chart in (c for c in charts() if c.section != "device"):
            tables, panels = chart.table(f), chart.spec(f)
            said = [chart.title, *(t.caption for t in tables), *(c.title for t in tables for c in t.columns)]
            said += [text for panel in panels for text in (panel.title, panel.description, *titles(panel.spec))]
            medians = [text for text in said if "median" in text.lower()]
            assert all("trial" in text or text == "median, µs" for text in medians), (chart.title, medians)
            assert not medians or chart.section == "trials"


def titles(part: Any) -> list[str]:
    """Every axis title and tooltip name in a specification."""
    if isinstance(part, list):
        return [text for each in part for text in titles(each)]
    if not isinstance(part, dict):
        return []
    own = [str(part[key]) for key in ("title", "field") if isinstance(part.get(key), str)]
    return own + [text for key, each in part.items() if key != "data" for text in titles(each)]


def test_left_out_where_there_is_nothing() -> None:
    """No panel for an empty run; no trials of one trial; neither launches nor device of a CPU."""
    assert all(not chart.spec(figures(empty_run())) for chart in charts())
    assert {c.section for c in charts() if c.spec(figures(one_trial_run()))} == {"speed", "limit", "launches", "device"}
    assert {c.section for c in charts() if c.spec(figures(cpu_run()))} == {"speed", "limit", "trials"}


def test_headline_panel_first_and_wide() -> None:
    """The headline's way of timing leads, the others follow as small multiples."""
    speed = next(c for c in charts() if c.section == "speed")
    panels = speed.spec(figures(gpu_run()))
    assert [p.title for p in panels] == ["graph/cold", "graph/hot", "async/cold", "async/hot"]
    assert [p.wide for p in panels] == [True, False, False, False]
    assert "torch.matmul" not in panels[0].kernels


def test_a_kernel_has_one_look() -> None:
    """Colour and shape belong to the kernel's place in the run, and no two kernels share both."""
    names = {f"kernel_{i}": "" for i in range(40)}
    marks = kernel_marks(figures(gpu_run(shapes=((64, 64),), kernels=names, trials=1, samples=2)))
    assert len({(mark.colour, mark.shape) for mark in marks.values()}) == 40


def test_specifications_hold_no_samples() -> None:
    """Quantiles and medians only: 30 samples or 300 a trial, the charts are about as big."""
    few = sum(len(json.dumps(p.spec)) for c in charts() for p in c.spec(figures(gpu_run(samples=30))))
    many = sum(len(json.dumps(p.spec)) for c in charts() for p in c.spec(figures(gpu_run(samples=300))))
    assert abs(many - few) < few / 50


def test_rows_are_kept_once_by_column() -> None:
    """What two pictures draw is there once; few rows stay in the picture; a value that a row lacks is None."""
    rows = [{"kernel": name, "value": 1.5} for name in "aabbb"] + [{"kernel": "a", "low": 2}]
    data = ChartData()
    specs = [
        data.without_rows({"layer": [{"data": {"values": rows[:]}}], "data": {"values": [{"at": 1}]}}) for _ in "12"
    ]
    assert specs[0] == specs[1] == {"layer": [{"data": {"name": "rows-1"}}], "data": {"values": [{"at": 1}]}}
    assert data.by_name == {
        "rows-1": {
            "kernel": {"of": ["a", "b"], "at": [0, 0, 1, 1, 1, 0]},
            "value": [1.5] * 5 + [None],
            "low": [None] * 5 + [2],
        }
    }


def test_limit_and_floor_are_in_charts_of_speed_and_time() -> None:
    """Read beside every problem, the empty kernel where the baseline is short; read once a dtype against T."""
    f = figures(gpu_run(shapes=((1024, 16), (4096, 4096))))
    speed = next(c for c in charts() if c.section == "speed")
    text = json.dumps(speed.spec(f)[0].spec, ensure_ascii=False)
    marks = {(row["problem"], row["kernel"]) for row in json.loads(text)["layer"][-1]["data"]["values"]}
    assert marks >= {("1024×16", "read"), ("4096×4096", "read"), ("1024×16", "empty")}
    assert ("4096×4096", "empty") not in marks
    trials = next(c for c in charts() if c.section == "trials")
    assert {"read", "empty"} <= set(trials.spec(f)[1].kernels)
    latency = next(c for c in charts() if c.section == "latency")
    batch = figures(roofline_run(weights=((4096, 4096),), tokens=(1, 8), dtypes=("float16", "int8")))
    said = json.dumps(latency.spec(batch)[0].spec, ensure_ascii=False)
    assert "read, one token, float16" in said
    assert "empty kernel: floor of the timer" in said


def test_throttled_stretches() -> None:
    """Neighbours share a stretch; a point alone has one of its own."""
    held = [False, True, True, False, True, False]
    points = [Point(seconds=i, low=1, middle=1, high=1, held_back=each) for i, each in enumerate(held)]
    found = stretches(points)
    assert [(round(start), round(end)) for start, end in found] == [(1, 2), (4, 4)]
    assert all(start < end for start, end in found)


def test_quantiles_by_hand() -> None:
    """0 to 100: every quantile is its own percentage; one sample is all of them."""
    whole = TrialResult(trial=0, verdict=Verdict(word=Word.PASSED), samples_ns=tuple(float(i) for i in range(101)))
    assert quantiles_ns(whole) == pytest.approx((0, 5, 25, 50, 75, 95, 100))
    assert quantiles_ns(replace(whole, samples_ns=(3.0,))) == (3.0,) * 7


def test_hostile_name_is_readable_in_charts() -> None:
    """Characters without a glyph are codes in the charts too."""
    text = json.dumps([p.spec for c in charts() for p in c.spec(figures(gpu_run(hostile=True)))], ensure_ascii=False)
    assert "\u202e" in HOSTILE
    assert "\u202e" not in text
    assert "⟨202E⟩" in text
