"""A real S3 server on loopback, moto's, and a way to it that can be slow, break off or lead nowhere."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from harness.store import Store
from harness.store.draft import write_run
from harness.store.url_store import UrlStore
from tests.sample_run import gpu_run

KEY, SECRET, TOKEN = "AKIAPLANTEDPLANTED00", "planted-secret/of+forty-characters-in-all", "planted-session-token"
"""What must never be seen again."""

RUN = gpu_run(shapes=((64, 64),), kernels={"sgemv_k32_f32": "warp per row"}, trials=2, samples=2)


class S3:
    """The server. Each test has a bucket of its own, and each of its machines a folder for its mirror."""

    def __init__(self) -> None:
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        self.address = self._server.get_host_and_port()
        self.bucket = ""

    @property
    def url(self) -> str:
        """Of the store of this test."""
        return f"s3://{self.bucket}/deep/runs"

    def environment(self, address: tuple[str, int] | None = None) -> dict[str, str]:
        """The variables of whoever uses it, over a proxy's address if one is named."""
        host, port = address or self.address
        return {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_SESSION_TOKEN": TOKEN,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def made_client(self, service: str, key: str = KEY, secret: str = SECRET) -> Any:
        """Boto's, for a service and whoever has this key."""
        import boto3

        names = {"aws_access_key_id": key, "aws_secret_access_key": secret, "region_name": "us-east-1"}
        return boto3.client(service, endpoint_url=f"http://{self.address[0]}:{self.address[1]}", **names)

    @cached_property
    def client(self) -> Any:
        """For what happens behind the store's back."""
        return self.made_client("s3")

    def objects(self) -> dict[str, bytes]:
        """Every object of the test's bucket by its key."""
        client = self.client
        keys = [each["Key"] for each in client.list_objects_v2(Bucket=self.bucket).get("Contents", [])]
        return {key: client.get_object(Bucket=self.bucket, Key=key)["Body"].read() for key in keys}

    def replace(self, key: str, content: bytes) -> None:
        """Behind the store's back."""
        self.client.put_object(Bucket=self.bucket, Key=key, Body=content)

    def stop(self) -> None:
        """End the server."""
        self._server.stop()


def forget_connections() -> None:
    """Fsspec keeps what it connected to; a test that changes the way there is another program."""
    from s3fs import S3FileSystem

    S3FileSystem.clear_instance_cache()


@pytest.fixture(scope="module")
def s3_server() -> Iterator[S3]:
    """One for the tests of a file."""
    server = S3()
    forget_connections()
    yield server
    server.stop()


@pytest.fixture
def s3(s3_server: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> S3:
    """With an empty bucket, and credentials in the environment."""
    s3_server.bucket = f"bucket-{os.urandom(4).hex()}"
    s3_server.client.create_bucket(Bucket=s3_server.bucket)
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("SGEMV_STORE", raising=False)
    return s3_server


def on_machine(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> UrlStore:
    """The store as another machine sees it: with a mirror of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return UrlStore(url)


def published(store: Store, run_id: str, samples: int = 2) -> Path:
    """A run that was measured here and is not sent yet; other samples make another run."""
    folder = store.root / run_id
    (folder / "build").mkdir(parents=True)
    (folder / "build" / "compiler.log").write_text("nvcc said nothing\n")
    run = RUN if samples == 2 else gpu_run(shapes=((64, 64),), kernels={}, trials=1, samples=samples)
    write_run(folder, replace(run, id=run_id))
    return folder


class Proxy:
    """A way to a server, at `address`, that can be changed while it is used."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listening.getsockname()
        self.rate: float | None = None
        """Bytes a second, each way; None: as fast as it goes."""
        self.breaks_after: int | None = None
        """Bytes each way, after which a connection ends; None: it does not."""
        self.answers_to_lose = 0
        """Of the next ones that the server gives."""
        self.silent = False
        """Connections are accepted, and that is all."""
        self.accepted = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        held = []
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                held.append(client)
                self.accepted += 1
                if not self.silent:
                    server = socket.create_connection(self._target)
                    for here, there in ((client, server), (server, client)):
                        threading.Thread(target=self._pump, args=(here, there, server), daemon=True).start()

    def _pump(self, here: socket.socket, there: socket.socket, server: socket.socket) -> None:
        passed = 0
        with suppress(OSError):
            while data := here.recv(4096):
                passed += len(data)
                if here is server and self.answers_to_lose:
                    self.answers_to_lose -= 1
                    break
                if self.breaks_after is not None and passed > self.breaks_after:
                    break
                there.sendall(data)
                if self.rate is not None:
                    time.sleep(len(data) / self.rate)
        for end in (here, there):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Nobody is let through any more."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.fixture
def way(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """The way to the server that the environment names."""
    found = Proxy(s3.address)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{found.address[1]}")
    forget_connections()
    yield found
    with suppress(OSError):
        found.close()
    forget_connections()
