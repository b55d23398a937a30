"""Tests a gateway that follows the keys of an OpenID provider (oidc-provider-mock) over TLS, with ID tokens of that provider."""

import json
import logging
import ssl
import subprocess
import threading
import time
import urllib.parse

import httpx
import werkzeug.serving
from oidc_provider_mock import User, app

from .common import Skipped, check, free_port, parse
from .gateway import Gateway

CLAIM = "https://example.com/uid"


def provider(folder):
    """Starts a provider with a self-signed certificate. Returns its issuer URL."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost", "-keyout", folder / "tls.key", "-out", folder / "tls.pem"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.pem", folder / "tls.key")
    port = free_port()
    users = [User(sub=f"sub-{name}", claims={CLAIM: name}) for name in ("ada", "bob")]
    server = werkzeug.serving.make_server("localhost", port, app(user_claims=users), threaded=True, ssl_context=context)
    logging.getLogger("werkzeug").setLevel("ERROR")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"https://localhost:{port}"


def id_token(issuer, folder, user, client):
    """Signs a user in with the authorization code flow. Returns the ID token."""
    with httpx.Client(verify=ssl.create_default_context(cafile=folder / "tls.pem")) as http:
        found = http.get(issuer + "/.well-known/openid-configuration").json()
        asked = {"client_id": client, "redirect_uri": "https://app.example/back", "response_type": "code", "scope": "openid"}
        answer = http.post(found["authorization_endpoint"], params=asked, data={"sub": f"sub-{user}"})
        code = urllib.parse.parse_qs(urllib.parse.urlsplit(answer.headers["location"]).query)["code"][0]
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": asked["redirect_uri"]}
        return http.post(found["token_endpoint"], data=form, auth=(client, "any")).json()["id_token"]


def main(arguments):
    gateway = Gateway(parse(arguments, "identity-provider", __doc__).countersign, level="info")
    # libcurl reads only the system's certificates. In a mount namespace the provider's certificate replaces their file.
    gateway.prefix = ("unshare", "-rm", "sh", "-c", 'mount --bind "$0" "$(readlink -f /etc/ssl/certs/ca-certificates.crt)" && exec "$@"',
                      gateway.path("tls.pem"))
    with gateway:
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
            raise Skipped("this machine does not allow mount namespaces")
        issuer = provider(gateway.folder)
        gateway.app(enforcement="required")
        gateway.run("policy", "set", "shop", "--issuer", issuer, "--audience", "web", "--require", "aud,iss", "--user-claim", CLAIM)
        gateway.run("key", "follow", "shop", issuer + "/.well-known/openid-configuration", "--allow-private")
        gateway.start()
        bearer, began = gateway.bearer(), time.monotonic()
        while time.monotonic() - began < 30:
            source = gateway.ask("GET", "/admin/api/apps/shop/key-source", headers=bearer)[1]["sources"][0]
            if source["keys"] or source["problem"]:
                break
            time.sleep(0.1)
        check("the gateway finds the keys through the provider's metadata", source["keys"] and source["issuer"] == issuer, source)

        def send(token, user="ada"):
            event = {"type": "track", "event": "Order", "userId": user}
            return gateway.batch([event], headers={"X-Countersign-Signature": token})

        token = id_token(issuer, gateway.folder, "ada", "web")
        check("a token of the provider is accepted", send(token)[0] == 200, send(token))
        check("the token is rejected for another user", send(token, "bob")[0] == 401)
        other = id_token(issuer, gateway.folder, "ada", "another-client")
        reason = send(other)[1].get("code")
        check("a token for another client is rejected", reason == "AUDIENCE_MISMATCH", reason)
        gateway.run("policy", "set", "shop", "--audience", "web", "--audience", "another-client")
        check("a second audience is accepted", send(other)[0] == 200, json.dumps(send(other)))
        check("the gateway stops", gateway.stop() == 0)
