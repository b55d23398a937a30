"""Checks a gateway's metrics and alerts with promtool. Then a real Prometheus scrapes the gateway, and must answer each query of the
Grafana dashboard."""

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.parse
from pathlib import Path

from .common import ROOT, Skipped, free_port, parse
from .gateway import Gateway, request

FILES = ROOT / "packaging/prometheus"
NAMES = ("requests_total auth_results_total events_total request_duration_seconds batch_events commit_duration_seconds "
         "store_queue_depth store_bytes disk_free_bytes build_info").split()


def unpacked(folder, programs, *packages):
    """Puts programs of Debian packages on PATH, without installing the packages, which would start servers."""
    if all(shutil.which(program) for program in programs):
        return
    for command in (["apt-get", "download", "-qq", *packages], ["sh", "-c", "for file in *.deb; do dpkg-deb -x $file programs; done"]):
        if not shutil.which(command[0]) or subprocess.run(command, cwd=folder, capture_output=True).returncode:
            raise Skipped(f"{', '.join(programs)} are not installed and cannot be downloaded")
    usr = Path(folder) / "programs/usr"
    os.environ["PATH"] = f"{usr}/bin:{usr}/sbin:{os.environ['PATH']}"
    os.environ["LD_LIBRARY_PATH"] = f"{usr}/lib/{os.uname().machine}-linux-gnu"


def promtool(*arguments, text=None):
    """Runs promtool. Returns its output if it fails, else an empty text."""
    done = subprocess.run(["promtool", *map(str, arguments)], input=text, capture_output=True, text=True)
    return done.stdout + done.stderr or "failed" if done.returncode else ""


def lint(text):
    for name in NAMES:
        assert f"# TYPE countersign_{name} " in text, f"countersign_{name} is missing"
    assert not (said := promtool("check", "metrics", text=text)), said
    assert promtool("check", "metrics", text="# TYPE bad_ms counter\nbad_ms 1\n"), "promtool accepts anything"


def alerts(folder):
    """Checks that the alert rules pass their tests, and that a changed rule fails them."""
    assert not (said := promtool("check", "config", FILES / "prometheus.yml")), said
    for name, right, wrong in (("alerts", "> 33554432", "> 99999999999"), ("slo", "vector(0.001)", "vector(0.1)")):
        assert not (said := promtool("test", "rules", FILES / f"{name}.test.yml")), said
        (folder / f"{name}.yml").write_text((FILES / f"{name}.yml").read_text().replace(right, wrong))
        shutil.copy(FILES / f"{name}.test.yml", folder)
        assert promtool("test", "rules", folder / f"{name}.test.yml"), f"promtool accepts a wrong {name}.yml"


class Prometheus:
    """A real Prometheus with the configuration of packaging, but another port and a scrape interval of 1 s."""

    def __init__(self, folder, gateway):
        self.host, self.port = "127.0.0.1", free_port()
        for name in ("alerts", "slo"):
            shutil.copy(FILES / f"{name}.yml", folder)
        text = (FILES / "prometheus.yml").read_text()
        (folder / "prometheus.yml").write_text(text.replace("127.0.0.1:8787", f"127.0.0.1:{gateway.port}").replace(": 15s", ": 1s"))
        with open(folder / "prometheus.log", "w") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log)

    def query(self, expression):
        try:
            status, answer = request(self, "GET", "/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
            return status == 200 and answer["data"]["result"]
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait()


def dashboard(folder, gateway, send):
    server = Prometheus(folder, gateway)
    try:
        end = time.monotonic() + 60
        # Rates need several scrapes with requests between them.
        while not server.query('count_over_time(up{job="countersign"}[1m]) > 5') and time.monotonic() < end:
            send()
            time.sleep(1)
        queries = [target["expr"].replace("$__rate_interval", "1m").replace("$app", ".*").replace("$route", ".*")
                   for panel in json.loads((ROOT / "packaging/grafana-dashboard.json").read_text())["panels"] for target in panel["targets"]]
        unanswered = [query for query in queries if not server.query(query)]
        assert not unanswered and len(queries) >= 20, unanswered
        assert not server.query("countersign_no_such_metric"), "Prometheus has a metric that no gateway exports"
        return len(queries)
    finally:
        server.stop()


def main(arguments):
    program = parse(arguments, "metrics", __doc__).countersign
    with tempfile.TemporaryDirectory() as name, Gateway(program) as gateway:
        folder = Path(name)
        unpacked(folder, ["promtool", "prometheus"], "prometheus")
        gateway.app(enforcement="optional")
        gateway.start()
        event = {"type": "track", "event": "Seen", "messageId": "m-1", "userId": "u-1"}
        # One request of each kind, so that each metric has samples.
        for events in ([event], [event, {"type": "no"}]):
            gateway.batch(events)
        gateway.ask("POST", "/v1/batch", "{")
        gateway.ask("GET", "/no/such/path")
        text = gateway.metrics()
        lint(text)
        (folder / "rules").mkdir()
        alerts(folder / "rules")
        queries = dashboard(folder, gateway, lambda: gateway.batch([event]))
    print(f"metrics: {text.count('# TYPE')} metrics pass promtool; {queries} queries of the dashboard have results; the alerts pass their tests")
