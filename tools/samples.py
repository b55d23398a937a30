"""Tests the functions of docs/guides/webhooks.md that verify a signature, in each language whose program is installed."""

import base64
import hashlib
import hmac
import re
import shutil
import subprocess
import time

from .common import ROOT, check, workshop

# The example of the Standard Webhooks specification, also in WebhookVerifierTests.
SECRET, BODY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", '{"test": 2432232314}'
ID, SENT, SIGNATURE = "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
# For each language: program, file name, command, code before the sample, and code that calls it and prints the result.
LANGUAGES = {
    "js": ("node", "sample.mjs", ["node"], "",
           "const [secret, id, sent, given, body] = process.argv.slice(2);\nconsole.log(isSigned(secret, {'webhook-id': id, "
           "'webhook-timestamp': sent, 'webhook-signature': given}, Buffer.from(body)));"),
    "python": ("python3", "sample.py", ["python3"], "",
               "import sys\nsecret, identifier, sent, given, body = sys.argv[1:]\nprint(is_signed(secret, {'webhook-id': identifier, "
               "'webhook-timestamp': sent, 'webhook-signature': given}, body.encode()))"),
    "go": ("go", "sample.go", ["go", "run"],
           'package main\nimport ("crypto/hmac"; "crypto/sha256"; "encoding/base64"; "fmt"; "net/http"; "os"; "strconv"; "strings"; "time")\n',
           'func main() {\n\theader := http.Header{}\n\theader.Set("webhook-id", os.Args[2])\n\theader.Set("webhook-timestamp", os.Args[3])\n'
           '\theader.Set("webhook-signature", os.Args[4])\n\tfmt.Println(isSigned(os.Args[1], header, []byte(os.Args[5])))\n}'),
    "php": ("php", "sample.php", ["php"], "<?php\n",
            "[, $secret, $id, $sent, $given, $body] = $argv;\necho var_export(isSigned($secret, ['webhook-id' => $id, "
            "'webhook-timestamp' => $sent, 'webhook-signature' => $given], $body), true), \"\\n\";"),
    "ruby": ("ruby", "sample.rb", ["ruby"], "",
             "secret, id, sent, given, body = ARGV\nputs signed?(secret, {'webhook-id' => id, 'webhook-timestamp' => sent, "
             "'webhook-signature' => given}, body)"),
}


def sign(sent, secret=SECRET):
    text = f"{ID}.{sent}.{BODY}".encode()
    return "v1," + base64.b64encode(hmac.new(base64.b64decode(secret[6:]), text, hashlib.sha256).digest()).decode()


def main(arguments):
    page, folder, now = (ROOT / "docs/guides/webhooks.md").read_text(), workshop(), str(int(time.time()))
    check("this program computes the signature of the specification's example", sign(SENT) == SIGNATURE)
    old, other = str(int(now) - 600), "whsec_" + base64.b64encode(bytes(24)).decode()
    cases = [("a signature", SECRET, now, sign(now), BODY, True), ("the second of two signatures", SECRET, now, f"{sign(now, other)} {sign(now)}", BODY, True),
             ("another secret", SECRET, now, sign(now, other), BODY, False), ("another body", SECRET, now, sign(now), BODY + " ", False),
             ("another time", SECRET, str(int(now) - 1), sign(now), BODY, False), ("an old time", SECRET, old, sign(old), BODY, False),
             ("no time", SECRET, "", sign(""), BODY, False), ("time ²", SECRET, "²", sign("²"), BODY, False), ("no signature", SECRET, now, "", BODY, False),
             ("a short secret", "whsec_", now, "v1," + base64.b64encode(hmac.new(b"", f"{ID}.{now}.{BODY}".encode(), hashlib.sha256).digest()).decode(),
              BODY, False)]
    for language, (program, name, command, before, after) in LANGUAGES.items():
        sample = re.search(rf"```{language}\n(.*?)```", page, re.S)[1]
        if not shutil.which(program):
            print(f"samples: {language} skipped, {program} is not installed")
            continue
        (folder / name).write_text(before + sample + after)
        for what, secret, sent, given, body, expected in cases:
            done = subprocess.run([*command, folder / name, secret, ID, sent, given, body], capture_output=True, text=True)
            check(f"{language}, {what}", done.stdout.strip().lower() == str(expected).lower(), done.stdout + done.stderr)
    shutil.rmtree(folder)
