"""PostgreSQL servers, gateways on them, connections between them, networks and clocks, for scripts that kill, stop and cut them.

A server is an ordinary process in a folder of its own, also when root calls: then it runs as `nobody`.
"""

import glob
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

DATABASE = "countersign"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def program(name):
    """A program of PostgreSQL: in POSTGRESQL_BIN, else the newest that Debian has installed, else on PATH."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]), reverse=True)
    places = os.pathsep.join([os.environ.get("POSTGRESQL_BIN", ""), *folders, os.environ.get("PATH", "")])
    found = shutil.which(name, path=places)
    if not found:
        raise SystemExit(f"there is no {name}; install PostgreSQL (Debian: postgresql-15), or name its folder in POSTGRESQL_BIN")
    return found


def ordinary():
    """What makes Popen run a program as an ordinary user: PostgreSQL refuses root."""
    return {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


def workshop(prefix):
    """A folder for a run. Others may go through it: the server's folder is in it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    folder.chmod(0o711)
    return folder


def until(what, holds, seconds=60):
    """Waits until `holds()` is true; returns the seconds that it took."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > seconds:
            raise SystemExit(f"{what}: not within {seconds} s")
        time.sleep(0.02)
    return time.monotonic() - began


def is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


class Skipped(Exception):
    """Why a fault cannot be made on this machine."""


class Server:
    """A PostgreSQL server that trusts whoever connects from this machine, and a standby of one when it is given one."""

    SETTINGS = {"unix_socket_directories": "", "max_connections": 200, "shared_buffers": "64MB", "log_min_messages": "warning"}

    def __init__(self, folder, name="primary", addresses=("127.0.0.1",), primary=None, through=None):
        """A standby follows its primary, `through` the port of a wire if there is one."""
        self.folder, self.name, self.port = folder / name, name, free_port()
        self.process, self.parameters = None, ""
        self.settings = {**self.SETTINGS, "port": self.port, "listen_addresses": ",".join(addresses)}
        self.log = folder / f"{name}.log"
        self.folder.mkdir(mode=0o700)
        if ordinary():
            shutil.chown(self.folder, "nobody", "nogroup")
        if primary:
            self.run("pg_basebackup", "--pgdata", self.folder, "--write-recovery-conf", "--wal-method", "stream",
                     "--checkpoint", "fast", "--dbname", primary.url("postgres", user="postgres", port=through))
        else:
            self.run("initdb", "--pgdata", self.folder, "--username", "postgres", "--auth", "trust", "--encoding", "UTF8",
                     "--no-sync")
            with open(self.folder / "pg_hba.conf", "a") as file:
                file.write("host all all 10.213.0.0/16 trust\n")
        self.start()
        if not primary:
            # As an operator would make it: the role owns its database, and is nothing else.
            self.sql(f"CREATE ROLE {DATABASE} LOGIN", "postgres", "postgres")
            self.make(DATABASE)

    def secure(self):
        """From now on gateways need TLS and a password, which is in a file that `settings` names. The server starts anew."""
        folder = self.folder.parent
        key, certificate, password = self.folder / "server.key", folder / "database.pem", folder / "database-password"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=database", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], check=True, capture_output=True)
        if ordinary():
            shutil.chown(key, "nobody", "nogroup")
        password.touch(mode=0o600)
        password.write_text(secrets.token_hex(24) + "\n")
        self.sql(f"ALTER ROLE {DATABASE} PASSWORD '{password.read_text().strip()}'", "postgres")
        (self.folder / "pg_hba.conf").write_text(
            f"host all postgres 127.0.0.1/32 trust\nhostssl {DATABASE} {DATABASE} 127.0.0.1/32 scram-sha-256\n")
        self.settings |= {"ssl": "on", "ssl_cert_file": certificate, "ssl_key_file": key}
        self.parameters = f"?sslmode=verify-full&sslrootcert={certificate}"
        self.stop()
        self.start()

    def run(self, name, *arguments):
        done = subprocess.run([program(name), *map(str, arguments)], capture_output=True, text=True, cwd="/", **ordinary())
        if done.returncode:
            raise SystemExit(f"{name}: {done.stderr}")
        return done.stdout

    def start(self):
        """Starts it, again and again while what is left of the one that was killed is in the way."""
        flags = [word for setting in self.settings.items() for word in ("-c", "=".join(map(str, setting)))]
        for _ in range(200):
            with open(self.log, "a") as log:
                self.process = subprocess.Popen([program("postgres"), "-D", str(self.folder), *flags], stdout=log, stderr=log,
                                                cwd="/", **ordinary())
            while self.process.poll() is None:
                if self.answers():
                    return
                time.sleep(0.02)
            time.sleep(0.05)
        raise SystemExit(f"PostgreSQL does not start; see {self.log}")

    def answers(self):
        done = subprocess.run([program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False)
        return done.returncode == 0

    def kill(self):
        """kill -9 of the postmaster; what it has started ends by itself."""
        self.process.kill()
        self.process.wait()

    def kill_backend(self):
        """kill -9 of one process that works for a gateway: the server starts itself anew. Returns whether there was one."""
        pids = [row[0] for row in self.rows(f"SELECT pid FROM pg_stat_activity WHERE usename = '{DATABASE}'")]
        if pids:
            try:
                os.kill(int(random.choice(pids)), signal.SIGKILL)
            except ProcessLookupError:
                return False
        return bool(pids)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(timeout=60)

    def promote(self):
        """Makes a primary of a standby."""
        self.sql("SELECT pg_promote()", "postgres", "postgres")

    def make(self, database):
        self.sql(f"CREATE DATABASE {database} OWNER {DATABASE}", "postgres", "postgres")

    def url(self, database=DATABASE, user=DATABASE, address="127.0.0.1", port=None):
        parameters = self.parameters if user == DATABASE else ""
        return f"postgresql://{user}@{address}:{port or self.port}/{database}{parameters}"

    def sql(self, text, database=DATABASE, user="postgres"):
        """What psql prints: a line for each row, with tabs between the columns."""
        done = subprocess.run([program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-F", "\t", "-d", self.url(database, user),
                               "-c", text], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"psql: {done.stderr}")
        return done.stdout

    def rows(self, text, database=DATABASE):
        return [line.split("\t") for line in self.sql(text, database).splitlines()]


class Pooler:
    """pgbouncer before a server, with a session of the server for each that it is asked for."""

    def __init__(self, folder, server):
        self.binary = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if not self.binary:
            raise Skipped("pgbouncer is not installed")
        self.port, self.folder = free_port(), folder
        self.file = folder / "pgbouncer.ini"
        (folder / "users.txt").write_text(f'"{DATABASE}" ""\n')
        self.file.write_text(
            f"[databases]\n{DATABASE} = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
            f"listen_port = {self.port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {folder}/users.txt\n"
            "pool_mode = session\nmax_client_conn = 1000\ndefault_pool_size = 150\n")
        self.start()

    def start(self):
        with open(self.folder / "pgbouncer.log", "a") as log:
            self.process = subprocess.Popen([self.binary, str(self.file)], stdout=log, stderr=log, cwd="/", **ordinary())
        until("pgbouncer", lambda: is_open(self.port))

    def stop(self):
        self.process.kill()
        self.process.wait()


class Wire:
    """A connection between a gateway and its server as a process of its own, which can be stopped, and can begin to lose answers:
    of so many requests that reach the server it drops one answer and closes the connection, so that nobody knows what became
    of it."""

    def __init__(self, port, lose=0.0):
        self.port = free_port()
        self.process = subprocess.Popen([sys.executable, __file__, str(self.port), str(port), str(lose)])
        until("the wire", lambda: is_open(self.port))

    def cut(self):
        self.process.send_signal(signal.SIGSTOP)

    def mend(self):
        self.process.send_signal(signal.SIGCONT)

    def lose(self):
        self.process.send_signal(signal.SIGUSR1)

    def stop(self):
        self.process.kill()
        self.process.wait()


def carry(inside, to, lose, loses):
    """One connection of a wire, both ways."""
    outside = socket.create_connection(("127.0.0.1", to))
    losing = threading.Event()

    def pump(source, target, asks):
        try:
            while data := source.recv(65536):
                if asks and loses.is_set() and random.random() < lose:
                    losing.set()
                elif not asks and losing.is_set():
                    break
                target.sendall(data)
        except OSError:
            pass
        for end in (inside, outside):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    threading.Thread(target=pump, args=(inside, outside, True), daemon=True).start()
    threading.Thread(target=pump, args=(outside, inside, False), daemon=True).start()


def wire(port, to, lose):
    loses = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: loses.set())
    listener = socket.create_server(("127.0.0.1", port), backlog=100)
    while True:
        inside, _ = listener.accept()
        try:
            carry(inside, to, lose, loses)
        except OSError:
            inside.close()


class Gateway:
    """`countersign serve` on a database. It keeps its port when it is started again."""

    def __init__(self, binary, folder, name, database, environment=None, prefix=(), host="127.0.0.1"):
        self.binary, self.name, self.host, self.port = binary, name, host, free_port()
        self.log, self.prefix = folder / f"{name}.log", prefix
        self.environment = {**os.environ, **settings(folder, database), **(environment or {})}
        self.process = None

    def launch(self):
        """Starts it, and does not wait."""
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                [*self.prefix, self.binary, "serve", "--host", self.host, "--port", str(self.port), "--log-level", "warning"],
                stdout=subprocess.PIPE, stderr=log, text=True, env=self.environment)

    def started(self):
        """Whether it has come to listen; waits until it does or has ended."""
        return bool(self.process.stdout.readline().strip())

    def start(self):
        self.launch()
        if not self.started():
            raise SystemExit(f"the gateway does not start; see {self.log}")
        return self

    def kill(self):
        self.process.kill()
        return self.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        return code


class Namespace:
    """A network of its own, with one way to the devices and one to the database that can be taken away."""

    def __init__(self):
        if os.geteuid() != 0 or not shutil.which("ip"):
            raise Skipped("a network namespace needs root and the program ip")
        self.name = f"countersign-{os.getpid()}"
        self.devices, self.server = "10.213.1", "10.213.2"
        self.links = []
        self.ip("netns", "add", self.name)
        for number, net in ((1, self.devices), (2, self.server)):
            outside, inside = f"cs{os.getpid() % 100000}o{number}", f"cs{os.getpid() % 100000}i{number}"
            self.ip("link", "add", outside, "type", "veth", "peer", "name", inside)
            self.links.append(outside)
            self.ip("link", "set", inside, "netns", self.name)
            self.ip("addr", "add", f"{net}.1/30", "dev", outside)
            self.ip("link", "set", outside, "up")
            self.inside("ip", "addr", "add", f"{net}.2/30", "dev", inside)
            self.inside("ip", "link", "set", inside, "up")
        self.inside("ip", "link", "set", "lo", "up")

    def ip(self, *arguments):
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
        if done.returncode:
            raise Skipped(f"ip {' '.join(arguments)}: {done.stderr.strip()}")

    def inside(self, *arguments):
        self.ip("netns", "exec", self.name, *arguments)

    def cut(self):
        self.ip("link", "set", self.links[1], "down")

    def mend(self):
        self.ip("link", "set", self.links[1], "up")

    def remove(self):
        subprocess.run(["ip", "netns", "del", self.name], check=False)


def faketime(offset):
    """What a command begins with so that its clock is so many seconds off."""
    libraries = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    if not libraries:
        raise Skipped("libfaketime is not installed")
    # A program that is loaded together with the library loses its arguments; one that is started by such a program does not.
    return ("env", f"LD_PRELOAD={libraries[0]}", f"FAKETIME={offset:+d}", "FAKETIME_DONT_FAKE_MONOTONIC=1", "env")


def settings(folder, database):
    """The environment of a program that works on a database."""
    made = {"COUNTERSIGN_DATABASE": database, "COUNTERSIGN_DATA": str(folder / "data")}
    password = folder / "database-password"
    return {**made, "COUNTERSIGN_DATABASE_PASSWORD_FILE": str(password)} if password.exists() else made


def command(binary, folder, database, *arguments):
    """What a command of the command line prints."""
    done = subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **settings(folder, database)})
    if done.returncode:
        raise SystemExit(f"countersign {' '.join(arguments)}: {done.stderr}")
    return done.stdout.strip()


if __name__ == "__main__":
    wire(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
