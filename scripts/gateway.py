"""A gateway on a free port, with a data directory of its own, for scripts that drive it."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading


@contextlib.contextmanager
def serving(binary, prepare=lambda run: None):
    """Yields the address, the data directory and what `prepare` returned; `prepare` runs commands before the start."""
    data = tempfile.mkdtemp(prefix="countersign-")
    os.chmod(data, 0o700)

    def run(*arguments):
        return subprocess.run(
            [binary, *arguments, "--data", data], check=True, capture_output=True, text=True).stdout.strip()

    prepared = prepare(run)
    gateway = subprocess.Popen(
        [binary, "serve", "--data", data, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        address = None
        while address is None:
            line = gateway.stdout.readline()
            if not line:
                raise SystemExit("the gateway did not start")
            found = re.search(r"http://[0-9.:]+", line)
            address = found and found.group(0)
        # What it logs from now on must not fill the pipe.
        threading.Thread(target=gateway.stdout.read, daemon=True).start()
        yield address, data, prepared
    finally:
        gateway.send_signal(signal.SIGTERM)
        code = gateway.wait(timeout=20)
        shutil.rmtree(data)
    if code != 0:
        raise SystemExit(f"the gateway ended with {code}")
