"""A link with traffic in network namespaces of its own, for the tests of the live page."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest
from commands import SHORTLANE, environment
from report_help import BROWSERS

HERE, FAR = "10.77.0.1", "10.77.0.2"
SINK, SOURCE, ECHO = 7001, 7002, 7003


class Link:
    """A veth of two namespaces: `t0` at this end, `t1` at the far one."""

    def __init__(self, here, far):
        self.here, self.far = here, far

    def into(self, pid):
        """What runs a command in a namespace."""
        return ["nsenter", f"--net=/proc/{pid}/ns/net", "--"]

    def run(self, *command, check=True):
        return subprocess.run(
            [*self.into(self.here), *command],
            env=environment(),
            capture_output=True,
            text=True,
            check=check,
        )

    def shortlane(self, *arguments, check=True):
        return self.run(*SHORTLANE, *arguments, check=check)

    @contextmanager
    def process(self, pid, *command):
        child = subprocess.Popen(
            [*self.into(pid), *command],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield child
        finally:
            child.terminate()
            child.communicate(timeout=20)

    @contextmanager
    def traffic(self):
        """Two uploads, a download, and many short exchanges."""
        with self.process(self.far, sys.executable, __file__, "far") as far:
            assert far.stdout.readline() == "ready\n"
            with self.process(self.here, sys.executable, __file__, "here"):
                yield

    @contextmanager
    def attached(self, *options):
        self.shortlane("attach", "t0", *options)
        try:
            yield
        finally:
            self.shortlane("detach", "t0", check=False)


@contextmanager
def served(made, *address):
    """The page's address, and the process that serves it."""
    with made.process(made.here, *SHORTLANE, "top", "t0", "--web", *address) as server:
        line = server.stderr.readline()
        assert line.startswith("top: http://"), line + server.stderr.read()
        yield line.removeprefix("top: ").strip(), server


@contextmanager
def browsing(made, folder):
    """A browser that sees this end of the link and nothing else; skips where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    wrapper = folder / "browser"
    wrapper.write_text(f'#!/bin/sh\nexec {" ".join(made.into(made.here))} {program} "$@"\n')
    wrapper.chmod(0o755)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=wrapper, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def link():
    with ExitStack() as stack:
        pids = []
        for _ in range(2):
            child = stack.enter_context(
                subprocess.Popen(
                    ["unshare", "--net", "sh", "-c", "ip link set lo up; echo; exec cat"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
            # They end when their input does.
            stack.callback(child.stdin.close)
            child.stdout.readline()
            pids.append(child.pid)
        made = Link(*pids)
        made.run(
            "ip", "link", "add", "t0", "type", "veth", "peer", "name", "t1", "netns", str(made.far)
        )
        for pid, name, address in [(made.here, "t0", HERE), (made.far, "t1", FAR)]:
            for command in (f"ip address add {address}/24 dev {name}", f"ip link set {name} up"):
                subprocess.run([*made.into(pid), *command.split()], check=True)
        yield made


def forever(job, *arguments):
    def again():
        while True:
            try:
                job(*arguments)
            except OSError:
                time.sleep(0.2)

    threading.Thread(target=again, daemon=True).start()


def serve(port, job):
    listener = socket.create_server((FAR, port), backlog=100)

    def accept():
        stream, _ = listener.accept()
        threading.Thread(target=attend, args=(stream,), daemon=True).start()

    def attend(stream):
        try:
            with stream:
                job(stream)
        except OSError:
            pass

    forever(accept)


def swallow(stream):
    while stream.recv(1 << 16):
        pass


def pour(stream):
    while True:
        stream.sendall(bytes(1 << 14))


def echo(stream):
    while data := stream.recv(1 << 16):
        stream.sendall(data)


def upload():
    with socket.create_connection((FAR, SINK)) as stream:
        pour(stream)


def download():
    with socket.create_connection((FAR, SOURCE)) as stream:
        swallow(stream)


def exchange(bytes_each, pause):
    with socket.create_connection((FAR, ECHO)) as stream:
        stream.sendall(bytes(bytes_each))
        left = bytes_each
        while left > 0:
            left -= len(stream.recv(1 << 16))
    time.sleep(pause)


def main(end):
    if end == "far":
        serve(SINK, swallow)
        serve(SOURCE, pour)
        serve(ECHO, echo)
        print("ready", flush=True)
    else:
        for job in (upload, upload, download):
            forever(job)
        for size, pause in [(200, 0.02), (2_000, 0.03), (20_000, 0.2), (120_000, 1)]:
            forever(exchange, size, pause)
    while os.getppid() != 1:
        time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1])
