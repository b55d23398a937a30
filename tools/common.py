"""Helpers of programs that start other programs: options, free ports, folders, waiting, and the output of commands."""

import argparse
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / ".build/debug/countersign-cli"
SEED = os.environ.get("PROVE_SEED")
# A seed repeats the random decisions of a program. Threads use `DICE`, so that their order does not change the main thread's decisions.
random.seed(SEED)
DICE = random.Random(SEED)
SYSTEM_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])


class Skipped(Exception):
    """Ends a test that cannot run on this machine. The message is the reason."""


def parse(arguments, name, text, **defaults):
    """Parses the options of a program: --countersign, and one option for each default. False makes it a switch."""
    parser = argparse.ArgumentParser(prog=f"python3 -m tools {name}", description=text)
    for flag, default in defaults.items():
        kind = {"action": "store_true"} if default is False else {"type": type(default), "default": default, "help": f"default {default}"}
        parser.add_argument(f"--{flag}", **kind)
    parser.add_argument("--countersign", type=os.path.abspath, default=str(PROGRAM))
    return parser.parse_args(arguments)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def workshop(prefix="countersign-"):
    """Creates a temporary folder that other users may traverse, because PostgreSQL does not run as root."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    folder.chmod(0o711)
    return folder


def until(what, holds, seconds=60, pause=0.02):
    """Waits until `holds()` is true, and returns the seconds until then. Exits after `seconds`."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > seconds:
            raise SystemExit(f"{what}: not within {seconds} s")
        time.sleep(pause)
    return time.monotonic() - began


def check(what, holds, detail=""):
    if not holds:
        raise SystemExit(f"{what}: {detail}")
    print(f"{what}: ok", flush=True)


def output(*command, **options):
    """The standard output of a command, without white space at its ends. Exits if the command fails."""
    options.setdefault("timeout", 300)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))[:300]} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def installed(program, package):
    """The path of an installed program."""
    found = shutil.which(program, path=SYSTEM_PATH)
    if not found:
        raise Skipped(f"{program} is not installed (package {package})")
    return found


def chromium():
    """The arguments that start the system's Chromium with Playwright."""
    return {"executable_path": shutil.which("chromium") or shutil.which("chromium-browser"),
            "args": ["--no-sandbox"] if os.getuid() == 0 else []}


def preloaded(name, folder):
    """Compiles Torture/Faults/NAME.c. Returns the environment that preloads it into a program."""
    library = Path(folder) / f"{name}.so"
    if not library.exists():
        output("cc", "-O2", "-shared", "-fPIC", "-o", library, ROOT / f"Torture/Faults/{name}.c", "-ldl")
    return {"LD_PRELOAD": str(library)}


def certify(folder, name, alternative="IP:127.0.0.1"):
    """Makes a self-signed certificate. Returns the paths of the certificate and of its key."""
    key, certificate = Path(folder) / f"{name}.key", Path(folder) / f"{name}.pem"
    output("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
           "-addext", f"subjectAltName={alternative}", "-keyout", key, "-out", certificate)
    return certificate, key


def on_linux(name):
    if sys.platform != "linux":
        raise Skipped(f"{name} needs Linux")
