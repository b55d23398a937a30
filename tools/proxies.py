"""Tests packaging/nginx.conf and packaging/haproxy.cfg in front of a gateway, and packaging/cluster in front of two, of
which one is killed. Only ports, paths, nginx's user, the logs and the operators' address (127.0.0.3) differ from the files."""

import contextlib
import getpass
import grp
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
from collections import Counter, defaultdict

from .common import ROOT, SYSTEM_PATH, certify, free_port, output, parse, until
from .gateway import Gateway
from .metrics import unpacked

CLIENT, OPERATOR = "127.0.0.2", "127.0.0.3"
FORBIDDEN = """/admin /admin/ /admin/api/setup //admin/api/setup /x/../admin/api/setup /%61dmin/api/setup /Admin/api/setup
    /admin;/api/setup /readyz /readyz/ //readyz /readyz?x /readyz/?x /%72eadyz /readyz%2F /metrics /metrics/ //metrics /metrics?x
    /metrics/?x /%6detrics /metrics%2F""".split()
# Regular expressions of the lines in which a file of packaging/cluster may differ from the file for one gateway.
DIFFERENCES = {"nginx.conf": "least_conn;|server 127", "haproxy.cfg": "balance|retries|option redispatch|default-server|server gateway"}

# Requests that parsers may read differently: templates, and the parts that replace PART. ~ is CR LF. HIDDEN is a request of SIZE bytes.
# It ends the body if the body has LONG bytes, and follows the body if the body has 5 bytes. The first case is valid.
POST, HOST = "POST PATH HTTP/1.1~HOST~", "Host: collect.example"
CORPUS = (
    ([POST + "PART~~0~~HIDDEN", "get PATH HTTP/1.1~HOST~PART~~0~~HIDDEN"], r"""CL: 5 | CL: LONG | CL: 5~CL: LONG | CL: LONG~CL: 5 | CL: 5, LONG
CL: LONG~CL: LONG | CL: LONG, LONG | CL: | CL: +LONG | CL: -5 | CL: 0LONG | CL: 0x5 | CL: 5\x20LONG | CL: LONG\x20\t | CL: 5\x00 | CL: 5;a
CL : LONG | CL\t: LONG | CL:~ LONG | CL: 5\nX: y | CL: 18446744073709551621 | CL: 5\rX: y | X: y\nCL: LONG | X: y\rCL: LONG | TE: chunked~CL: 5
CL: LONG~Connection: CL | CL: LONG~Expect: 100-continue | CL: LONG~Connection: Host, X-Forwarded-For | TE: chunked~Connection: TE~CL: LONG
TE: chunked~Expect: 100-continue | CL: LONG~Connection: Upgrade, HTTP2-Settings~Upgrade: h2c~HTTP2-Settings: AAAA | Content_Length: LONG
TE: chunked~Connection: Upgrade~Upgrade: websocket"""),
    ([POST + "PART~~0~~HIDDEN", POST + "CL: LONG~PART~~0~~HIDDEN", "POST PATH HTTP/1.0~HOST~Connection: keep-alive~PART~~0~~HIDDEN"],
     r"""TE: chunked | TE: Chunked | TE: xchunked | TE: identity | TE: chunked, identity | TE: identity, chunked | TE: gzip, chunked | TE: | TE
TE: chunked, chunked | TE: chunked;q=1 | TE: "chunked" | TE: chunked, | TE:\tchunked\t | TE: \x0bchunked | TE: chunked\x00 | TE: chun\x00ked
TE : chunked | TE\t: chunked | TE:~ chunked | \x20TE: chunked | Transfer_Encoding: chunked | X: y~ TE: chunked | X: y\nTE: chunked
X: y\rTE: chunked | TE: chunked\nX: y | TE: chunked\rX: y | TE: chunked~TE: identity | TE: identity~TE: chunked | TE: chunked~TE: chunked"""),
    ([POST + "TE: chunked~~PART~HIDDEN~0~~"], r"""SIZE | 0xSIZE | +SIZE | -SIZE | 000000000000000000SIZE | \x20SIZE | SIZE\x20 | SIZE\t | -1 | 0
SIZE\x00 | ~SIZE | SIZE\r | SIZE\n | SIZE;a=b | SIZE;a="b;c" | SIZE;a="~" | SIZE;a="\n" | SIZE;a\rb | SIZE;a\nb | SIZE;\n | SIZE; | SIZE ;a
SIZE;a\x00 | 100000000000000SIZE | FFFFFFFFFFFFFFFF | 8000000000000000 | 0~X: y"""),
    ([POST + "TE: chunked~~SIZE~HIDDENPART"], r"""0~~ | \n0~~ | \r0~~ | XX0~~ | ~0\n\n | ~0~\n | ~0\n~ | ~0000000000000000000~~ | ~0;a="~~ | ~-0~~
~0~CL: 5~~ | ~0~TE: chunked~~ | ~0~ folded~~ | ~0~X: y\n~ | ~0~X: \x00~~ | ~0~X : y~~ | ~0~HIDDEN"""),
    (["GET PATH HTTP/1.1~PART~~HIDDEN"], r"""HOST~Host: other.example | HOST~HOST | HOST/x | HOST x | Host: a@collect.example | Host: | X: y
\x20HOST | HOST\x00 | HOST~CL: 4~~body | HOST~Connection: close, Host"""),
    (["PART~HOST~~HIDDEN"], r"""GET http://other.examplePATH HTTP/1.1 | GET http://collect.examplePATH HTTP/1.1 | GET PATH x HTTP/1.1 | GET PATH
GET  PATH HTTP/1.1 | GET\tPATH\tHTTP/1.1 | GET PATH\x00 HTTP/1.1 | GET PATH#x HTTP/1.1 | GET PATH?\xff HTTP/1.1 | GET xPATH HTTP/1.1
~GET PATH HTTP/1.1 | ~~GET PATH HTTP/1.1 | \nGET PATH HTTP/1.1 | \x20GET PATH HTTP/1.1 | GET PATH HTTP/1.1\n | GET PATH HTTP/1.2
GET PATH HTTP/2.0 | GET PATH http/1.1 | PRI * HTTP/2.0~~SM~~ | OPTIONS * HTTP/1.1 | CONNECT PATH HTTP/1.1 | get PATH HTTP/1.1"""))


class Front:
    """A proxy with one of the packaged configurations."""

    def __init__(self, gateway, second):
        self.gateway, self.folder, self.second, self.port = gateway, gateway.folder, second, free_port()
        self.is_running = False

    def configure(self, source):
        text = (source / self.file).read_text()
        for old, new in {"127.0.0.1:8787": f"127.0.0.1:{self.gateway.port}", "127.0.0.1:8797": f"127.0.0.1:{self.second.port}",
                         "127.0.0.0/8": f"{OPERATOR}/32", **self.changes()}.items():
            text = text.replace(old, new)
        (self.folder / self.file).write_text(text)
        self.check()

    def connect(self, client=CLIENT):
        plain = socket.create_connection(("127.0.0.1", self.port), 60, (client, 0))
        return ssl.create_default_context(cafile=self.folder / "collect.pem").wrap_socket(plain, server_hostname="collect.example")

    def ask(self, path, *options, client=CLIENT):
        """Sends a request with curl from the address `client`. Returns the status, and curl's output with the HTTP version and status."""
        done = subprocess.run(["curl", "-sS", "--path-as-is", "--interface", client, "--cacert", self.folder / "collect.pem", "--connect-to",
                               f"collect.example:443:127.0.0.1:{self.port}", "-w", "\n%{http_version} %{http_code}", *options,
                               f"https://collect.example{path}"], capture_output=True, text=True, timeout=60)
        text, _, last = done.stdout.rpartition("\n")
        return int(last.split()[1]) if last else 0, f"{text} {last}"


class Nginx(Front):
    name, file = "nginx", "nginx.conf"

    def changes(self):
        group = grp.getgrgid(os.getgid()).gr_name
        # The default folders of temporary files in Debian's nginx are writable only for www-data.
        temporary = "".join(f"    {kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        return {"listen 443": f"listen {self.port}", "/etc/ssl/collect/": f"{self.folder}/", "/run/nginx.pid": f"{self.folder}/nginx.pid",
                "/var/log/nginx/error.log": f"{self.folder}/nginx.log", "user www-data;": f"user {getpass.getuser()} {group};",
                "http {\n": "http {\n" + temporary,
                "access_log off;": f"log_format sent '$request $upstream_addr'; access_log {self.folder}/nginx.log sent;"}

    def call(self, *more):
        return output("nginx", "-e", self.folder / "nginx.log", "-p", self.folder, "-c", self.folder / self.file, *more)

    def check(self):
        self.call("-t")

    def start(self):
        self.call()

    def reload(self):
        self.call("-s", "reload")

    def stop(self):
        self.call("-s", "stop")


class HAProxy(Front):
    name, file = "haproxy", "haproxy.cfg"

    def changes(self):
        return {"bind :443": f"bind :{self.port}", "/etc/haproxy/collect.pem": f"{self.folder}/both.pem",
                "option dontlog-normal": 'log-format "%r %si:%sp"', "raw local0 warning": "raw local0"}

    def check(self):
        output("haproxy", "-c", "-f", self.folder / self.file)

    def start(self):
        with open(self.folder / "haproxy.log", "w") as log:
            self.process = subprocess.Popen(["haproxy", "-W", "-f", self.folder / self.file], stdout=log, stderr=log)

    def reload(self):
        self.process.send_signal(signal.SIGUSR2)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def logged(gateway, identifier):
    """Waits for the log line of a request id. The gateway may write it after the response."""
    until(f"a log line of {identifier}", lambda: f'"{identifier}"' in gateway.log.read_text(), 10)
    return next(line for line in gateway.log.read_text().splitlines() if f'"{identifier}"' in line)


def signed(front, key, token):
    """Checks that the proxy passes signed events, request ids, client addresses and rejections, limits bodies, and reloads without losses."""
    gateway, name = front.gateway, front.name
    headers = ("-H", f"X-Write-Key: {key}", "-H", f"Authorization: Bearer {token}")

    def body(*identifiers, **more):
        file = gateway.folder / "body"
        file.write_text(json.dumps({"batch": [{"type": "track", "messageId": f"{name}-{one}", "userId": "user-1", "event": "Seen", **more}
                                              for one in identifiers]}))
        return "--data-binary", f"@{file}"

    status, said = front.ask("/v1/batch", "--http2", *headers, "-H", f"X-Request-Id: trail-{name}", "-H", "X-Forwarded-For: 203.0.113.9",
                             *body("1"), "-i")
    assert '"accepted":1' in said and said.endswith(" 2 200") and f"x-request-id: trail-{name}" in said.lower(), said
    # The gateway logs the address that the proxy saw, not the client's own X-Forwarded-For.
    assert f'"client":"{CLIENT}"' in logged(gateway, f"trail-{name}")
    # For a request without an id the proxy makes one, and the gateway uses it.
    said = front.ask("/v1/batch", *headers, *body("1"), "-i")[1]
    logged(gateway, re.search(r"x-request-id: ([\w.-]+)", said, re.I)[1])
    status, said = front.ask("/v1/batch", *headers[:2], *body("1"))
    assert status == 401 and "MISSING_TOKEN" in said, said
    # A body of 3 MB is accepted, a body of 5 MB is rejected.
    large = {"event": "Large", "properties": {"text": "x" * 300_000}}
    assert front.ask("/v1/batch", *headers, *body(*(f"large-{number}" for number in range(10)), **large))[0] == 200
    huge = gateway.folder / "huge"
    huge.write_bytes(bytes(5_000_000))
    assert front.ask("/v1/batch", *headers[:2], "-H", "Expect:", "--data-binary", f"@{huge}")[0] == 413
    # Reloading the proxy's configuration during requests loses no request.
    for number in range(1, 61):
        status, said = front.ask("/v1/batch", *headers, *body(f"reload-{number}"))
        assert status == 200, f"{name}: request {number} around a reload: {said}"
        if number in (20, 40):
            front.reload()
    stored = gateway.rows("SELECT count(*) FROM event WHERE message_id LIKE ?", f"{name}-%")[0][0]
    assert stored == 71, f"{name}: {stored} events are stored"


def closed(front, bearer):
    """Checks that the proxy denies operators' paths to clients, does not buffer the live view, and holds back incomplete bodies."""
    for path in FORBIDDEN:
        status, _ = front.ask(path, "-o", "/dev/null")
        assert status in (400, 403, 404), f"{front.name}: {path} from outside: {status}"
    assert front.ask("/admin/", "-o", "/dev/null", client=OPERATOR)[0] == 200
    live = front.ask("/admin/api/live", "-N", "--max-time", "3", "-H", f"Authorization: {bearer['Authorization']}", client=OPERATOR)[1]
    assert "event: sampling\n" in live, f"{front.name} buffers the live view: {live[:200]}"
    held = [front.connect(f"127.0.4.{1 + number % 4}") for number in range(100)]
    for one in held:
        one.sendall(b"POST /v1/batch HTTP/1.1\r\nHost: collect.example\r\nContent-Length: 60000\r\n\r\n" + b" " * 40000)
    for _ in range(3):
        time.sleep(0.3)
        # Not from 127.0.0.1: main() checks that the log has no request with the proxies' address.
        direct = http.client.HTTPConnection("127.0.0.1", front.gateway.port, timeout=10, source_address=("127.0.0.5", 0))
        direct.request("GET", "/metrics")
        connections = float(re.search(r"^countersign_connections (\S+)", direct.getresponse().read().decode(), re.M)[1])
        assert connections <= 30, f"{front.name}: the gateway has {connections:.0f} connections"
    for one in held:
        one.close()


def framing(fronts, gateway):
    """Checks that the gateway reads only requests that the proxies forward as such. Otherwise a body could hide a request from a proxy."""
    cases = {}
    all_parts = [(template, part) for templates, parts in CORPUS for template in templates for part in re.split(r" \| |\n", parts)]
    for front in fronts:
        for number, (template, part) in enumerate(all_parts):
            case = f"{front.name}-{number:03}"
            hidden, cases[case] = f"GET /hidden-{case} HTTP/1.1\r\n{HOST}\r\n\r\n", template.replace("PART", part)
            text = cases[case] + f"GET /last-{case} HTTP/1.1~HOST~Connection: close~~"
            for word, value in {"HIDDEN": hidden, "LONG": len(hidden) + 5, "SIZE": f"{len(hidden):x}", "PATH": f"/sent-{case}", "HOST": HOST,
                                "CL": "Content-Length", "TE": "Transfer-Encoding", "~": "\r\n"}.items():
                text = text.replace(word, str(value))
            with front.connect() as connection, contextlib.suppress(ConnectionError, ssl.SSLError):
                connection.sendall(text.encode().decode("unicode_escape").encode("latin-1"))
                while connection.recv(65536):
                    pass

    def requests(text, pattern):
        """The requests in lines of a log, by case. A request without a path belongs to the case of the request before it."""
        found, case = defaultdict(list), ""
        for line in re.findall(pattern, text, re.M):
            kind, case = (re.findall(r"/(sent|hidden|last)-(\w+-\d+)", line) or [("other", case)])[0]
            found[case].append(kind)
        return found

    def differences():
        forwarded = requests("".join((front.folder / f"{front.name}.log").read_text() for front in fronts), rf"^.* 127\.0\.0\.1:{gateway.port}$")
        return [f"{case}, {cases[case]}: forwarded {forwarded[case]}, read {read}" for case, read in seen.items()
                if case in cases and Counter(read) - Counter(forwarded[case])]

    fronts[0].ask("/end", "-H", "X-Request-Id: end")
    logged(gateway, "end")
    seen = requests(gateway.log.read_text(), r'^.*"message":"request".*"path":"(?!/end").*$')
    # A proxy may log a request after it has sent the response.
    until("\n".join(differences()), lambda: not differences(), 10)
    assert all(seen[f"{front.name}-000"] == ["sent", "hidden", "last"] for front in fronts), seen
    print(f"proxies: the gateway reads only what the proxies forward of {len(all_parts)} hostile requests")


def cluster(fronts, gateway, second):
    """Runs both proxies in front of two gateways. No request fails after one gateway was killed."""
    for front in fronts:
        lines = [set((folder / front.file).read_text().splitlines()) for folder in (ROOT / "packaging", ROOT / "packaging/cluster")]
        different = [line for line in lines[0] ^ lines[1] if not re.match(rf"\s*(#|$)|.*({DIFFERENCES[front.file]})", line)]
        assert not different, f"packaging/cluster/{front.file} differs in {different}"
        front.configure(ROOT / "packaging/cluster")
        front.reload()
    second.start()
    time.sleep(3)  # Both proxies check the gateways' health each second.
    for path in ("one-of-two", "the-other-was-killed"):
        for front in fronts:
            # Unknown paths, because the gateway logs a path only if it does not exist.
            statuses = {front.ask(f"/{path}-{front.name}", "-o", "/dev/null")[0] for _ in range(20)}
            assert statuses == {404}, f"{front.name}: {path}: {statuses}"
        if second.is_running:
            for front in fronts:
                for one in (gateway, second):
                    assert f"/{path}-{front.name}" in one.log.read_text(), f"{front.name} sent no request to {one.name}"
            second.kill()


def main(arguments):
    program = parse(arguments, "proxies", __doc__).countersign
    trusted = ("--trusted-proxies", "127.0.0.1")
    with Gateway(program, flags=trusted, level="info") as gateway, Gateway(program, name="second", flags=trusted, level="info") as second:
        os.environ["PATH"] = SYSTEM_PATH
        unpacked(gateway.folder, ["nginx", "haproxy"], "nginx", "haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1")
        key = gateway.app(enforcement="required")
        gateway.pairs("good").run("key", "add", "shop", gateway.path("good", "public.pem"))
        token, bearer = gateway.token("user-1"), gateway.bearer("proxies")
        certificate, private = certify(gateway.folder, "collect", "DNS:collect.example")
        for name, text in {"fullchain.pem": certificate.read_text(), "key.pem": private.read_text(),
                           "both.pem": certificate.read_text() + private.read_text()}.items():
            (gateway.folder / name).write_text(text)
        for folder in ("var/lib/nginx", "var/log/nginx"):
            (gateway.folder / folder).mkdir(parents=True)
        gateway.start()
        fronts = [Nginx(gateway, second), HAProxy(gateway, second)]
        try:
            for front in fronts:
                front.configure(ROOT / "packaging")
                front.start()
                front.is_running = True
                until(front.name, lambda: front.ask("/livez")[0] == 200)
                signed(front, key, token)
                closed(front, bearer)
                print(f"proxies: {front.name} passes signed events, ids, addresses and rejections; reloads lose nothing", flush=True)
            framing(fronts, gateway)
            cluster(fronts, gateway, second)
        finally:
            for front in [front for front in fronts if front.is_running]:
                front.stop()
        # The gateway does not log HAProxy's health checks at this level. All other requests that it can read must have the client's address.
        assert not re.search('"client":"127.0.0.1"(?!,"code":"invalid_framing")', gateway.log.read_text()), "the log has a proxy's address"
    print("proxies: no request fails after one of two gateways was killed")
