"""Records until the process is killed, and prints the numbers of stored events.

usage: record.py FOLDER MODE NUMBER. NUMBER is part of the events' names; `send` sends the remaining events instead.
"""
import os
import sys

import countersign

folder, mode, number = sys.argv[1:]
stand = {name: os.environ[f"STAND_{name}"] for name in ("ENDPOINT", "WRITE_KEY", "ADA", "REFRESH", "PROJECT", "PROJECT_KEY")}
if mode == "signed_user":
    client = countersign.Client(stand["ENDPOINT"], stand["WRITE_KEY"], data_directory=folder)
    client.change_user("ada", stand["ADA"])
elif mode == "access_token":
    client = countersign.LocationClient(
        data_directory=folder, http={"url": f"{stand['ENDPOINT']}/api/locations", "batchSync": True},
        authorization={"refreshUrl": f"{stand['ENDPOINT']}/api/refresh_token", "refreshToken": stand["REFRESH"],
                       "refreshPayload": {"refresh_token": "{refreshToken}"}})
else:
    client = countersign.BloomreachClient(stand["PROJECT"], stand["PROJECT_KEY"], stand["ENDPOINT"], data_directory=folder)

if number == "send":
    with client:
        client.sync() if mode == "access_token" else client.flush()
        queued = client.snapshot()["queued"]
    sys.exit(f"{queued} events are left" if queued else 0)


def record(name):
    """Records an event. Returns a function that waits until the event is on disk."""
    if mode == "signed_user":
        return client.track(name).result
    if mode == "access_token":
        return client.insert({"coords": {"latitude": 46.05, "longitude": 14.51}, "uuid": name}).result
    client.track_event(name)
    return lambda: None


event = 0
while True:
    waits = [record(f"kill {number} {event + offset}") for offset in range(5)]
    for wait in waits:
        wait()
    # In Bloomreach's mode a result means that the event is in memory. It is on disk once `unsaved` is 0.
    if mode != "bloomreach" or client.snapshot()["unsaved"] == 0:
        print(*range(event, event + 5), sep="\n", flush=True)
    event += 5
