"""harness.model: records survive JSON, and what does not fit names its field."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import pytest

from harness.model import (
    SCHEMA_VERSION,
    Cache,
    Case,
    DeviceState,
    Environment,
    Kernel,
    Layout,
    Measurement,
    Options,
    Problem,
    RecordError,
    Role,
    Run,
    TrialResult,
    Verdict,
    Word,
)
from tests.sample_run import gpu_run

CASE = Case(kernel="mine", role=Role.GEMV, problem=Problem(m=3, k=5), timer="graph", cache=Cache.COLD)


def measurement(*words: Word) -> Measurement:
    """One trial a word; a passed one has the samples trial + 1, trial + 2."""
    trials = tuple(
        TrialResult(
            trial=i,
            verdict=Verdict(word=word, reason=None if word is Word.PASSED else f"reason {i}"),
            samples_ns=(i + 1.0, i + 2.0) if word is Word.PASSED else (),
        )
        for i, word in enumerate(words)
    )
    return Measurement(case=CASE, trials=trials)


def test_a_whole_run_survives_json() -> None:
    """Every field, with its type: enums, tuples, None, nested records."""
    run = gpu_run(trials=2, samples=3)
    again = Run.from_dict(json.loads(json.dumps(run.to_dict(), allow_nan=False)))
    assert again == run
    assert isinstance(again.measurements[0].case.cache, Cache)
    assert isinstance(again.measurements[0].trials, tuple)


def test_to_dict_is_plain() -> None:
    """Written out by hand: the names on disk are part of the schema."""
    assert CASE.to_dict() == {
        "kernel": "mine",
        "role": "gemv",
        "problem": {
            "m": 3,
            "k": 5,
            "n": 1,
            "dtype": "float32",
            "layout": {"order": "row", "row_stride": None, "first_element": 0},
            "seed": 0,
        },
        "timer": "graph",
        "cache": "cold",
    }


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("options", "trials"), "five", ["`int`", "got `str`", "$.options.trials"]),
        (("measurements", 1, "trials", 0, "samples_ns", 2), "x", ["$.measurements[1].trials[0].samples_ns[2]"]),
        (("measurements", 0, "case", "cache"), "warm", ["'warm'", "$.measurements[0].case.cache"]),
        (("environment", "values", "sm_count"), [132], ["$.environment.values"]),
        (("partial",), None, ["`bool`", "$.partial"]),
    ],
)
def test_a_wrong_value_is_named_by_its_path(path: tuple[str | int, ...], value: object, words: list[str]) -> None:
    """Which record, which field, what was found and wanted."""
    data = json.loads(json.dumps(gpu_run(trials=1, samples=3).to_dict()))
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(RecordError) as caught:
        Run.from_dict(data)
    assert str(caught.value).startswith("Run: ")
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_missing_field_is_named_by_its_path() -> None:
    """The inner record's field, not only the outer one's."""
    data = CASE.to_dict()
    del data["problem"]["k"]
    with pytest.raises(RecordError, match=r"^Case: .*missing required field `k`.*\$\.problem"):
        Case.from_dict(data)


def test_a_field_that_was_added_later_has_its_default() -> None:
    """Optional fields can be absent in older records of the same schema."""
    assert Problem.from_dict({"m": 2, "k": 3}) == Problem(m=2, k=3, n=1, dtype="float32", layout=Layout(), seed=0)
    assert DeviceState.from_dict({"time_unix_s": 1.5}).unknown == {}


def test_records_are_frozen_and_keyword_only() -> None:
    """What was measured is not edited by accident, and arguments cannot be swapped."""
    with pytest.raises(FrozenInstanceError):
        CASE.timer = "event"  # type: ignore[misc]
    with pytest.raises(TypeError):
        Problem(3, 5)  # type: ignore[misc]


def test_schema_version() -> None:
    """A change of the number must be meant: it makes every older reader refuse."""
    assert SCHEMA_VERSION == 1


@pytest.mark.parametrize(
    ("problem", "label", "case_id"),
    [
        (Problem(m=1024, k=128), "1024x128", "mine-1024x128-graph-cold"),
        (Problem(m=8, k=16, n=4), "8x16x4", "mine-8x16x4-graph-cold"),
        (Problem(m=8, k=16, dtype="float16"), "8x16", "mine-8x16-float16-graph-cold"),
        (Problem(m=8, k=16, n=4, dtype="tf32"), "8x16x4", "mine-8x16x4-tf32-graph-cold"),
        (Problem(m=8, k=16, layout=Layout(order="col")), "8x16", "mine-8x16-60568f-graph-cold"),
        (Problem(m=8, k=16, dtype="int8", seed=1), "8x16", "mine-8x16-int8-31abd0-graph-cold"),
    ],
)
def test_labels(problem: Problem, label: str, case_id: str) -> None:
    """Short for GEMV; an id says all four parts of a case: the dtype in words, a layout or a seed by a hash."""
    assert problem.label == label
    assert replace(CASE, problem=problem).id == case_id


@pytest.mark.parametrize(
    "other",
    [Problem(m=3, k=5, dtype="float16"), Problem(m=3, k=5, seed=1), Problem(m=3, k=5, layout=Layout(order="col"))],
)
def test_ids_differ_where_labels_do_not(other: Problem) -> None:
    """Dtype, seed and layout are not in the label, but samples are kept by id."""
    assert other.label == "3x5"
    assert replace(CASE, problem=other).id != CASE.id


def test_the_ways_of_a_kernel() -> None:
    """Its variants for the device, the dtype and within their contract; itself where none is."""

    def variant(name: str, **fields: object) -> Kernel:
        return Kernel(name=name, role=Role.LIMIT, summary="", bind=lambda _: lambda: None, **fields)  # type: ignore[arg-type]

    plain = variant("plain")
    half = variant("half", dtypes=("float16", "bfloat16"))
    on_cuda = variant("on_cuda", devices=("cuda",), dtypes=("float32", "float16"))
    even = variant("even", unsupported=lambda problem: "odd" if problem.k % 2 else None)
    read = variant("read", variants=(plain, half, on_cuda, even), dtypes=("float32", "float16", "int8"))

    def names(device_type: str, **problem: object) -> list[str]:
        return [way.name for way in read.ways(device_type, Problem(**{"m": 4, "k": 4, **problem}))]  # type: ignore[arg-type]

    assert names("cpu") == ["plain", "even"]
    assert names("cuda") == ["plain", "on_cuda", "even"]
    assert names("cuda", k=5) == ["plain", "on_cuda"]
    assert names("cuda", dtype="float16") == ["half", "on_cuda"]
    assert names("cpu", dtype="bfloat16", n=3) == ["half"]
    assert names("cpu", dtype="int8") == ["read"]
    assert [way.name for way in plain.ways("cpu", Problem(m=1, k=1))] == ["plain"]


@pytest.mark.parametrize(
    ("words", "worst"),
    [
        ((Word.PASSED, Word.PASSED), Word.PASSED),
        ((Word.PASSED, Word.NOT_MEASURED), Word.NOT_MEASURED),
        ((Word.UNSUPPORTED, Word.NOT_MEASURED), Word.UNSUPPORTED),
        ((Word.CRASHED, Word.UNSUPPORTED), Word.CRASHED),
        ((Word.PASSED, Word.WRONG, Word.CRASHED), Word.WRONG),
    ],
)
def test_the_worst_trial_speaks_for_a_measurement(words: tuple[Word, ...], worst: Word) -> None:
    """One wrong output is a wrong kernel, whatever the other trials say; its reason comes along."""
    verdict = measurement(*words).verdict
    assert verdict.word is worst
    assert verdict.reason == (None if worst is Word.PASSED else f"reason {words.index(worst)}")


def test_samples_exist_only_where_every_trial_passed() -> None:
    """In order of trial."""
    assert measurement(Word.PASSED, Word.PASSED).samples_ns == (1.0, 2.0, 2.0, 3.0)
    assert measurement(Word.PASSED, Word.CRASHED).samples_ns == ()


def test_an_environment_does_not_raise_on_what_it_lacks() -> None:
    """Unknown and absent read the same."""
    environment = Environment(values={"gpu_name": None, "ecc": False}, unknown={"gpu_name": "measured on the CPU"})
    assert (environment.get("gpu_name"), environment.get("ecc"), environment.get("nothing")) == (None, False, None)


def test_options_keep_the_command_as_a_tuple() -> None:
    """JSON has lists only."""
    data = {"trials": 5, "max_time_s": 0.15, "quick": False, "device": "cpu", "command": ["pytest", "suites"]}
    assert Options.from_dict(data).command == ("pytest", "suites")


def test_options_of_before_gpus_were_asked_for_by_uuid() -> None:
    """Older runs name none, and no clock was locked for them."""
    data = {"trials": 5, "max_time_s": 0.15, "quick": False, "device": "cuda:1", "command": ["pytest", "suites"]}
    older = Options.from_dict(data)
    assert (older.uuid, older.lock_clocks_mhz, older.device_type) == (None, None, "cuda")
