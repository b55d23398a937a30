"""Fault injection: proxies that stall, close or lose responses, network namespaces whose links can be cut, and wrong clocks."""

import glob
import os
import shutil
import socket
import subprocess
import threading

from .common import DICE, Skipped


class Proxy:
    """A TCP proxy before a port. `stall` holds all bytes and keeps the connections; `cut` closes all connections and also new ones;
    `mend` ends both. After `lose`, a share `loss` of the requests gets no response, and the connection is closed."""

    def __init__(self, target, loss=0.0):
        self.target, self.loss, self.loses, self.lost, self.is_cut = target, loss, False, 0, False
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.flowing, self.connections = threading.Event(), set()
        self.flowing.set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            self.flowing.wait()
            try:
                far = None if self.is_cut else socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                far = None
            if not far:
                near.close()
                continue
            self.connections |= {near, far}
            losing = threading.Event()
            for one, other, asks in ((near, far, True), (far, near, False)):
                threading.Thread(target=self.relay, args=(one, other, asks, losing), daemon=True).start()

    def relay(self, source, destination, asks, losing):
        try:
            while data := source.recv(65536):
                self.flowing.wait()
                if asks and self.loses and DICE.random() < self.loss:
                    self.lost += 1
                    losing.set()
                elif not asks and losing.is_set():
                    break
                destination.sendall(data)
        except OSError:
            pass
        self.close(source, destination)

    def close(self, *ends):
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            self.connections.discard(end)

    def lose(self):
        self.loses = True

    def stall(self):
        self.flowing.clear()

    def cut(self):
        self.is_cut = True
        self.close(*list(self.connections))

    def mend(self):
        self.is_cut = False
        self.flowing.set()

    def stop(self):
        self.listener.close()
        self.mend()
        self.cut()


class Namespace:
    """A network namespace with a link to the devices and a link to the database. `stall` cuts the link to the database."""

    def __init__(self):
        if os.geteuid() != 0 or not shutil.which("ip"):
            raise Skipped("a network namespace needs root and the program ip")
        self.name = f"countersign-{os.getpid()}"
        self.devices, self.server = "10.213.1", "10.213.2"
        self.links = []
        self.ip("netns", "add", self.name)
        for number, net in ((1, self.devices), (2, self.server)):
            outside, inside = (f"cs{os.getpid() % 100000}{side}{number}" for side in "oi")
            self.ip("link", "add", outside, "type", "veth", "peer", "name", inside)
            self.links.append(outside)
            self.ip("link", "set", inside, "netns", self.name)
            self.ip("addr", "add", f"{net}.1/30", "dev", outside)
            self.ip("link", "set", outside, "up")
            self.inside("addr", "add", f"{net}.2/30", "dev", inside)
            self.inside("link", "set", inside, "up")
        self.inside("link", "set", "lo", "up")

    def ip(self, *arguments):
        done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
        if done.returncode:
            raise Skipped(f"ip {' '.join(arguments)}: {done.stderr.strip()}")

    def inside(self, *arguments):
        self.ip("netns", "exec", self.name, "ip", *arguments)

    def stall(self):
        self.ip("link", "set", self.links[1], "down")

    def mend(self):
        self.ip("link", "set", self.links[1], "up")

    def remove(self):
        subprocess.run(["ip", "netns", "del", self.name], check=False)


def faketime(specification):
    """The prefix of a command that shifts its clock, such as by `+3600`. The monotonic clock and pauses do not change."""
    libraries = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    if not libraries:
        raise Skipped("libfaketime is not installed")
    # libfaketime changes the environment of the first program that loads it, and Swift's runtime finds a program's arguments
    # next to its environment. So the first program is a second `env`, and the Swift program starts unchanged.
    return ("env", f"LD_PRELOAD={libraries[0]}", f"FAKETIME={specification}", "FAKETIME_DONT_FAKE_MONOTONIC=1", "env")
