"""harness.store.remote: a way that breaks off, is slow or forbidden costs one line, and nothing of what was kept."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from harness.__main__ import main
from harness.errors import CommandError, Exit
from harness.store import remote, verify
from harness.store.run_archive import pack, tar_of
from harness.store.url_store import UrlStore
from tests.s3_server import KEY, S3, SECRET, TOKEN, Proxy, forget_connections, published, s3, s3_server, way

__all__ = ["s3", "s3_server", "way"]

ROOT = Path(__file__).parents[1]
RUN_ID = "20260101T000000Z-a-1-aaaaaa"


@pytest.fixture
def store(s3: S3, way: Proxy, monkeypatch: pytest.MonkeyPatch) -> UrlStore:
    """With a run that is not sent yet, and little patience."""
    del way
    monkeypatch.setattr(remote, "READ_S", 0.5)
    monkeypatch.setattr(remote, "CONNECT_S", 0.5)
    found = UrlStore(s3.url)
    found.check_writable()
    published(found, RUN_ID)
    return found


def is_kept(store: UrlStore, error: CommandError, why: str) -> None:
    """The line says why and where the run is, and there it is whole; code 6."""
    line, folder = str(error), store.root / RUN_ID
    assert line.startswith(f"store {store.name}: {RUN_ID}.tar.gz cannot be written: {why} (")
    assert line.endswith(f"; this one is kept in {folder}, and the next command with this store sends it")
    assert "\n" not in line
    assert error.code is Exit.INFRASTRUCTURE
    verify(folder)
    assert store.unsent() == [RUN_ID]


def the_next_command_sends(store: UrlStore, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever command it is; the run came through whole."""
    assert main(["runs", "--store", store.name]) == Exit.FINE
    said = capsys.readouterr()
    assert said.err == f"sent {store.name}/{RUN_ID}.tar.gz\n"
    assert RUN_ID in said.out
    store.verify(RUN_ID)


def test_a_connection_that_drops_half_way(
    store: UrlStore, s3: S3, way: Proxy, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing of the run is at the URL, all of it is here; reading breaks off in one line, too, and keeps nothing."""
    way.breaks_after = 4096
    with pytest.raises(CommandError) as caught:
        store.send()
    is_kept(store, caught.value, "no connection")
    assert list(s3.objects()) == ["deep/runs/.store"]
    way.breaks_after = None
    the_next_command_sends(store, capsys)
    store._forget(RUN_ID)
    way.breaks_after = 2048
    with pytest.raises(CommandError, match=rf"^store {s3.url}: {RUN_ID}.tar.gz cannot be read: ") as caught:
        store.folder(RUN_ID)
    assert caught.value.code is Exit.INFRASTRUCTURE
    assert not (store.root / RUN_ID).exists()
    assert not list(store.root.glob(".fetch-*"))


def test_a_slow_way_is_waited_for(store: UrlStore, way: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run may take longer to send than a server may be silent: it is sent once, and not again and again."""
    monkeypatch.setattr(remote, "SLOWEST_BYTES_S", 1_000)
    way.rate = len(pack(tar_of(store.root / RUN_ID))) / 2  # bytes a second
    before, started = way.accepted, time.monotonic()
    assert store.send() == [f"sent {store.name}/{RUN_ID}.tar.gz"]
    assert time.monotonic() - started > 1.5 > remote.READ_S
    assert way.accepted == before + 1
    way.rate = None
    store.verify(RUN_ID)


def test_a_silent_server_is_given_up(store: UrlStore, way: Proxy) -> None:
    """After the silence that counts, a few times over; a connection that nobody takes likewise."""
    way.silent = True
    forget_connections()
    started = time.monotonic()
    with pytest.raises(CommandError) as caught:
        UrlStore(store.name).send()
    is_kept(store, caught.value, "no answer in time")
    assert time.monotonic() - started < 10
    way.close()
    forget_connections()
    with pytest.raises(CommandError) as caught:
        UrlStore(store.name).send()
    is_kept(store, caught.value, "no connection")


def test_an_answer_that_is_lost_is_no_conflict(store: UrlStore, way: Proxy) -> None:
    """The object was made; asked again, the server says that it is there, and it is this one."""
    way.answers_to_lose = 1
    assert store.send() == [f"sent {store.name}/{RUN_ID}.tar.gz"]
    store.verify(RUN_ID)


@pytest.fixture
def reader(s3: S3) -> Iterator[tuple[str, str]]:
    """Key and secret of somebody who may read everything and write nothing."""
    iam = s3.made_client("iam")
    iam.create_user(UserName="reader")
    allow = {"Effect": "Allow", "Action": ["s3:Get*", "s3:List*"], "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument=policy)
    made = iam.create_access_key(UserName="reader")["AccessKey"]
    address = f"http://{s3.address[0]}:{s3.address[1]}/moto-api/reset-auth"
    requests.post(address, data=b"0", timeout=10)
    yield made["AccessKeyId"], made["SecretAccessKey"]
    requests.post(address, data=b"inf", timeout=10)


def test_without_the_right_to_write(
    s3: S3, reader: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is found out before a bench, what was measured is kept, and runs can be read."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", reader[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", reader[1])
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    forget_connections()
    store = UrlStore(s3.url)
    no_right = "the credentials of the environment give no right to it (AccessDenied)"
    with pytest.raises(CommandError) as caught:
        store.check_writable()
    assert str(caught.value) == f"store {s3.url}: nothing can be written there: {no_right}"
    assert caught.value.code is Exit.INFRASTRUCTURE
    published(store, RUN_ID)
    with pytest.raises(CommandError) as caught:
        store.send()
    is_kept(store, caught.value, no_right.removesuffix(" (AccessDenied)"))
    assert main(["runs", "--store", s3.url]) == Exit.FINE
    said = capsys.readouterr()
    assert RUN_ID in said.out
    assert said.err == f"{caught.value}\n"
    forget_connections()


def test_without_credentials(s3: S3, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and no search for them that takes minutes."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    forget_connections()
    assert main(["runs", "--store", s3.url]) == Exit.INFRASTRUCTURE
    why = "the environment has no credentials for it (NoCredentialsError)"
    assert capsys.readouterr().err == f"store {s3.url}: it cannot be listed: {why}\n"
    forget_connections()


class Echo(http.server.BaseHTTPRequestHandler):
    """A server whose errors repeat what it was told."""

    def do_GET(self) -> None:
        told = f"{KEY} {SECRET} {TOKEN}"
        body = f"<Error><Code>{KEY}</Code><Message>no {told}</Message></Error>".encode()
        self.send_response(403, told)
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_HEAD = do_DELETE = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Nowhere."""


def test_what_a_server_says_is_not_repeated(
    s3: S3, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be a key; the error's type stands for it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
    forget_connections()
    store = UrlStore(s3.url)
    for words in (["runs"], ["verify", "latest"], ["prune", "--keep-days", "9", "--yes"]):
        assert main([*words, "--store", store.name]) == Exit.INFRASTRUCTURE
    with pytest.raises(CommandError) as caught:
        store.check_writable()
    said = capsys.readouterr()
    for secret in (KEY, SECRET, TOKEN):
        assert secret not in f"{said.out}{said.err}{caught.value}"
    assert len(said.err.splitlines()) == 3
    server.shutdown()
    forget_connections()


BLOCKED = "import sys; sys.modules['s3fs'] = None; from harness.__main__ import main; sys.exit(main(sys.argv[1:]))"
LAZY = (
    "import sys; from harness.__main__ import main; code = main(sys.argv[1:]); print(sorted({*sys.modules} & {*'?'}))"
)


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_a_missing_package_is_named() -> None:
    """With what installs it; of other file systems fsspec says that itself."""
    done = python(BLOCKED, "runs", "--store", "s3://bucket/prefix")
    line = "store s3://bucket/prefix: s3fs is not installed: pip install -c constraints.txt s3fs\n"
    assert (done.returncode, done.stderr) == (6, line)
    done = python(BLOCKED, "runs", "--store", "gs://bucket/prefix")
    assert (done.returncode, done.stderr) == (
        6,
        "store gs://bucket/prefix: Please install gcsfs to access Google Storage\n",
    )
    done = python(BLOCKED, "runs", "--store", "nonsense://bucket")
    line = "store nonsense://bucket: fsspec knows no such URL; wanted one such as s3://bucket/prefix\n"
    assert (done.returncode, done.stderr) == (2, line)


def test_a_folder_needs_none_of_it(tmp_path: Path) -> None:
    """Nothing that reaches a URL is imported for a store that is a folder."""
    program = LAZY.replace("{*'?'}", "{'fsspec', 's3fs', 'aiobotocore', 'harness.store.url_store'}")
    done = python(program, "runs", "--store", str(tmp_path))
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_a_bench_into_a_url(s3: S3, tmp_path: Path) -> None:
    """Its run is there with its ref, and no credential is in the run, the mirror, the page or what was printed."""
    few = ["--device", "cpu", "--kernel", "torch.mv", "--shape", "8x8", "--quick", "--trials", "1", "--timer", "async"]
    command = [sys.executable, "-m", "pytest", "suites", *few, "--store", s3.url, "--ref", "baseline"]
    environment = {**os.environ, "COLUMNS": "200"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    store = UrlStore(s3.url)
    (run_id,) = store.ids()
    assert store.unsent() == []
    assert store.refs() == {run_id: ["baseline"]}
    assert f"sent {s3.url}/{run_id}.tar.gz" in done.stderr
    store.verify(run_id)
    page = [sys.executable, "-m", "reports", "run", "baseline", "--store", s3.url, "--output", str(tmp_path / "p.html")]
    shown = subprocess.run(page, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert shown.returncode == 0, shown.stderr
    texts = [done.stdout, done.stderr, shown.stdout, shown.stderr, (tmp_path / "p.html").read_text()]
    kept = b"".join(path.read_bytes() for path in store.root.rglob("*") if path.is_file())
    for secret in (KEY, SECRET, TOKEN):
        assert not any(secret in text for text in texts)
        assert secret.encode() not in kept
