"""Records until it is killed and prints what is stored; with `send` it sends what is left.

usage: record.py FOLDER NUMBER
"""
import os
import sys

import countersign

folder, number = sys.argv[1:]
client = countersign.Client(os.environ["STAND_ENDPOINT"], os.environ["STAND_WRITE_KEY"], data_directory=folder)
client.change_user("ada", os.environ["STAND_ADA"])
if number == "send":
    with client:
        result = client.flush()
    sys.exit(0 if result.queued == 0 else f"{result}")
event = 0
while True:
    futures = [client.track(f"kill {number} {event + offset}") for offset in range(5)]
    for future in futures:
        future.result()
        print(event, flush=True)
        event += 1
