"""The app of a scenario: a client of libcountersign in a process of its own, which can be killed.

Reads and writes lines of JSON. The first line opens the client: `{"mode", "configuration", "provider": true}`. Then
`{"id", "method", "arguments"}` is a call, and its result has the same `id`. `close` and `ping` are methods too.
`{"ask", "request"}` is a token request, and `{"answer", "token"}` its answer. `{"event"}` is an event of the client.
"""
import itertools
import json
import logging
import queue
import sys
import threading

from countersign._handle import CountersignError, Handle

_lock = threading.Lock()


def say(**members):
    with _lock:
        print(json.dumps(members), flush=True)


class Device(Handle):
    def __init__(self, mode, configuration, provider=False):
        self._serials = itertools.count(1)
        self._questions = {}
        silent = logging.Logger("silent", logging.CRITICAL)
        super().__init__(mode, configuration, logger=silent, provider=self._question if provider else None)

    def _question(self, request):
        serial = next(self._serials)
        answer = self._questions[serial] = queue.SimpleQueue()
        say(ask=serial, request=request)
        return answer.get()

    def _heard(self, event):
        say(event=event)

    def obey(self, line):
        if "answer" in line:
            self._questions.pop(line["answer"]).put(line["token"])
        elif line["method"] == "ping":
            say(id=line["id"], value=None)
        elif line["method"] == "close":
            self.close()
            say(id=line["id"], value=None)
        else:
            result = self._call(line["method"], **line["arguments"])
            result.add_done_callback(lambda done: self._tell(line["id"], done))

    @staticmethod
    def _tell(number, done):
        error = done.exception()
        if error is None:
            say(id=number, value=done.result())
        else:
            say(id=number, error=error.code if isinstance(error, CountersignError) else repr(error))


def main():
    device = Device(**json.loads(sys.stdin.readline()))
    say(id=0, value=None)
    for line in sys.stdin:
        device.obey(json.loads(line))


if __name__ == "__main__":
    main()
