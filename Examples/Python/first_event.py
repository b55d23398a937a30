import sys

import countersign

write_key, token = sys.argv[1:]  # the provider asks your backend, which signs a token for the user
with countersign.Client("http://127.0.0.1:8787", write_key, token_provider=lambda request: token) as client:
    client.identify("user-1")
    client.track("Order Completed", {"total": 42.5}).result()  # on disk: survives a crash
    print(client.flush())
