"""Drives libcountersign through ctypes: a provider in Python, events, and every kind of call.

Usage: driver.py LIBRARY CONFIGURATION TOKEN (three times: a path, JSON, and a customer token)
Prints one JSON object with what came back.
"""

import ctypes
import json
import sys
import threading

library = ctypes.CDLL(sys.argv[1])
RESULT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
PROVIDER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)
library.countersign_open.restype = ctypes.c_void_p
library.countersign_open.argtypes = [
    ctypes.c_char_p, PROVIDER, RESULT, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
library.countersign_answer.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p]
library.countersign_call.argtypes = [
    ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, RESULT, ctypes.c_void_p]
library.countersign_close.argtypes = [ctypes.c_void_p, RESULT, ctypes.c_void_p]
library.countersign_free.argtypes = [ctypes.c_void_p]
library.countersign_version.restype = ctypes.c_char_p

events = []
asked = []
tokens = [sys.argv[3]]
main_thread = threading.get_ident()
off_main = []
client = None


@PROVIDER
def provider(_, number):
    asked.append(number)
    off_main.append(threading.get_ident() != main_thread)
    token = tokens[0]
    # Later, and from another thread.
    threading.Timer(0.05, lambda: library.countersign_answer(
        client, number, token.encode() if token else None)).start()


@RESULT
def event(_, text):
    events.append(json.loads(text))


def wait_for(start):
    done = threading.Event()
    box = []

    @RESULT
    def result(_, text):
        box.append(json.loads(text))
        done.set()

    start(result)
    assert done.wait(60), "no answer"
    return box[0]


def call(method, **arguments):
    return wait_for(lambda result: library.countersign_call(
        client, method.encode(), json.dumps(arguments).encode(), result, None))


def refuse(configuration, provider=PROVIDER(0)):
    error = ctypes.c_void_p()
    made = library.countersign_open(configuration, provider, event, None, ctypes.byref(error))
    assert not made
    text = ctypes.string_at(error.value).decode()
    library.countersign_free(error)
    return text


output = {
    "version": library.countersign_version().decode(),
    "no_json": refuse(b"nonsense"),
    "no_project": refuse(b"{}"),
    "no_provider": refuse(sys.argv[2].encode()),
}
output["refusal_events"] = [e["message"] for e in events if e["event"] == "log"]
client = library.countersign_open(sys.argv[2].encode(), provider, event, None, None)
assert client
output["identify"] = call("identifyCustomer", customerIds={"registered": "ada"}, properties={"city": "Bled"})
for number in range(10):
    call("trackEvent", eventType=f"event {number}", properties={"n": number, "emoji": "🙂", "ok": True})
call("trackCampaignClick", url="https://shop.example.com/?xnpe_cmp=abc")
output["flush"] = call("flush")
output["ids"] = call("customerIds")
output["city"] = call("fetchAttributes", attributes=[{"type": "property", "property": "city"}])
output["recommendations"] = call("fetchRecommendations", id="engine")
output["consents"] = call("fetchConsents")
output["in_app"] = call("fetchInAppMessages")
output["inbox"] = call("fetchAppInbox")
output["mark"] = call("markAppInboxAsRead", messageId="offer")
output["inbox_again"] = call("fetchAppInbox")
tokens[0] = None
output["no_token"] = call("fetchAppInbox")
tokens[0] = "not.a.token"
output["bad_token"] = call("fetchAppInbox")
output["self_check"] = call("sendSelfCheck", pushToken="push")
output["unknown"] = call("fly")
output["wrong"] = call("trackEvent", eventType=7)
output["anonymized"] = call("anonymize")
output["ids_after"] = call("customerIds")
output["snapshot"] = call("snapshot")
output["asked"] = len(asked)
output["all_off_main"] = all(off_main)
output["closed"] = wait_for(lambda result: library.countersign_close(client, result, None))
print(json.dumps(output))
