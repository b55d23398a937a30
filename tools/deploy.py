"""Checks the Helm chart and its page, the compose files and the GitHub workflows, without a cluster and without starting a container.

Helm's own library lints and renders the chart, and the schemas of Kubernetes validate the result. The schema of Compose validates
the compose files, actionlint the workflows. Each check is also tried with an invalid file, which it must reject.
"""

import copy
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import helm_python
import kubernetes_validate
import yaml

from .common import ROOT

CHART = ROOT / "packaging/helm/countersign"
BIN = pathlib.Path(sys.executable).parent
# The oldest version that the chart supports, and a current version.
VERSIONS = ["1.29", "1.33"]
FULL = {
    "publicURL": "https://collect.example",
    "settings": {"trusted-proxies": "10.0.0.0/8", "body-bytes": 2097152, "drain-seconds": 7},
    "storage": {"className": "fast", "accessMode": "ReadWriteOnce"},
    "ingress": {"enabled": True, "className": "nginx", "annotations": {"a": "b"}, "tlsSecret": "collect-tls"},
    "serviceMonitor": {"enabled": True},
    "nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "ssd", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}}, "imagePullSecrets": [{"name": "registry"}],
}

CLUSTER = FULL | {"database": {"url": "postgresql://countersign@db/countersign?sslmode=verify-full", "secret": "database", "gateways": 3}}


def fail(text):
    sys.exit(f"deploy: {text}")


def rejects(what, body):
    try:
        body()
    except (helm_python.HelmError, kubernetes_validate.ValidationError):
        return
    fail(f"{what} was accepted")


def render(values):
    chart = helm_python.Chart.load(str(CHART))
    chart.validate_schema(values)
    rendered = chart.render(values, name="collect", namespace="default")
    return [document for name, text in sorted(rendered.items()) if name.endswith(".yaml")
            for document in yaml.safe_load_all(text) if document]


def check_chart():
    for values in ({}, FULL, CLUSTER):
        report = helm_python.lint(str(CHART), values, strict=True)
        bad = [m for m in report["messages"] if m["severity"] > 1] + report["errors"]
        if bad:
            fail(f"helm lint reports {bad}")
    rejects("a chart with a second replica", lambda: helm_python.Chart.load(str(CHART)).validate_schema({"replicaCount": 2}))
    rejects("a chart with a password in an address",
            lambda: helm_python.Chart.load(str(CHART)).validate_schema({"database": {"url": "postgresql://a:b@db/c"}}))
    rejects("a time with a unit", lambda: render({"settings": {"drain-seconds": "10s"}}))
    if "'value': '0'" not in str(render({"settings": {"drain-seconds": 0}})):
        fail("the chart replaces a drain-seconds of 0")
    for values, kinds in (
        ({}, ["Pod", "Service", "StatefulSet"]),
        (FULL, ["Ingress", "Pod", "Service", "ServiceMonitor", "StatefulSet"]),
        (CLUSTER, ["Deployment", "Ingress", "Pod", "Service", "ServiceMonitor"]),
    ):
        documents = render(values)
        found = sorted(document["kind"] for document in documents)
        if found != kinds:
            fail(f"the chart makes {found}, not {kinds}")
        for document in documents:
            pod = document if document["kind"] == "Pod" else document["spec"].get("template")
            if pod and pod["spec"].get("enableServiceLinks", True):
                fail("a service named countersign would set COUNTERSIGN_PORT")
            for version in VERSIONS if document["kind"] != "ServiceMonitor" else []:
                kubernetes_validate.validate(document, version, strict=True)
    wrong = copy.deepcopy(next(d for d in render({}) if d["kind"] == "StatefulSet"))
    wrong["spec"]["template"]["spec"]["containers"][0]["port"] = []
    rejects("a container with an unknown field", lambda: kubernetes_validate.validate(wrong, VERSIONS[0], strict=True))

    full = next(d for d in render(FULL) if d["kind"] == "StatefulSet")
    several = next(d for d in render(CLUSTER) if d["kind"] == "Deployment")
    names = (ROOT / "docs/reference/settings.md").read_text()
    for what in (full, several):
        pod = what["spec"]["template"]["spec"]
        variables = {v["name"]: v["value"] for v in pod["containers"][0]["env"]}
        for name in variables:
            if f"`{name}`" not in names:
                fail(f"the chart sets {name}, which is not a setting")
        expected = {"COUNTERSIGN_BODY_BYTES": "2097152", "COUNTERSIGN_DRAIN_SECONDS": "7", "COUNTERSIGN_TRUSTED_PROXIES": "10.0.0.0/8"}
        if not expected.items() <= variables.items():
            fail(f"the chart renders the settings as {variables}")
        if pod["terminationGracePeriodSeconds"] <= 7 + 10:
            fail("the pod is killed before the gateway has drained")
        folder = variables.get("COUNTERSIGN_DATA", "")
        if (what is full) != folder.startswith("/data/"):
            fail("the data directory of the StatefulSet must be below the volume, whose own mode fsGroup changes")
    if full["spec"]["replicas"] != 1:
        fail("more than one gateway would share a data directory")
    if several["spec"]["replicas"] != 3 or "volumeClaimTemplates" in several["spec"] or any("BACKUP" in name for name in variables):
        fail("the chart does not make three gateways on the database, or gives them a volume or settings of backups")
    if f'appVersion: "{version_of_program()}"' not in (CHART / "Chart.yaml").read_text():
        fail("the chart's appVersion is not the program's")
    print(f"deploy: the chart is linted and rendered by Helm {helm_python.helm_sdk_version()},"
          f" valid for Kubernetes {' and '.join(VERSIONS)}; installed into no cluster")


def check_page():
    """Renders the chart with the options on docs/operating/kubernetes.md, and compares the names on the page with the rendered ones."""
    page = (ROOT / "docs/operating/kubernetes.md").read_text().replace("\\\n", "")
    one, several = re.findall(r"^\$ helm install collect (.+)", page, re.M)
    known, rendered = yaml.safe_load((CHART / "values.yaml").read_text()), []
    for line in (one, several.replace("…", one)):
        chart, *options = shlex.split(line)
        if ROOT / chart != CHART or set(options[::2]) != {"--set"}:
            fail(f"the page has an unknown option or chart: {line}")
        values = helm_python.parse_set_string(",".join(options[1::2]))
        for name, value in values.items():
            if name not in known or isinstance(value, dict) and not value.keys() <= known[name].keys():
                fail(f"the page sets {name}: {value}, which the chart does not read")
        rendered.append(next(d for d in render(values) if d["kind"] in ("StatefulSet", "Deployment")))
    pods, deployment, text = set(re.findall(r"kubectl exec (\S+)", page)), rendered[1]["metadata"]["name"], str(rendered[1])
    if pods != {f"{rendered[0]['metadata']['name']}-0"} or f"`deployment/{deployment}`" not in page:
        fail(f"the chart does not make the pods {pods} or the deployment on the page")
    files, mounted = (set(re.findall(pattern, where)) for pattern, where in (
        (r"--from-file=(\S+)", page), (r"/run/secrets/database/([\w.-]+)", text)))
    if files != mounted or {f"'secretName': '{name}'" in text for name in re.findall(r"create secret generic (\S+)", page)} != {True}:
        fail(f"the secret on the page has {files}, and the chart reads {mounted}")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["sh", "-ec", re.search(r"^\$ (.+ >token-key)$", page, re.M)[1]], cwd=folder, check=True)
        if not re.fullmatch(r"[\w-]{43}", (pathlib.Path(folder) / "token-key").read_text().strip(), re.A):
            fail("the page makes no token key of 32 bytes")
    print("deploy: the chart renders with the options on its page; the commands on the page were not run")


def version_of_program():
    return re.search(r'countersignVersion = "(.+)"', (ROOT / "Sources/SDK/CountersignCore/Version.swift").read_text())[1]


def check_compose():
    schema = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec"]
    folder = ROOT / "packaging/compose"
    names = (ROOT / "docs/reference/settings.md").read_text()
    for compose in (folder / "compose.yml", folder / "cluster.yml"):
        subprocess.run([*schema, compose], check=True, stdout=subprocess.DEVNULL)
        document = yaml.safe_load(compose.read_text())
        for service in document["services"].values():
            for volume in service.get("volumes", []):
                path = volume.split(":")[0]
                if path.startswith("."):
                    if not (folder / path).resolve().exists():
                        fail(f"{compose.name} mounts {path}, which does not exist")
                elif path not in document["volumes"]:
                    fail(f"{compose.name} mounts {path}, which is not one of its volumes")
            for name in service.get("environment", {}):
                if name.startswith("COUNTERSIGN_") and f"`{name}`" not in names:
                    fail(f"{compose.name} sets {name}, which is not a setting")
        next(iter(document["services"].values()))["port"] = []
        wrong = subprocess.run([*schema, "-"], input=json.dumps(document), text=True, capture_output=True)
        if wrong.returncode == 0:
            fail(f"check-jsonschema accepts {compose.name} with an unknown key")
    own = yaml.safe_load((ROOT / "packaging/prometheus/prometheus.yml").read_text())
    inside = yaml.safe_load((folder / "prometheus.yml").read_text())
    inside["scrape_configs"][0]["static_configs"][0]["targets"] = ["127.0.0.1:8787"]
    if own != inside:
        fail("compose/prometheus.yml differs from prometheus/prometheus.yml in more than the target")
    own, inside = ([line for line in (path / "haproxy.cfg").read_text().splitlines() if not line.startswith(("#", "    bind", "    server"))]
                   for path in (ROOT / "packaging/cluster", folder))
    if own != inside:
        fail("compose/haproxy.cfg differs from cluster/haproxy.cfg in more than the addresses")
    print("deploy: the compose files are valid and all files that they mount exist; no container was started")


def check_workflows():
    workflows = sorted((ROOT / ".github/workflows").glob("*.yml"))
    subprocess.run([BIN / "actionlint", *workflows], check=True)
    schema = [BIN / "check-jsonschema", "--builtin-schema", "vendor.github-workflows"]
    subprocess.run([*schema, *workflows], check=True, stdout=subprocess.DEVNULL)
    wrong = workflows[0].read_text().replace("${{ github.ref }}", "${{ github.reff }}")
    if subprocess.run([BIN / "actionlint", "-"], input=wrong, text=True, capture_output=True).returncode == 0:
        fail("actionlint accepts an invalid workflow")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for workflow in workflows:
        for target in re.findall(r"make ([a-z-]+)", re.sub(r"install .*", "", workflow.read_text())):
            if target not in targets:
                fail(f"{workflow.name} runs `make {target}`, which does not exist")
    print(f"deploy: {len(workflows)} workflows pass actionlint and their schema")


def main(arguments):
    check_workflows()
    check_compose()
    check_chart()
    check_page()
