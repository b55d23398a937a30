"""Crash tests: gateways, databases, disks and networks fail under load, and each acknowledged event must be stored once.

The crash tests of the SDK are in the package Torture, because they link the SDK.
"""

import argparse
import os
import subprocess
import sys

from ..common import PROGRAM, ROOT, Skipped
from . import cluster, floods, single
from .trial import Trial


def devices(options, rounds):
    """Runs the crash tests of the SDK (package Torture)."""
    for command in (["swift", "build", "-c", "release", "--package-path", "Torture"],
                    ["Torture/.build/release/CountersignTorture", "all", *([str(rounds)] if rounds else [])]):
        if subprocess.run(command, cwd=ROOT).returncode:
            return False
    return True


# The groups of scenarios, each scenario with its number of rounds.
GROUPS = {
    "devices": {devices: 0},
    "gateway": {single.kill: 200, single.power: 100, single.fsync: 40, single.full: 20, single.delete: 20, single.consumers: 3, single.outages: 3,
                single.refresh: 1000, single.storm: 1000},
    "cluster": {
        cluster.gateways: 100, cluster.database: 30, cluster.wire: 5, cluster.network: 5, cluster.unknown: 20, cluster.pooler: 10,
        cluster.failover: 2, cluster.migrate: 10, cluster.rolling: 10, cluster.upgrade: 3, cluster.clocks: 10, cluster.rotate: 100,
        cluster.keys: 40, cluster.chain: 20},
    "floods": {floods.floods: 8},
}
SCENARIOS = {run.__name__: (run, rounds) for group in GROUPS.values() for run, rounds in group.items()}


def main(arguments):
    listed = "\n".join(f"  {name:11}{run.__doc__.split(':')[0].split('.')[0]}" for name, (run, _) in SCENARIOS.items())
    parser = argparse.ArgumentParser(
        prog="python3 -m tools torture", formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"Scenarios:\n{listed}\n\nExit status: 0 if no scenario failed, 1 if one failed, 2 for an unknown scenario or a missing program.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"scenarios, or groups of them: {', '.join(GROUPS)} (default: gateway)")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--gateways", type=int, default=3, help="the number of gateways in a cluster")
    parser.add_argument("--countersign", type=os.path.abspath, default=str(PROGRAM))
    parser.add_argument("--before", type=os.path.abspath, help="for `upgrade`: the program of the previous version")
    options = parser.parse_args(arguments)
    chosen = [name for given in options.names or ["gateway"] for name in expanded(given)]
    unknown = [name for name in chosen if name not in SCENARIOS]
    if unknown or not os.access(options.countersign, os.X_OK):
        print(f"torture: unknown scenario {unknown[0]}" if unknown else f"torture: {options.countersign} is not a program; build it or set --countersign", file=sys.stderr)
        return 2
    good = True
    for name in chosen:
        run, rounds = SCENARIOS[name]
        try:
            good = run(options, options.rounds or rounds) and good
        except Skipped as reason:
            print(f"{name}: skipped, {reason}", flush=True)
        finally:
            if Trial.latest:
                Trial.latest.stop()
    return 0 if good else 1


def expanded(name):
    return [run.__name__ for run in GROUPS[name]] if name in GROUPS else [name]
