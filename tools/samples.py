"""Tests samples of the documents: the functions that verify a webhook's signature, in each language whose program is installed,
targets and variables of `make`, the verification of a release, and the commands that set up PostgreSQL and copy a gateway's data to it."""

import base64
import hashlib
import hmac
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from .common import ROOT, check, installed, output, parse, workshop
from .gateway import Gateway
from .postgresql import NAME, PostgreSQL, program
from .prove import ROWS

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


def check_webhooks(folder):
    page, now = (ROOT / "docs/guides/webhooks.md").read_text(), str(int(time.time()))
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


def check_make():
    """Each `make` in a document has existing targets and variables, and `make prove ONLY=` existing rows or groups."""
    makefile, count = (ROOT / "Makefile").read_text() + (ROOT / "tools/check.py").read_text(), 0
    for page in output("git", "ls-files", "*.md", cwd=ROOT).splitlines():
        for target, options in re.findall(r'(?:`|^\$ |^|sudo )make ([a-z-]+)((?: [A-Z]+=(?:"[^"]*"|[^\s`]*))*) *(?:[`#&]|$)',
                                          (ROOT / page).read_text(), re.M):
            values = dict(re.findall(r'([A-Z]+)="?([^"]*?)"?(?= [A-Z]+=|$)', options))
            unknown = [name for name in values if not re.search(rf"\$[({{]{name}\b", makefile)]
            rows = values.get("ONLY", "").split() if target == "prove" else ()
            unknown += set(rows) - set(ROWS) - {row.group for row in ROWS.values()}
            if not re.search(rf"^{target}:", makefile, re.M) or unknown:
                raise SystemExit(f"{page}: make {target}{options}: unknown {unknown or target}")
            count += 1
    check(f"all {count} commands of make in the documents exist", count > 30)


def commands(page, first):
    """The commands of the block of a page that begins with `first`."""
    text = (ROOT / page).read_text()
    return text[text.index(f"```console\n$ {first}") + 11:].split("```")[0].replace("\n$ ", "\n").removeprefix("$ ")


def check_release(folder):
    installed("ssh-keygen", "openssh-client")
    for command in ("ssh-keygen -q -t ed25519 -N '' -f key", "mv key.pub releases.pub", "echo a >a; sha256sum a releases.pub >SHA256SUMS",
                    "ssh-keygen -q -Y sign -n file -f key SHA256SUMS"):
        output("sh", "-c", command, cwd=folder)
    script = "set -e\n" + commands("docs/operating/install.md", "echo")
    output("sh", "-c", script, cwd=folder)
    for what, change in (("file", "echo b >a"), ("list", "sha256sum a >SHA256SUMS")):
        output("sh", "-c", change, cwd=folder)
        done = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True)
        check(f"the commands for a release reject a changed {what}", done.returncode != 0)


def check_postgresql(folder, countersign):
    """Runs the commands of docs/operating/several-gateways.md, with other paths and addresses and with a `sudo` that keeps the user."""
    page, server = "docs/operating/several-gateways.md", PostgreSQL(folder)
    try:
        server.secure()
        password = (folder / "database-password").read_text()
        (folder / "bin").mkdir()
        (folder / "bin/countersign").symlink_to(countersign)
        (folder / "bin/sudo").write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
        (folder / "bin/sudo").chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN_")} | {
            "PATH": os.pathsep.join([str(folder / "bin"), str(Path(program("createuser")).parent), os.environ["PATH"]]), "HOME": str(folder),
            "PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": "postgres", "COUNTERSIGN_PORT": "0"}
        Gateway(countersign, folder).app("copied")
        setup = commands(page, "sudo -u postgres createuser")
        create, migrate = setup[:setup.index("countersign migrate\n")], setup.replace("countersign serve", "exec countersign serve")
        for script, app in ((migrate, "shop"), (create + commands(page, "sudo -u countersign countersign copy"), "copied")):
            server.sql(f"DROP DATABASE {NAME}", "postgres")
            server.sql(f"DROP ROLE {NAME}", "postgres")
            for old, new in (("db.internal", f"127.0.0.1:{server.port}"), ("/etc/countersign/database-ca", folder / "database"),
                             ("/etc/countersign", folder), ("/var/lib/countersign", folder / "data")):
                script = script.replace(old, str(new))
            # In a session without a terminal `createuser` reads the password from its input.
            shell = subprocess.Popen(["sh", "-euc", script], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True, start_new_session=True)
            shell.stdin.write(password * 2)
            shell.stdin.close()
            said = []
            for line in shell.stdout:
                said.append(line)
                if line.startswith("http://127.0.0.1:"):
                    shell.terminate()
            check(f"the commands for PostgreSQL, app {app}", shell.wait(timeout=60) == 0, "".join(said))
            check(f"the database has the app {app}", server.rows(f"SELECT id FROM {NAME}.app") == [[app]])
    finally:
        server.stop()


def main(arguments):
    options, folder = parse(arguments, "samples", __doc__), workshop()
    check_make()
    check_webhooks(folder)
    check_release(folder)
    check_postgresql(folder, options.countersign)
    shutil.rmtree(folder)
