"""PostgreSQL servers that can be killed and promoted, pgbouncer, and a runner of commands that gives each a temporary server.

A server has its own folder. If root starts a server, it runs as an unprivileged user.
"""

import argparse
import glob
import os
import random
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from .common import SYSTEM_PATH, Skipped, certify, free_port, installed, is_open, output, until

NAME = "countersign"


def program(name):
    """The path of a program of PostgreSQL: in POSTGRESQL_BIN, else in Debian's newest version, else in PATH."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]), reverse=True)
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("POSTGRESQL_BIN", ""), *folders, SYSTEM_PATH]))
    if not found:
        raise Skipped(f"{name} is not installed (package postgresql)")
    return found


def ordinary():
    """Arguments of Popen that start a program as an unprivileged user, because PostgreSQL does not run as root."""
    return {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


class PostgreSQL:
    """A server that trusts connections from this machine, or a standby of such a server."""

    SETTINGS = {"unix_socket_directories": "", "max_connections": 200, "shared_buffers": "64MB", "log_min_messages": "warning"}

    def __init__(self, folder, name="primary", addresses=("127.0.0.1",), primary=None, through=None,
                 settings=None, locale=()):
        """With `primary`, the server is a standby of that server. `through` is the port of a proxy between the two."""
        self.folder, self.name, self.port = folder / name, name, free_port()
        self.process, self.parameters = None, ""
        self.settings = {**self.SETTINGS, "port": self.port, "listen_addresses": ",".join(addresses), **(settings or {})}
        self.log = folder / f"{name}.log"
        self.folder.mkdir(mode=0o700)
        if ordinary():
            shutil.chown(self.folder, "nobody", "nogroup")
        if primary:
            self.run("pg_basebackup", "--pgdata", self.folder, "--write-recovery-conf", "--wal-method", "stream",
                     "--checkpoint", "fast", "--dbname", primary.url("postgres", user="postgres", port=through))
        else:
            self.run("initdb", "--pgdata", self.folder, "--username", "postgres", "--auth", "trust", "--encoding", "UTF8",
                     "--no-sync", *locale)
            with open(self.folder / "pg_hba.conf", "a") as file:
                file.write("host all all 10.213.0.0/16 trust\n")
        self.start()
        if not primary:
            # The role owns its database and has no other right.
            self.sql(f"CREATE ROLE {NAME} LOGIN", "postgres")
            self.make(NAME)

    def secure(self):
        """Restarts the server with TLS and password authentication. Gateways get the password by gateway.storage."""
        certificate, key = certify(self.folder.parent, "database")
        password = self.folder.parent / "database-password"
        if ordinary():
            shutil.chown(key, "nobody", "nogroup")
        password.touch(mode=0o600)
        password.write_text(secrets.token_hex(24) + "\n")
        self.sql(f"ALTER ROLE {NAME} PASSWORD '{password.read_text().strip()}'", "postgres")
        (self.folder / "pg_hba.conf").write_text(
            f"host all postgres 127.0.0.1/32 trust\nhostssl {NAME} {NAME} 127.0.0.1/32 scram-sha-256\n")
        self.settings |= {"ssl": "on", "ssl_cert_file": certificate, "ssl_key_file": key}
        self.parameters = f"?sslmode=verify-full&sslrootcert={certificate}"
        self.stop()
        self.start()

    def run(self, name, *arguments):
        return output(program(name), *arguments, cwd="/", **ordinary())

    def start(self):
        """Starts the server. Retries while processes of a killed server still hold its files."""
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
        """kill -9 of the postmaster; its other processes end by themselves."""
        self.process.kill()
        self.process.wait()

    def kill_backend(self):
        """kill -9 of a gateway's backend, so that PostgreSQL restarts all backends. Returns whether one was killed."""
        pids = [row[0] for row in self.rows(f"SELECT pid FROM pg_stat_activity WHERE usename = '{NAME}'")]
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
        self.sql("SELECT pg_promote()", "postgres")

    def make(self, database):
        self.sql(f"CREATE DATABASE {database} OWNER {NAME}", "postgres")

    def url(self, database=NAME, user=NAME, address="127.0.0.1", port=None):
        parameters = self.parameters if user == NAME else ""
        return f"postgresql://{user}@{address}:{port or self.port}/{database}{parameters}"

    def sql(self, text, database=NAME):
        """The output of psql: a line for each row, with tabs between the columns."""
        return output(program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-F", "\t", "-d", self.url(database, "postgres"),
                      "-c", text)

    def rows(self, text, database=NAME):
        return [line.split("\t") for line in self.sql(text, database).splitlines()]


class Pooler:
    """pgbouncer in front of a server, in session pooling mode."""

    def __init__(self, folder, server):
        self.binary = installed("pgbouncer", "pgbouncer")
        self.port, self.folder = free_port(), folder
        self.file = folder / "pgbouncer.ini"
        (folder / "users.txt").write_text(f'"{NAME}" ""\n')
        self.file.write_text(
            f"[databases]\n{NAME} = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
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


def main(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/postgresql.sh run", description="Runs a command with a temporary PostgreSQL server. COUNTERSIGN_TEST_POSTGRESQL is "
        "the URL of a superuser, COUNTERSIGN_TEST_POSTGRESQL_FOLDER the server's folder.")
    parser.add_argument("--fast", action="store_true", help="without flushes to the disk and without autovacuum")
    parser.add_argument("--max-connections", type=int, default=100)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    if arguments[:1] != ["run"]:
        parser.error("usage: scripts/postgresql.sh run [OPTION]... COMMAND...")
    start = 1
    while start < len(arguments) and arguments[start].startswith("--"):
        start += 1 if arguments[start] == "--fast" else 2
    options, command = parser.parse_args(arguments[1:start]), arguments[start:]
    # Short, because the path of a Unix socket has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="countersign-pg.", dir=os.environ.get("POSTGRESQL_TMPDIR", "/tmp")))
    folder.chmod(0o711)
    is_safe = "off" if options.fast else "on"
    settings = {"unix_socket_directories": folder, "max_connections": options.max_connections, "fsync": is_safe, "full_page_writes": is_safe,
                "autovacuum": is_safe, "max_wal_size": "4GB", "shared_buffers": "128MB"}
    if ordinary():
        shutil.chown(folder, "nobody", "nogroup")
    server = child = None

    def interrupted(number, _):
        if child:
            child.send_signal(number)
        raise SystemExit(128 + number)

    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
    try:
        server = PostgreSQL(folder, "data", settings=settings | dict(one.split("=", 1) for one in options.set), locale=("--locale", "C"))
        server.sql(f"ALTER ROLE {NAME} SUPERUSER", "postgres")
        child = subprocess.Popen(command, env={
            **os.environ, "COUNTERSIGN_TEST_POSTGRESQL": server.url("postgres"), "COUNTERSIGN_TEST_POSTGRESQL_FOLDER": str(folder)})
        return child.wait()
    finally:
        if child:
            child.wait()
        if server:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
