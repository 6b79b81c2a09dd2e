"""`harness.nightly`: nights made of recorded samples, each with its code and words, and what the history page makes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.children import Ended
from harness.nightly.diary import Diary
from harness.store import verify
from reports.__main__ import main as reports
from tests.hostile import TEXTS
from tests.page_data import unpacked
from tests.played_nights import NO_DRIVER, Host, Nights, Seen
from tests.ten_nights import SLOWED, Played, half_done, prepared, slowed

ROOT = Path(__file__).resolve().parents[1]
SLOW, REPAIRED = "b" * 40, "c" * 40
NIGHTS = {
    "first": Played(number=1),
    "quiet": Played(number=2),
    "driver": Played(number=3),
    "regression": Played(number=4, factor=slowed, commit=SLOW),
    "still there": Played(number=5, factor=slowed, commit=SLOW),
    "repaired": Played(number=6, commit=REPAIRED),
    "throttled": Played(number=7, commit=REPAIRED, clock=0.85),
    "cool again": Played(number=8, commit=REPAIRED),
    "crashed": Played(number=9, commit=REPAIRED),
    "no GPU": Played(number=10),
    "after the crash": Played(number=11, commit=REPAIRED),
    "another GPU": Played(number=12, commit=REPAIRED, gpu="NVIDIA H100"),
    "wrong": Played(number=13, commit=REPAIRED, wrong=SLOWED),
}
HOT = "sgemv_k32_f32, 1 more kernel; a limit held the clocks back during 98% of tonight's samples"
NO_GPU = (
    "no NVIDIA GPU found (the NVML library (libnvidia-ml.so.1) does not load: no NVIDIA driver, or not in this "
    "container); wanted one that torch can use, and --device cpu asks for CPU numbers"
)
ALL = "17 same of 17 cases, threshold 1 %"
TOLD: dict[str, tuple[int, list[str]]] = {
    "first": (0, ["against: no earlier run on NVIDIA H200 to compare with", "exit code: 0: nothing to compare with"]),
    "quiet": (0, [ALL, "exit code: 0: no case is known to be slower"]),
    "driver": (0, [ALL, "environment: driver only", "driver: driver_version  580.159.04  590.44.01"]),
    "regression": (1, [
        "4 slower, 13 same of 17 cases, threshold 1 %",
        f"exit code: 1: 4 cases are slower than the night before: {SLOWED} (and 1 more, above)",
        f"against: 4 cases are slower than baseline: {SLOWED}",
    ]),
    "still there": (1, [ALL, f"exit code: 1: 4 cases are slower than baseline: {SLOWED}"]),
    "repaired": (0, ["4 faster, 13 same of 17 cases, threshold 1 %", ALL, "environment: source only"]),
    "throttled": (1, [
        "16 slower, 1 same of 17 cases, threshold 1 %",
        "clocks: a limit held the clocks back during 98% of tonight's samples",
        f"exit code: 1: 16 cases are slower than the night before: torch.matmul, {SLOWED}, {HOT} (and 1 more, above)",
    ]),
    "cool again": (0, [
        f"not against: {NIGHTS['throttled'].run_id}: a limit held the clocks back during 98% of its samples",
        f"against: the night before: {NIGHTS['repaired'].run_id}; same environment",
        ALL,
    ]),
    "crashed": (6, [
        "exit code: 6: the bench did not end well (killed by SIGKILL): its own lines say more",
        (
            f"ref: ref 'nightly' stays at {NIGHTS['cool again'].run_id}: run {NIGHTS['crashed'].run_id} was cut short; "
            "measure it again"
        ),
        f"run: {NIGHTS['crashed'].run_id}, 8 cases on NVIDIA H200, cut short: the others are missing",
        "9 gone, 8 same of 17 cases, threshold 1 %",
    ]),
    "no GPU": (6, [f"GPU: {NO_GPU}", f"exit code: 6: {NO_GPU}"]),
    "after the crash": (0, [
        f"not against: {NIGHTS['crashed'].run_id}: it was cut short",
        f"against: the night before: {NIGHTS['cool again'].run_id}; same environment",
        ALL,
    ]),
    "another GPU": (0, [
        "against: no earlier run on NVIDIA H100 to compare with",
        f"baseline: {NIGHTS['quiet'].run_id} is left out: other GPU model: NVIDIA H100 against NVIDIA H200",
        "exit code: 0: nothing to compare with",
    ]),
    "wrong": (5, [
        "bench: the bench found a kernel wrong or crashed (exit code 5): its own lines say more",
        f"against: 4 cases are wrong or crashed: {SLOWED}",
        f"against: the night before: {NIGHTS['after the crash'].run_id}; same environment",
    ]),
}  # fmt: skip
"""The code of each night, and lines of it."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Nights, dict[str, Seen]]:
    """All of them, one after the other; the second is made the baseline."""
    nights = Nights(tmp_path_factory.mktemp("nights"), pages=True)
    seen: dict[str, Seen] = {}
    for name, night in NIGHTS.items():
        if name == "no GPU":
            seen[name] = nights(host=Host(root=nights.root, nvml=NO_DRIVER))
        else:
            seen[name] = nights(night, crashes=name == "crashed", leaves_with=5 if night.wrong else 0)
        if name == "quiet":
            nights.store.set_ref("baseline", night.run_id)
    return nights, seen


@pytest.mark.parametrize("name", NIGHTS)
def test_every_night_has_its_code_and_words(name: str, played: tuple[Nights, dict[str, Seen]]) -> None:
    """On the terminal and in the summary, whose first line has the code and whose lines end with why."""
    seen, (code, told) = played[1][name], TOLD[name]
    assert seen.code == code
    assert [line for line in told if line not in seen.lines] == []
    assert seen.lines[-1].startswith(f"exit code: {code}: ")
    assert seen.summary.startswith(f"## SGEMV nightly, exit code {code}: ")
    assert f"\n{seen.out.splitlines()[-1]}\n```\n" in seen.summary


def test_another_gpu_is_no_base_and_not_worth_a_word(played: tuple[Nights, dict[str, Seen]]) -> None:
    """Only what could have been one is named."""
    named = {name: sum("not against" in line for line in seen.lines) for name, seen in played[1].items()}
    assert {name: count for name, count in named.items() if count} == {"cool again": 1, "after the crash": 1}


def test_the_summary_shows_the_changes(played: tuple[Nights, dict[str, Seen]]) -> None:
    """As a table for each run that it was held against, the slowed kernel on top; nothing of it without a run."""
    summary = played[1]["regression"].summary
    assert len(re.findall(r"^### SGEMV on NVIDIA H200: ", summary, re.MULTILINE)) == 2
    assert len(re.findall(rf"^\| ▲ slower \| {SLOWED} \| ", summary, re.MULTILINE)) == 8
    assert "###" not in played[1]["no GPU"].summary


def test_what_was_measured_is_kept(played: tuple[Nights, dict[str, Seen]]) -> None:
    """Every run is whole; the refs mean the newest night that ended and the baseline; no page is missing."""
    nights, seen = played
    ids = [night.run_id for name, night in NIGHTS.items() if name != "no GPU"]
    assert nights.store.ids() == ids
    for run_id in ids:
        verify(nights.store.root / run_id)
    assert nights.store.refs() == {NIGHTS["wrong"].run_id: ["nightly"], NIGHTS["quiet"].run_id: ["baseline"]}
    pages = {line.partition(": ")[2] for each in seen.values() for line in each.lines if line.startswith("page: ")}
    assert all(Path(page).is_file() for page in pages)
    assert len(pages) == 12 + 10 + 8  # the runs'; those that had one before; those that had another baseline, too


def test_the_history_page_shows_all(played: tuple[Nights, dict[str, Seen]], tmp_path: Path) -> None:
    """A section a GPU, its nights in order, marks where driver and code changed, the kernel that is wrong on top."""
    target = tmp_path / "history.html"
    assert reports(["history", "--store", str(played[0].store.root), "--output", str(target)]) == 0
    page = target.read_text(encoding="utf-8")
    assert "fail in the newest run" in page
    packed = re.findall(r'<script type="text/plain" class="data">([^<]+)</script>', page)
    (h200, planes), (h100, _) = map(unpacked, packed)
    at = [name for name in NIGHTS if name not in ("no GPU", "another GPU")]
    assert [run[0] for run in h200["runs"]] == [NIGHTS[name].run_id for name in at]
    assert [run[0] for run in h100["runs"]] == [NIGHTS["another GPU"].run_id]
    changed = [(at[run], kind) for run, kind, *_ in h200["marks"]]
    assert changed == [("driver", "driver"), ("regression", "commit"), ("repaired", "commit")]
    assert h200["marks"][0][3] == "driver: 580.159.04 → 590.44.01"
    held_back = {name: int((planes[3][:, run] == 100).sum()) for run, name in enumerate(at)}  # in %; others are words
    absent = {name: int((planes[3][:, run] == 255).sum()) for run, name in enumerate(at)}
    assert {name: count for name, count in held_back.items() if count} == {"throttled": 16}
    assert {name: count for name, count in absent.items() if count} == {"crashed": 9}


def test_the_run_is_kept_whatever_comes_after(tmp_path: Path) -> None:
    """It is published before anything is compared or drawn: pages that cannot be made are 6, and the run is there."""
    nights = Nights(tmp_path)
    host = Host(root=tmp_path, pages=Ended(code=6, stderr="the page needs altair: pip install altair\n"))
    seen = nights(Played(number=1), host=host)
    assert (seen.code, seen.lines[-1]) == (6, "exit code: 6: the page needs altair: pip install altair")
    assert nights.store.ids() == [Played(number=1).run_id]


def test_what_does_not_build_is_not_measured(tmp_path: Path) -> None:
    """The compiler's line, code 6."""
    said = "error: sgemv_k1.cu does not build: error: expected a ;"
    seen = Nights(tmp_path)(host=Host(root=tmp_path, build=Ended(code=6, stderr=f"{said}\n")))
    assert (seen.code, seen.lines[-1]) == (6, "exit code: 6: sgemv_k1.cu does not build: error: expected a ;")
    assert not any(line.startswith("bench") for line in seen.lines)


@pytest.mark.parametrize(("leaves_with", "code"), [(4, 2), (2, 2), (3, 6), (130, 130)])
def test_how_a_bench_ends_is_the_nights_code(leaves_with: int, code: int, tmp_path: Path) -> None:
    """Pytest's own 4 is wrong usage; after Ctrl-C nothing more is made; its 3 is a defect."""
    seen = Nights(tmp_path)(Played(number=1), leaves_with=leaves_with)
    assert seen.code == code
    assert any(line.startswith("page: ") for line in seen.lines) == (code != 130)


def test_ctrl_c_ends_the_bench_and_the_night(tmp_path: Path) -> None:
    """It is told, the night waits for it, and the summary says so, too."""
    seen = Nights(tmp_path).play(
        Host(root=tmp_path), ["sh", "-c", "trap 'exit 130' INT; kill -INT $PPID; sleep 60 & wait"]
    )
    assert (seen.code, seen.lines[-1]) == (
        130,
        "exit code: 130: interrupted; what was measured is kept, see nox -s runs",
    )
    assert seen.summary.startswith("## SGEMV nightly, exit code 130: interrupted")


def test_a_bench_that_measures_nothing_is_wrong_usage(tmp_path: Path) -> None:
    """Such as one whose -k leaves no case."""
    seen = Nights(tmp_path).play(Host(root=tmp_path), ["true"])
    assert (seen.code, seen.lines[-1]) == (2, "exit code: 2: no case was measured")


def test_what_is_no_base(tmp_path: Path) -> None:
    """What says little of a night, or of another clock; the run of a machine that was lost is published first."""
    nights, root = Nights(tmp_path), tmp_path / "store"
    others = {
        "few": Played(number=4, shapes=("1024x1024",)),
        "quick": Played(number=5, options={"quick": True}),
        "locked": Played(number=6, options={"lock_clocks_mhz": 1500}),
    }
    for number in (1, 2):
        nights(Played(number=number))
    (root / Played(number=2).run_id / "samples.parquet").write_bytes(b"")
    half_done(root, lost := Played(number=3))
    for night in others.values():
        prepared(root, night)
    seen = nights(Played(number=7))
    assert seen.code == 0
    published = f"store: published what a bench had measured before it was killed: {root / lost.run_id}"
    assert seen.lines[0] == f"{published}; no ref means it"
    passed_over = [line.removeprefix("not against: ").split(": ", 1) for line in seen.lines if "not against" in line]
    damaged = f"{root / Played(number=2).run_id / 'samples.parquet'}: changed since it was published (SHA-256 differs)"
    assert passed_over == [
        [others["locked"].run_id, "its clocks were locked at 1500 MHz, tonight's nowhere"],
        [others["quick"].run_id, "it is a quick look"],
        [others["few"].run_id, "it has only 29% of tonight's cases"],
        [lost.run_id, "it was cut short"],
        [Played(number=2).run_id, damaged],
    ]
    assert f"against: the night before: {Played(number=1).run_id}; driver only" in seen.lines


def test_the_same_board_is_preferred(tmp_path: Path) -> None:
    """Two machines share a store: each is held against its own night, a third one against the newest of both."""
    nights = Nights(tmp_path)
    boards = {number: f"GPU-{number % 2}" for number in (3, 4, 5)} | {6: "GPU-6"}
    seen = {number: nights(Played(number=number, board=board)) for number, board in boards.items()}
    for number, before in {4: 3, 5: 3, 6: 5}.items():
        assert f"against: the night before: {Played(number=before).run_id}; " in "\n".join(seen[number].lines)


def test_a_baseline_that_cannot_be_read_is_said_and_the_night_goes_on(tmp_path: Path) -> None:
    """Code 4, since nothing guards any more what the user set; it is higher than that of a slower kernel."""
    nights = Nights(tmp_path)
    nights.store.set_ref("baseline", "20200101T000000Z-gone-000000")
    gone = nights(Played(number=1))
    assert (gone.code, len(nights.store.ids())) == (4, 1)
    assert gone.lines[-1].startswith(
        "exit code: 4: ref 'baseline': names 20200101T000000Z-gone-000000, which is not in "
    )
    nights.store.set_ref("baseline", Played(number=1).run_id)
    (damaged := nights.store.root / Played(number=1).run_id / "run.json").write_text("{}")
    nights(Played(number=2))
    seen = nights(Played(number=3, factor=slowed))
    assert (seen.code, len(nights.store.ids())) == (4, 3)
    assert seen.lines[-1] == f"exit code: 4: {damaged}: changed since it was published (SHA-256 differs)"
    assert f"against: 4 cases are slower than the night before: {SLOWED}" in seen.lines


def test_every_gpu_of_a_host_has_its_own_night(tmp_path: Path) -> None:
    """Each is held against its own board; the ref means the last one."""
    nights = Nights(tmp_path)
    pairs = [[Played(number=n + k, board=f"GPU-{k}", commit="a" * 40) for k in (0, 1)] for n in (3, 5)]
    nights(*pairs[0], device="all")
    seen = nights(*pairs[1], device="all")
    assert seen.code == 0
    bases = [line for line in seen.lines if line.startswith("against: the night before")]
    assert bases == [f"against: the night before: {night.run_id}; same environment" for night in pairs[0]]
    assert nights.store.refs() == {pairs[1][1].run_id: ["nightly"]}


def test_the_ref_of_a_host_means_the_last_run_that_is_whole(tmp_path: Path) -> None:
    """Of several GPUs one, whose bench was ended, has a run that was cut short: a line names it."""
    nights = Nights(tmp_path)
    whole, cut = (Played(number=3 + k, board=f"GPU-{k}") for k in (0, 1))
    seen = nights(whole, replace(cut, partial=True), device="all", leaves_with=6)
    assert f"ref: ref 'nightly' stays at {whole.run_id}: run {cut.run_id} was cut short; measure it again" in seen.lines
    assert nights.store.refs() == {whole.run_id: ["nightly"]}


def test_a_night_that_was_cut_short_says_that_it_takes_no_ref(tmp_path: Path) -> None:
    """In the summary too, which the bench does not write."""
    nights = Nights(tmp_path)
    whole, cut = Played(number=3), Played(number=4, partial=True)
    nights(whole)
    seen = nights(cut, leaves_with=6)
    line = f"ref: ref 'nightly' stays at {whole.run_id}: run {cut.run_id} was cut short; measure it again"
    assert line in seen.lines
    assert nights.store.refs() == {whole.run_id: ["nightly"]}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_name_breaks_out_of_the_summary(text: str) -> None:
    """What a record says stands within a block of code, a line each."""
    diary = Diary()
    diary.say("run", f"{text}\n```\n# {text}")
    diary.end(text)
    lines = diary.markdown([]).splitlines()
    assert (lines[2], lines[-1], len(lines)) == ("```text", "```", 6)
    assert all(line.isprintable() for line in lines)


def test_pages_are_of_whole_runs_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m reports nightly` on a damaged one is code 4, and writes nothing."""
    made = prepared(tmp_path, replace(Played(number=1), shapes=("1024x1024",)))
    (made / "run.json").write_text("{}")
    assert reports(["nightly", str(made), "--pages", str(tmp_path / "pages"), "--store", str(tmp_path)]) == 4
    assert "run.json: changed since it was published" in capsys.readouterr().err
    assert not (tmp_path / "pages").exists()
