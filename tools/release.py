"""Builds the files of a release into .build/release-files: python3 -m tools release [build|deb|check] [--out FOLDER].

`deb` builds the Debian package only. `check` compares the files with those of a second run, and delivers an event with
each gateway and client on a fresh Debian without Swift. RELEASE_KEY is the path of the SSH key that signs SHA256SUMS.
"""

import argparse
import datetime
import functools
import gzip
import hashlib
import http.server
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import urllib.parse
import zipfile
from pathlib import Path

from .common import ROOT, SYSTEM_PATH, chromium, free_port, output, workshop
from .gateway import Shop

VERSION = re.search(r'countersignVersion = "(.+)"', (ROOT / "Sources/SDK/CountersignCore/Version.swift").read_text())[1]
STAGE, LIBRARY = ROOT / ".build/release-stage", ROOT / ".build/libcountersign/libcountersign.so"
BUILT = ROOT / ".build-static/release/countersign-cli"
# simdjson's soname differs between distributions, so packages and images contain this library.
SIMDJSON = "libsimdjson.so.14"
JAVA = ROOT / "Clients/jvm"


def date():
    return datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)


def fresh(name):
    folder = STAGE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def copy(path, to, mode=0o644):
    to = Path(to)
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)
    to.chmod(mode)
    return to


def needed(path):
    return re.findall(r"NEEDED\s+(\S+)", output("objdump", "-p", path))


def library(name):
    """The path of a library of this system."""
    return re.search(rf"^\s*{re.escape(name)} \(.*x86-64.*=> (\S+)", output("/sbin/ldconfig", "-p"), re.M)[1]


def package_of(name):
    """The Debian package that has a library, and its version."""
    path = library(name)
    for candidate in (os.path.realpath(path), path):
        for path in (candidate, candidate.removeprefix("/usr")):
            found = subprocess.run(["dpkg", "-S", path], capture_output=True, text=True)
            if found.returncode == 0:
                package = found.stdout.split(":")[0]
                return package, output("dpkg-query", "-W", "-f", "${Version}", package)
    raise SystemExit(f"no Debian package contains {name}")


def packages(*binaries):
    return sorted({package_of(name) for path in binaries for name in needed(path)
                   if not name.startswith(("ld-linux", "libcountersign"))})


def libraries(folder):
    """The Debian packages that the program needs, without simdjson's, because each file contains that library."""
    own = package_of(SIMDJSON)[0]
    return [name for name, _ in packages(folder / "countersign", folder / SIMDJSON) if name != own]


# MARK: Files


def compress(tar, to):
    """Writes a gzip file without name and time. Small files get the best compression, which Debian requires of manual pages and changelogs."""
    level = 9 if Path(tar).stat().st_size < 1 << 20 else 6
    with open(tar, "rb") as source, open(to, "wb") as target, gzip.GzipFile("", "wb", level, target, 0) as packed:
        shutil.copyfileobj(source, packed, 1 << 20)


def tarball(folder, to):
    tar = STAGE / "archive.tar"
    output("tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", f"--mtime=@{os.environ['SOURCE_DATE_EPOCH']}",
           "-C", folder.parent, "-cf", tar, folder.name)
    compress(tar, to)


def jar(folder, to):
    """Writes a reproducible jar, with the manifest first."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(filter(Path.is_file, folder.rglob("*")), key=lambda path: ("META-INF" not in path.parts, path)):
            archive.writestr(zipfile.ZipInfo(str(path.relative_to(folder)), date().timetuple()[:6]), path.read_bytes(),
                             zipfile.ZIP_DEFLATED)


def program(built=BUILT):
    """Builds the program if `built` is the default. Returns a folder with program, simdjson, man pages, completions."""
    folder = fresh("program")
    if built == BUILT and not (BUILT.exists() and "RELEASE_NO_BUILD" in os.environ):
        output("swift", "build", "-c", "release", "--static-swift-stdlib", "--scratch-path", BUILT.parent.parent,
               "--product", "countersign-cli", timeout=3600)
    binary = copy(built, folder / "countersign", 0o755)
    output("strip", binary)
    copy(library(SIMDJSON), folder / SIMDJSON)
    output(binary, "man", "--out", folder / "man")
    for shell, name in (("bash", "countersign"), ("zsh", "_countersign"), ("fish", "countersign.fish")):
        path = folder / "completions" / shell / name
        path.parent.mkdir(parents=True)
        path.write_text(output(binary, "completion", shell) + "\n")
    return folder


def archive(folder, out):
    name = f"countersign-{VERSION}-linux-x86_64"
    target = fresh(f"archive/{name}")
    shutil.copytree(folder, target, dirs_exist_ok=True)
    for path in ("LICENSE", "README.md", "CHANGELOG.md", "packaging/countersign.service", "packaging/debian/countersign.conf"):
        copy(ROOT / path, target / Path(path).name)
    (target / "LIBRARIES").write_text("".join(f"{name}\n" for name in libraries(folder)))
    tarball(target, out / f"{name}.tar.gz")
    return out / f"{name}.tar.gz"


def debian(folder, out, version=VERSION):
    target, source = fresh("deb"), ROOT / "packaging/debian"
    private, share = target / "usr/lib/countersign", target / "usr/share"
    copy(folder / "countersign", private / "countersign", 0o755)
    copy(folder / SIMDJSON, private / SIMDJSON)
    (target / "usr/bin").mkdir()
    (target / "usr/bin/countersign").symlink_to("../lib/countersign/countersign")
    copy(source / "countersign.conf", target / "etc/countersign/countersign.conf")
    unit = copy(ROOT / "packaging/countersign.service", target / "usr/lib/systemd/system/countersign.service")
    unit.write_text(unit.read_text().replace("/usr/local/bin/", "/usr/bin/"))
    for page in (folder / "man").iterdir():
        compress(page, copy(page, share / f"man/man1/{page.name}.gz"))
    for shell, place in (("bash", "bash-completion/completions"), ("zsh", "zsh/vendor-completions"), ("fish", "fish/vendor_completions.d")):
        shutil.copytree(folder / "completions" / shell, share / place)
    maintainer = output("git", "log", "-1", "--format=%an <%ae>")
    changes = STAGE / "changelog"
    changes.write_text(f"countersign ({version}) stable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n\n"
                       f" -- {maintainer}  {date():%a, %d %b %Y %H:%M:%S} +0000\n")
    for path, name in ((changes, "changelog.gz"), (ROOT / "CHANGELOG.md", "CHANGELOG.md.gz")):
        compress(path, copy(path, share / "doc/countersign" / name))
    copy(source / "copyright", share / "doc/countersign/copyright")

    # dpkg-shlibdeps needs a debian/control in the current folder.
    (STAGE / "debian").mkdir(exist_ok=True)
    (STAGE / "debian/control").write_text("Source: countersign\n\nPackage: countersign\nArchitecture: amd64\n")
    depends = output("dpkg-shlibdeps", "-O", f"-x{package_of(SIMDJSON)[0]}", "-e", folder / "countersign", "-e", library(SIMDJSON),
                     cwd=STAGE).partition("Depends=")[2]
    size = sum(path.lstat().st_size for path in target.rglob("*")) // 1024
    for name in ("postinst", "prerm", "postrm"):
        copy(source / name, target / "DEBIAN" / name, 0o755)
    control = (source / "control").read_text()
    for name, value in (("VERSION", version), ("SIZE", str(size)), ("DEPENDS", depends), ("MAINTAINER", maintainer)):
        control = control.replace(f"@{name}@", value)
    (target / "DEBIAN/control").write_text(control)
    (target / "DEBIAN/conffiles").write_text("/etc/countersign/countersign.conf\n")
    paths = sorted(path for path in target.rglob("*") if path.is_file() and not path.is_symlink() and "DEBIAN" not in path.parts)
    (target / "DEBIAN/md5sums").write_text("".join(
        f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(target)}\n" for path in paths))
    for path in target.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
    package = out / f"countersign_{version}_amd64.deb"
    output("dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", target, package, timeout=1800)
    return package


def image(folder, out):
    """Builds the container image: the program and its libraries, without a shell. In Docker's format, because OCI's has no health check."""
    root, data = fresh("image"), fresh("data")
    root.rmdir()
    data.chmod(0o700)
    output("mmdebstrap", "--variant=extract", f"--include=ca-certificates,{','.join(libraries(folder))}",
           *(f"--dpkgopt=path-exclude={path}" for path in ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/lintian/*")),
           "bookworm", root, os.environ.get("MIRROR", "http://deb.debian.org/debian"), timeout=900)
    for path in ("var/cache", "var/lib/apt", "var/log", "dev"):
        shutil.rmtree(root / path, ignore_errors=True)
    shutil.copytree(folder, root / "usr/lib/countersign", dirs_exist_ok=True, ignore=shutil.ignore_patterns("man", "completions"))
    (root / "usr/bin/countersign").symlink_to("../lib/countersign/countersign")
    (root / "etc/passwd").write_text("root:x:0:0:root:/:/sbin/nologin\ncountersign:x:8787:8787::/data:/sbin/nologin\n")
    (root / "etc/group").write_text("root:x:0:\ncountersign:x:8787:\n")
    bundle = root / "etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_text("".join(path.read_text() for path in sorted((root / "usr/share/ca-certificates/mozilla").glob("*.crt"))))
    store = fresh("containers")
    buildah = ["buildah", "--root", store / "root", "--runroot", store / "run", "--storage-driver", "vfs"]
    container = output(*buildah, "from", "scratch")
    output(*buildah, "copy", container, root, "/")
    output(*buildah, "copy", "--chown", "8787:8787", container, data, "/data")
    output(*buildah, "config", "--user", "8787:8787", "--env", "COUNTERSIGN_DATA=/data", "--env", "COUNTERSIGN_HOST=0.0.0.0",
           "--env", "PATH=/usr/bin", "--volume", "/data", "--port", "8787", "--entrypoint", '["countersign"]', "--cmd", "serve",
           "--workingdir", "/data", "--healthcheck", "CMD countersign self-check --server http://127.0.0.1:8787",
           "--healthcheck-interval", "30s", "--label", f"org.opencontainers.image.version={VERSION}", container)
    tar = STAGE / "image.tar"
    tar.unlink(missing_ok=True)
    output(*buildah, "commit", "--timestamp", os.environ["SOURCE_DATE_EPOCH"], "--format", "docker", container,
           f"docker-archive:{tar}:countersign:{VERSION}", timeout=900)
    package = out / f"countersign-{VERSION}-image-amd64.tar.gz"
    compress(without_container(tar), package)
    return package


def without_container(tar):
    """Copies an image's archive without the random id of the container that built the image, so that archives are equal."""
    with tarfile.open(tar) as archive, tarfile.open(STAGE / "equal.tar", "w") as equal:
        manifest = json.load(archive.extractfile("manifest.json"))
        config = json.load(archive.extractfile(manifest[0]["Config"])) | {"container": ""}
        config = json.dumps(config).encode()
        manifest[0]["Config"] = f"{hashlib.sha256(config).hexdigest()}.json"
        parts = {"manifest.json": json.dumps(manifest).encode(), manifest[0]["Config"]: config}
        for name in (*parts, *manifest[0]["Layers"]):
            content = io.BytesIO(parts[name]) if name in parts else archive.extractfile(name)
            member = tarfile.TarInfo(name)
            member.size = content.seek(0, 2)
            content.seek(0)
            equal.addfile(member, content)
    return STAGE / "equal.tar"


def source(out):
    tar = STAGE / "source.tar"
    output("git", "archive", "--format=tar", f"--prefix=countersign-{VERSION}/", "-o", tar, "HEAD")
    package = out / f"countersign-{VERSION}-source.tar.gz"
    compress(tar, package)
    return package


def wheel(folder, binary=None):
    """Builds a wheel from a folder, with the compiled library `binary` if given."""
    target = fresh("wheel")
    shutil.copytree(folder, target / "source", ignore=shutil.ignore_patterns("*.egg-info", "build", "__pycache__", "tests", "test_*"))
    if binary:
        copy(binary, target / "source/src/countersign/libcountersign.so", 0o755)
        (target / "source/setup.cfg").write_text("[bdist_wheel]\nplat_name = linux_x86_64\n")
    output(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", target, target / "source")
    return next(target.glob("*.whl"))


def python(out):
    """Builds two wheels: the client with libraries that manylinux lacks, and the pure-Python readers."""
    client = wheel(ROOT / "Clients/python", LIBRARY)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{SYSTEM_PATH}"}
    output("auditwheel", "repair", "-w", STAGE / "repaired", client, env=environment)
    found = [next((STAGE / "repaired").glob("*.whl")), wheel(ROOT / "Examples/Consumers")]
    return [copy(path, out / path.name) for path in found]


def web(out):
    target = fresh("web")
    shutil.copytree(ROOT / "Clients/web", target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("test", "node_modules"))
    copy(ROOT / "LICENSE", target / "LICENSE")
    return out / output("npm", "pack", "--silent", "--pack-destination", out, cwd=target)


def java(out):
    target, library = fresh("java"), LIBRARY.parent
    output(JAVA / "build.sh", library, library, target)
    inside = target / "classes/dev/countersign"
    copy(LIBRARY, inside / "libcountersign.so.0.1")
    output("strip", "-o", inside / "libcountersign_jni.so", target / "libcountersign_jni.so")
    copy(target / "manifest", target / "classes/META-INF/MANIFEST.MF").write_text(
        f"Manifest-Version: 1.0\nAutomatic-Module-Name: dev.countersign\nImplementation-Version: {VERSION}\n")
    package = out / f"countersign-{VERSION}.jar"
    jar(target / "classes", package)
    jar(JAVA / "src/main/java", out / f"countersign-{VERSION}-sources.jar")
    copy(JAVA / "pom.xml", out / f"countersign-{VERSION}.pom")
    return package


# MARK: SBOMs, checksums, signature


def sbom(package, *binaries, bundled=False):
    """Writes the SBOM (SPDX 2.3) of a file: the file, Swift's runtime, and the Debian packages of the libraries that `binaries` load."""
    def part(name, version, **more):
        return {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name), "name": name, "versionInfo": version,
                "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
                "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", **more}

    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    parts = [part(package.name, VERSION, licenseDeclared="Apache-2.0",
                  checksums=[{"algorithm": "SHA256", "checksumValue": digest}])]
    if binaries:
        swift = re.search(r"Swift version (\S+)", output("swift", "--version"))[1]
        parts.append(part("swift", swift, licenseDeclared="Apache-2.0 WITH Swift-exception"))
    for name, version in packages(*binaries):
        parts.append(part(name, version, externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                                        "referenceLocator": f"pkg:deb/debian/{name}@{version}"}]))
    links = [{"spdxElementId": parts[0]["SPDXID"], "relatedSpdxElement": other["SPDXID"],
              "relationshipType": "STATIC_LINK" if other["name"] == "swift"
              else "CONTAINS" if bundled or other["name"].startswith("libsimdjson") else "DYNAMIC_LINK"}
             for other in parts[1:]]
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": package.name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{package.name}-{digest}",
        "creationInfo": {"created": f"{date():%Y-%m-%dT%H:%M:%SZ}", "creators": ["Tool: tools/release.py"]},
        "packages": parts,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": parts[0]["SPDXID"]}, *links],
    }
    Path(f"{package}.spdx.json").write_text(json.dumps(document, indent=1) + "\n")


def build(out):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    shutil.rmtree(STAGE, ignore_errors=True)
    folder = program()
    if not LIBRARY.exists() or "RELEASE_NO_BUILD" not in os.environ:
        output("scripts/libcountersign.sh", timeout=3600)
    gateway = (folder / "countersign", folder / SIMDJSON)
    sbom(debian(folder, out), *gateway)
    sbom(archive(folder, out), *gateway)
    sbom(image(folder, out), *gateway, bundled=True)
    sbom(source(out))
    client, readers = python(out)
    sbom(client, LIBRARY, bundled=True)
    sbom(readers)
    sbom(web(out))
    sbom(java(out), LIBRARY)
    section = VERSION if f"\n## {VERSION} " in (ROOT / "CHANGELOG.md").read_text() else "Unreleased"
    (out / "release-notes.md").write_text(output("scripts/release-notes.sh", section) + "\n")
    (out / "SHA256SUMS").write_text("".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(out.iterdir())))
    if os.environ.get("RELEASE_KEY"):
        output("ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f", os.environ["RELEASE_KEY"], out / "SHA256SUMS")
    for path in sorted(out.iterdir()):
        if not path.name.endswith(".spdx.json"):
            print(f"release: {path.stat().st_size / 1e6:7.1f} MB  {path.name}", flush=True)


# MARK: Check

SUITES = ("bookworm", "trixie")
BASE = "ca-certificates,curl,python3-venv,nodejs,default-jre-headless"
# Starts `countersign dev`, sends an event with a token of its token server, and looks for the event in the list of stored events.
DEV = """
"$@" dev --data /tmp/dev --port $PORT --backend-port $BACKEND >/tmp/log 2>&1 &
token() { curl -s "http://127.0.0.1:$BACKEND/token?user=user-1" | sed 's/.*"token":"\\([^"]*\\)".*/\\1/'; }
for i in $(seq 600); do ! grep -q Stop: /tmp/log || break; sleep 0.1; done
key="$(sed -n 's/Write key: *//p' /tmp/log)"
curl -sS "http://127.0.0.1:$PORT/v1/batch" -H "X-Write-Key: $key" -H "Authorization: Bearer $(token)" \
    -d '{"batch":[{"type":"track","event":"A","messageId":"1","userId":"user-1"}]}'
"$@" event list dev --data /tmp/dev --verdict verified --json | grep -q user-1 || { cat /tmp/log; exit 1; }
"""
CLIENTS = {
    "wheel": """python3 -m venv /tmp/v; /tmp/v/bin/pip install -q --no-index /in/countersign-*.whl /in/countersign_consumer-*.whl
        /tmp/v/bin/python /in/first_event.py "$WRITE_KEY" "$TOKEN"
        /tmp/v/bin/python -c 'import os, countersign_consumer as c
assert next(iter(c.read_events(os.environ["GATEWAY"], "shop", os.environ["READER"]))).events'""",
    "npm": """mkdir -p /tmp/n/node_modules; tar -xzf /in/countersign-web-*.tgz -C /tmp/n/node_modules
        mv /tmp/n/node_modules/package /tmp/n/node_modules/countersign-web; cp /in/first.mjs /tmp/n; node /tmp/n/first.mjs""",
    "jar": """apt-get install -qq -y --no-install-recommends libcurl4 libsqlite3-0 libxml2 >/dev/null 2>&1
        java -cp "/in/countersign-$VERSION.jar:/in" FirstEvent "$WRITE_KEY" "$TOKEN" """,
}
# Node has no IndexedDB and no life cycle of a page, so the client keeps its events in memory. Node 18 has no global `crypto`.
NODE = """
globalThis.crypto ??= (await import('node:crypto')).webcrypto;
Object.assign(globalThis, { addEventListener() {}, indexedDB: undefined, localStorage: {}, document: { visibilityState: 'visible', addEventListener() {} } });
const { Countersign } = await import('countersign-web');
const client = new Countersign({ endpoint: process.env.GATEWAY, writeKey: process.env.WRITE_KEY, tokenProvider: async () => process.env.TOKEN });
client.identify('user-1');
await client.track('Order Completed', { total: 42.5 });
await client.flush();
process.exit(0);
"""

# The script of a page that delivers an event. The npm package is in an import map or bundled.
PAGE = """import { Countersign } from 'countersign-web';
const [endpoint, writeKey, token] = location.hash.slice(1).split('%20').map(decodeURIComponent);
const client = new Countersign({ endpoint, writeKey, tokenProvider: async () => token });
client.identify('user-1');
await client.track('Page Opened', {});
await client.flush();
document.title = 'flushed';
"""
MAP = '<script type="importmap">{"imports": {"countersign-web": "./package/src/index.js"}}</script>'


def base(suite):
    """Makes a Debian root with the interpreters of the clients and without compilers, or reuses it. Returns its path."""
    root = ROOT / f".build/release-roots/{suite}"
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        output("debootstrap", "--variant=minbase", f"--include={BASE}", suite, root, timeout=3600)
        (root / "complete").touch()
    for name in ("swift", "cc", "gcc", "clang", "countersign"):
        assert not (root / "usr/bin" / name).exists(), name
    return root


def inside(suite, files, script, environment):
    """Runs a script in a fresh overlay of a Debian root, with files in /in. Returns the seconds that the script took."""
    folder = workshop("/var/tmp/countersign-release-")
    for name in ("up/in", "work", "root"):
        (folder / name).mkdir(parents=True)
    for path in files:
        copy(path, folder / "up/in" / path.name)
    mounts = f"""set -e
mount -t overlay overlay -o lowerdir={base(suite)},upperdir={folder}/up,workdir={folder}/work {folder}/root
cd {folder}/root; cp /etc/resolv.conf etc/; mount -t proc proc proc; mount --rbind /dev dev
exec chroot . /bin/sh -euc "$0" countersign"""
    began = time.monotonic()
    try:
        output("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", mounts, script, timeout=900,
               env={"PATH": "/usr/bin:/usr/sbin:/bin:/sbin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive", "VERSION": VERSION,
                    **environment})
        return time.monotonic() - began
    finally:
        shutil.rmtree(folder)


def compare(out):
    """Builds the files again and compares the checksums. Then checks that a signature of SHA256SUMS is invalid for a changed list."""
    again, sums = STAGE.with_name("release-again"), (out / "SHA256SUMS").read_text()
    build(again)
    assert (again / "SHA256SUMS").read_text() == sums, f"{again} differs"
    print(f"release: two runs made the same {len(sums.splitlines())} files", flush=True)
    key, signers, signature = STAGE / "key", STAGE / "signers", again / "SHA256SUMS.sig"
    output("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", key)
    signature.unlink(missing_ok=True)
    output("ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f", key, again / "SHA256SUMS")
    signers.write_text(f"releases {key.with_suffix('.pub').read_text()}")
    verify = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", "releases", "-n", "file", "-s", signature]
    output(*verify, input=sums)
    assert subprocess.run(verify, input=sums + " ", text=True, capture_output=True).returncode, "the signature is valid for a changed SHA256SUMS"


def row(name, suite, seconds):
    print(f"release: {name:8} {suite:9} {seconds:6.1f} s from the file to the first event", flush=True)


def check_gateways(out):
    archives = list(out.glob("*-linux-x86_64.tar.gz"))
    for suite in SUITES:
        base(suite)
        ports = {"PORT": str(free_port()), "BACKEND": str(free_port())}
        row("deb", suite, inside(suite, out.glob("*.deb"), f"""apt-get install -qq -y --no-install-recommends /in/*.deb >/dev/null 2>&1
            set -- countersign {DEV}""", ports))
        row("archive", suite, inside(suite, archives, f"""tar -xzf /in/*.tar.gz -C /opt; cd /opt/countersign-*
            apt-get install -qq -y --no-install-recommends $(cat LIBRARIES) >/dev/null 2>&1
            set -- /opt/countersign-*/countersign {DEV}""", ports))
    row("image", "buildah", check_image(*out.glob("*-image-*.tar.gz")))


def check(out):
    if not (out / "SHA256SUMS").exists():
        build(out)
    output("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=out)
    output("lintian", "--allow-root", "--fail-on", "error", *out.glob("*.deb"), timeout=900)
    compare(out)
    check_gateways(out)
    check_clients(out)
    check_pages(*out.glob("*.tgz"))
    print(output("scripts/service-test.sh", *out.glob("*.deb"), timeout=1800))
    print(output("scripts/consumer-test.sh", "native", env={**os.environ, "ARCHIVE": str(*out.glob("*-source.tar.gz"))}, timeout=3600))


def check_clients(out):
    """Installs each client in a Debian root. Each must deliver an event to a gateway that requires tokens."""
    clients = [*out.glob("*.whl"), *out.glob("*.tgz"), out / f"countersign-{VERSION}.jar"]
    with Shop(STAGE / "program/countersign") as shop:
        shop.run("key", "add", "shop", shop.path("good", "public.pem"))
        shop.run("enforcement", "set", "shop", "required", "--yes")
        reader = shop.run("admin", "token", "create", "--name", "reader", "--scopes", "reader", "--app", "shop")
        variables = {"GATEWAY": shop.url, "WRITE_KEY": shop.write_key, "TOKEN": shop.token("user-1"), "READER": reader}
        for name in ("Python/first_event.py", "Java/FirstEvent.java"):
            path = copy(ROOT / "Examples" / name, shop.folder / Path(name).name)
            path.write_text(path.read_text().replace("http://127.0.0.1:8787", shop.url))
        output("javac", "--release", "11", "-cp", clients[-1], "-d", shop.folder, shop.folder / "FirstEvent.java")
        (shop.folder / "first.mjs").write_text(NODE)
        clients += [shop.folder / name for name in ("first_event.py", "FirstEvent.class", "first.mjs")]
        stored = 0
        for suite in SUITES:
            for name, script in CLIENTS.items():
                row(name, suite, inside(suite, clients, script, variables))
                stored += 1
                found = shop.run("event", "list", "shop", "--verdict", "verified", "--name", "Order Completed", "--json").splitlines()
                assert len(found) == stored, f"{name} on {suite}: {len(found)} events are stored"


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def check_pages(package):
    """Checks in Chromium that two pages deliver an event: one with the npm package in an import map, one with a bundle of it."""
    from playwright.sync_api import sync_playwright
    site = fresh("pages")
    output("tar", "-xzf", package, "-C", site)
    (site / "app.js").write_text(PAGE)
    (site / "import-map.html").write_text(MAP + '<script type="module" src="app.js"></script>')
    if shutil.which("esbuild"):
        output("esbuild", "--bundle", "--format=esm", "--alias:countersign-web=./package/src/index.js", "--outfile=bundle.js", "app.js", cwd=site)
        (site / "bundle.html").write_text('<script type="module" src="bundle.js"></script>')
    else:
        print("release: bundle: skipped, esbuild is not installed")
    files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=site))
    threading.Thread(target=files.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{files.server_port}"
    with Shop(STAGE / "program/countersign") as shop, sync_playwright() as playwright:
        shop.run("key", "add", "shop", shop.path("good", "public.pem"))
        shop.run("enforcement", "set", "shop", "required", "--yes")
        shop.run("app", "origins", "shop", origin)
        browser = playwright.chromium.launch(**chromium())
        for number, path in enumerate(sorted(site.glob("*.html")), 1):
            page = browser.new_page()
            page.goto(f"{origin}/{path.name}#{'%20'.join(map(urllib.parse.quote, (shop.url, shop.write_key, shop.token('user-1'))))}")
            page.wait_for_function("document.title == 'flushed'")
            found = shop.run("event", "list", "shop", "--verdict", "verified", "--name", "Page Opened", "--json").splitlines()
            assert len(found) == number, f"{path.stem}: {len(found)} events are stored"
            print(f"release: a page with {path.stem} delivers an event", flush=True)
    files.shutdown()


def check_image(package):
    """Runs the image's health check as its user, and stores an event. Returns the seconds until the event is stored."""
    store = fresh("containers")
    buildah = ["buildah", "--root", store / "root", "--runroot", store / "run", "--storage-driver", "vfs"]
    began, port, backend = time.monotonic(), free_port(), free_port()
    compressed, tar = package, STAGE / "image.tar"
    with gzip.open(compressed) as packed, open(tar, "wb") as target:
        shutil.copyfileobj(packed, target, 1 << 20)
    container = output(*buildah, "from", f"docker-archive:{tar}")
    run = [*buildah, "run", "--isolation", "chroot", container, "countersign"]
    process = subprocess.Popen([str(word) for word in (*run, "dev", "--data", "/data/dev", "--port", port, "--backend-port", backend)],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        key = next(line.split()[-1] for line in process.stdout if "Write key" in line)
        token = json.loads(output("curl", "-s", f"http://127.0.0.1:{backend}/token?user=user-1"))["token"]
        output("curl", "-sSf", f"http://127.0.0.1:{port}/v1/batch", "-H", f"X-Write-Key: {key}", "-H", f"Authorization: Bearer {token}",
               "-d", '{"batch":[{"type":"track","event":"A","messageId":"1","userId":"user-1"}]}')
        assert "user-1" in output(*run, "event", "list", "dev", "--data", "/data/dev", "--verdict", "verified", "--json")
        seconds = time.monotonic() - began
        output(*run, "self-check", "--server", f"http://127.0.0.1:{port}")
        status = Path(f"/proc/{children(process.pid)[-1]}/status").read_text()
        assert re.search(r"^Uid:\t8787\t", status, re.M), status
        return seconds
    finally:
        for child in reversed(children(process.pid)):
            os.kill(child, 15)
        process.wait(60)


def children(pid):
    """The ids of a process and its descendants."""
    found = [word for path in Path(f"/proc/{pid}/task").glob("*/children") for word in path.read_text().split()]
    return [pid, *(other for child in found for other in children(int(child)))]


def main(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m tools release", description=__doc__)
    parser.add_argument("part", nargs="?", choices=("build", "deb", "check"), default="build")
    parser.add_argument("--out", type=Path, default=ROOT / ".build/release-files")
    options = parser.parse_args(arguments)
    os.environ["SOURCE_DATE_EPOCH"] = output("git", "log", "-1", "--format=%ct")
    os.umask(0o022)
    if options.part == "deb":
        options.out.mkdir(parents=True, exist_ok=True)
        print(debian(program(), options.out))
    elif options.part == "build":
        build(options.out.absolute())
    else:
        check(options.out.absolute())
