#!/usr/bin/env python3
"""Serves .build/docs/site on a free port of this machine, opens a browser, and goes on until Ctrl-C."""

import functools
import http.server
import pathlib
import webbrowser

SITE = pathlib.Path(__file__).resolve().parent.parent / ".build/docs/site"


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=SITE)) as server:
    url = f"http://127.0.0.1:{server.server_port}/"
    print(f"{url}   (Ctrl-C ends it)", flush=True)
    webbrowser.open(url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
