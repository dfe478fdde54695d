"""A token endpoint over HTTPS for sasl.sh: issues RS256 tokens for a client secret or for a signed assertion.

Usage: identity_provider.py FOLDER. The folder has tls.pem (key and certificate), signing.key, and the clients' public keys
RS256.pub and ES256.pub. Writes jwks.json and then the port to the file `idp.port` there. Each request is a line of idp.log.
"""

import base64
import http.server
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.parse

os.chdir(sys.argv[1])


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def openssl(*words, data=None):
    return subprocess.run(["openssl", *words], input=data, capture_output=True, check=True).stdout


def token(life):
    head = encoded(json.dumps({"alg": "RS256", "typ": "JWT", "kid": "k1"}).encode())
    now = time.time()
    claims = {"iss": "https://idp.test", "aud": "kafka", "sub": "alice", "iat": int(now), "exp": int(now + life)}
    signed = head + "." + encoded(json.dumps(claims).encode())
    return signed + "." + encoded(openssl("dgst", "-sha256", "-sign", "signing.key", data=signed.encode()))


def der_of(raw):
    """Converts an ECDSA signature from two numbers of 32 bytes to DER."""
    numbers = b""
    for half in (raw[:32], raw[32:]):
        digits = half.lstrip(b"\0")
        if not digits or digits[0] & 0x80:
            digits = b"\0" + digits
        numbers += bytes([2, len(digits)]) + digits
    return bytes([0x30, len(numbers)]) + numbers


def check_assertion(text):
    signed, signature = text.rsplit(".", 1)
    head, claims = (json.loads(decoded(part)) for part in signed.split("."))
    raw = decoded(signature)
    if head["alg"] == "ES256":
        assert len(raw) == 64, "an ES256 signature has 64 bytes"
        raw = der_of(raw)
    with open("assertion.sig", "wb") as file:
        file.write(raw)
    openssl("dgst", "-sha256", "-verify", head["alg"] + ".pub", "-signature", "assertion.sig", data=signed.encode())
    assert claims["iss"] == "me" and claims["aud"] == "https://idp.test" and claims["sub"] == "alice", claims
    assert claims["nbf"] <= time.time() <= claims["exp"], claims
    return head["alg"]


class Endpoint(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        fields = dict(urllib.parse.parse_qsl(body, strict_parsing=True))
        try:
            if fields["grant_type"] == "client_credentials":
                basic = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
                assert basic == "me:hunter2", "unknown client"
                assert fields["scope"] == "read write", fields
                kind = "secret"
            else:
                kind = check_assertion(fields["assertion"])
            status, answer = 200, {"access_token": token(int(self.path.rsplit("/", 1)[1])), "token_type": "Bearer"}
        except (AssertionError, KeyError, subprocess.CalledProcessError) as error:
            kind, status, answer = f"refused: {error!r}", 401, {"error": "invalid_client"}
        with open("idp.log", "a") as log:
            print(kind, file=log)
        answer = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


modulus = openssl("rsa", "-in", "signing.key", "-noout", "-modulus").decode().strip().split("=")[1]
key = {"kty": "RSA", "kid": "k1", "use": "sig", "alg": "RS256", "n": encoded(bytes.fromhex(modulus)), "e": "AQAB"}
with open("jwks.json", "w") as file:
    json.dump({"keys": [key]}, file)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("tls.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
with open("idp.port.new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename("idp.port.new", "idp.port")
server.serve_forever()
