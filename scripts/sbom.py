#!/usr/bin/env python3
"""Prints a list of a Linux program's parts as SPDX 2.3: sbom.py PROGRAM VERSION.

The parts are the program, the Swift runtime that is linked in, and the Debian packages of the libraries that it loads.
"""

import datetime
import hashlib
import json
import os
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def package_of(library, paths):
    """Name and version of the Debian package that holds a library; None without a package, as for Swift's own."""
    for path in (os.path.realpath(paths[library]), paths[library]) if library in paths else ():
        for name in (path, path.removeprefix("/usr")):
            found = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True)
            if found.returncode == 0:
                package = found.stdout.split(":")[0]
                return package, output("dpkg-query", "-W", "-f", "${Version}", package)
    return None


def part(name, version, **more):
    return {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name), "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
            "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", **more}


def main(program, version):
    needed = re.findall(r"NEEDED\s+(\S+)", output("objdump", "-p", program))
    paths = {line.split()[0]: line.split()[-1] for line in output("/sbin/ldconfig", "-p").splitlines() if "=>" in line}
    packages = sorted({found for library in needed if (found := package_of(library, paths))})
    with open(program, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    swift = re.search(r"Swift version (\S+)", output("swift", "--version"))[1]
    own = part("countersign", version, licenseDeclared="Apache-2.0", primaryPackagePurpose="APPLICATION",
               checksums=[{"algorithm": "SHA256", "checksumValue": digest}])
    parts = [own, part("swift", swift, licenseDeclared="Apache-2.0 WITH Swift-exception")]
    for name, found in packages:
        locator = f"pkg:deb/debian/{name}@{found}"
        parts.append(part(name, found, externalRefs=[
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}]))
    links = [{"spdxElementId": own["SPDXID"], "relationshipType": "STATIC_LINK" if other["name"] == "swift" else "DYNAMIC_LINK",
              "relatedSpdxElement": other["SPDXID"]} for other in parts[1:]]
    made = int(os.environ.get("SOURCE_DATE_EPOCH") or output("git", "log", "-1", "--format=%ct"))
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"countersign-{version}", "documentNamespace": f"https://spdx.org/spdxdocs/countersign-{version}-{digest}",
        "creationInfo": {"created": datetime.datetime.fromtimestamp(made, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: scripts/sbom.py"]},
        "packages": parts,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": own["SPDXID"]}] + links,
    }
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    main(*sys.argv[1:])
