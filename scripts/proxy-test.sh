#!/bin/sh
# Runs packaging/nginx.conf and packaging/haproxy.cfg before a gateway, and sends through each what they are there for.
# Then packaging/cluster before two gateways, one of which is killed.
# Only ports, paths and the operators' address (127.0.0.3) differ from the files. Programs that are missing are taken from Debian, without installing them.
set -eu
cd "$(dirname "$0")/.."
PATH="$PATH:/usr/sbin"

folder="$(mktemp -d)"
pids=""
cleanup() {
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$pids" ] || kill $pids 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT
fail() {
    printf 'proxy-test: %s\n' "$1" >&2
    tail -n 5 "$folder"/*.log >&2 || true
    exit 1
}

for program in nginx haproxy; do
    command -v "$program" >/dev/null 2>&1 && continue
    command -v apt-get >/dev/null 2>&1 || fail "there is no $program on PATH; install it"
    packages=$program
    [ "$program" = nginx ] || packages="haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1"
    # shellcheck disable=SC2086 # a list of names
    (cd "$folder" && apt-get download -qq $packages 2>/dev/null && for file in *.deb; do dpkg-deb -x "$file" programs; done)
    PATH="$folder/programs/usr/sbin:$PATH"
    export LD_LIBRARY_PATH="$folder/programs/usr/lib/$(uname -m)-linux-gnu"
done

swift build --product countersign-cli
countersign="$PWD/.build/debug/countersign-cli"

# Ports that are free now: 8787 and 443 may be taken.
ports="$(python3 -c '
import socket
held = [socket.socket() for _ in range(4)]
for s in held: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in held))')"
# shellcheck disable=SC2086 # four numbers
set -- $ports
inner=$1 nginx_port=$2 haproxy_port=$3 second=$4

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=collect.example -addext subjectAltName=DNS:collect.example \
    -keyout "$folder/key.pem" -out "$folder/fullchain.pem" 2>/dev/null
cat "$folder/fullchain.pem" "$folder/key.pem" >"$folder/collect.pem"
mkdir -p "$folder/var/lib/nginx" "$folder/var/log/nginx"
# FOLDER of the file, NAME of the copy
nginx_configuration() {
    sed -e "s#listen 443#listen $nginx_port#" -e "s#127.0.0.1:8787#127.0.0.1:$inner#" -e "s#127.0.0.1:8797#127.0.0.1:$second#" \
        -e "s#/etc/ssl/collect/#$folder/#" -e "s#/run/nginx.pid#$folder/nginx.pid#" -e "s#/var/log/nginx/error.log#$folder/nginx.log#" \
        -e "s#127.0.0.0/8#127.0.0.3/32#" -e "s#^user .*#user $(id -un) $(id -gn);#" "$1/nginx.conf" >"$folder/$2"
    # Debian's build keeps temporary files where only its own user may write.
    for kind in client_body proxy fastcgi uwsgi scgi; do
        sed -i "s#^http {#http {\n    ${kind}_temp_path $folder/$kind;#" "$folder/$2"
    done
}
haproxy_configuration() {
    sed -e "s#bind :443#bind :$haproxy_port#" -e "s#127.0.0.1:8787#127.0.0.1:$inner#" -e "s#127.0.0.1:8797#127.0.0.1:$second#" \
        -e "s#127.0.0.0/8#127.0.0.3/32#" -e "s#/etc/haproxy/collect.pem#$folder/collect.pem#" "$1/haproxy.cfg" >"$folder/$2"
}
nginx_configuration packaging nginx.conf
haproxy_configuration packaging haproxy.cfg

export COUNTERSIGN_DATA="$folder/data"
key="$("$countersign" app create shop 2>/dev/null)"
"$countersign" key generate --out "$folder" 2>/dev/null
"$countersign" key add shop "$folder/public.pem" >/dev/null 2>&1
"$countersign" enforcement set shop required --yes 2>/dev/null
admin="$("$countersign" admin token create --name proxy-test 2>/dev/null)"
token="$("$countersign" token create --key "$folder/private.pem" --user user-1)"
mkfifo "$folder/url"
"$countersign" serve --port "$inner" --trusted-proxies 127.0.0.1 >"$folder/url" 2>"$folder/gateway.log" &
pids="$pids $!"
read -r url <"$folder/url"

nginx -e "$folder/nginx.log" -p "$folder" -c "$folder/nginx.conf" -t 2>/dev/null || fail "nginx refuses its configuration"
nginx -e "$folder/nginx.log" -p "$folder" -c "$folder/nginx.conf"
pids="$pids $(cat "$folder/nginx.pid")"
haproxy -c -f "$folder/haproxy.cfg" >"$folder/haproxy.log" 2>&1 || fail "HAProxy refuses its configuration"
haproxy -W -f "$folder/haproxy.cfg" >>"$folder/haproxy.log" 2>&1 &
haproxy_pid=$!
pids="$pids $haproxy_pid"

# The client has another address than the proxy, so that the gateway can tell them apart.
client=127.0.0.2
ask() {
    port=$1
    shift
    curl -sS --path-as-is --interface "$client" --cacert "$folder/fullchain.pem" --connect-to "collect.example:443:127.0.0.1:$port" "$@"
}
# The log line of a request; a thread of its own writes it, so it may come after the answer.
logged() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        grep "\"$1\"" "$folder/gateway.log" && return
        sleep 0.5
    done
    return 1
}
batch() {
    printf '{"batch":[{"type":"track","messageId":"%s","userId":"user-1","event":"Seen"}]}' "$1"
}
expect() {
    [ "$2" = "$3" ] || fail "$1: $2 instead of $3"
}

try() {
    name=$1 port=$2
    ask "$port" --retry 20 --retry-delay 1 --retry-all-errors -o /dev/null https://collect.example/livez

    # A signed event goes through, over HTTP/2, with the id that the client gave its request.
    batch "$name-1" >"$folder/body"
    said="$(ask "$port" --http2 -H "X-Write-Key: $key" -H "Authorization: Bearer $token" -H "X-Request-Id: trail-$name" \
        -H "X-Forwarded-For: 203.0.113.9" --data @"$folder/body" -D "$folder/head" \
        -w ' %{http_version} %{http_code}' https://collect.example/v1/batch)"
    case "$said" in *'"accepted":1'*' 2 200') ;; *) fail "$name: $said" ;; esac
    grep -qi "^x-request-id: trail-$name" "$folder/head" || fail "$name: the answer lost the request's id"
    line="$(logged "trail-$name")" || fail "$name: the log lost the request's id"
    # The address that the client claims for itself is not believed; the one that the proxy saw is.
    case "$line" in *'"client":"127.0.0.2"'*) ;; *) fail "$name: wrong client address: $line" ;; esac

    # Without an id, the proxy makes one that the gateway keeps.
    ask "$port" -o /dev/null -D "$folder/head" -H "X-Write-Key: $key" -H "Authorization: Bearer $token" \
        --data @"$folder/body" https://collect.example/v1/batch
    id="$(sed -n 's/^[Xx]-[Rr]equest-[Ii]d: \([A-Za-z0-9._-]*\).*/\1/p' "$folder/head")"
    [ -n "$id" ] && logged "$id" >"$folder/line" || fail "$name: no id in the answer and in the log"

    # The gateway's refusals come through unchanged.
    status="$(ask "$port" -o "$folder/answer" -w '%{http_code}' -H "X-Write-Key: $key" --data @"$folder/body" https://collect.example/v1/batch)"
    expect "$name, no token" "$status" 401
    grep -q MISSING_TOKEN "$folder/answer" || fail "$name: the code of the refusal is missing"

    # 3 MB go through, 5 MB do not.
    python3 - "$name" >"$folder/large" <<'P'
import json, sys
event = {"type": "track", "userId": "user-1", "event": "Large", "properties": {"text": "x" * 300_000}}
print(json.dumps({"batch": [event | {"messageId": f"{sys.argv[1]}-large-{n}"} for n in range(10)]}))
P
    status="$(ask "$port" -o /dev/null -w '%{http_code}' -H "X-Write-Key: $key" -H "Authorization: Bearer $token" \
        --data-binary @"$folder/large" https://collect.example/v1/batch)"
    expect "$name, 3 MB" "$status" 200
    head -c 5000000 /dev/zero >"$folder/huge"
    status="$(ask "$port" -o /dev/null -w '%{http_code}' -H "X-Write-Key: $key" -H 'Expect:' --data-binary @"$folder/huge" \
        https://collect.example/v1/batch || true)"
    expect "$name, 5 MB" "$status" 413

    # What is for the operators is not for the internet.
    for path in /admin /admin/ /admin/api/setup //admin/api/setup /x/../admin/api/setup /%61dmin/api/setup /Admin/api/setup \
        '/admin;/api/setup' /readyz /readyz/ //readyz '/readyz?x' '/readyz/?x' /%72eadyz /readyz%2F /metrics /metrics/ //metrics \
        '/metrics?x' '/metrics/?x' /%6detrics /metrics%2F; do
        status="$(ask "$port" -o /dev/null -w '%{http_code}' "https://collect.example$path")"
        case "$status" in 403 | 404 | 400) ;; *) fail "$name, $path from outside: $status" ;; esac
    done
    client=127.0.0.3
    expect "$name, /admin for operators" "$(ask "$port" -o /dev/null -w '%{http_code}' https://collect.example/admin/)" 200
    # The live view comes piece by piece, not when a buffer is full.
    ask "$port" -N --max-time 10 -H "Authorization: Bearer $admin" "https://collect.example/admin/api/live" 2>/dev/null |
        head -n 2 >"$folder/live" || true
    grep -q '^event: sampling' "$folder/live" || fail "$name holds the live view back"
    client=127.0.0.2

    # Bodies that stop before their end do not reach the gateway, or no more of them than fills the proxy's buffer.
    python3 - "$port" "$inner" "$folder/fullchain.pem" <<'P' || fail "$name passes on bodies that are not whole"
import http.client, socket, ssl, sys, time
port, inner, certificate = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
context = ssl.create_default_context(cafile=certificate)
held = []
for number in range(100):
    plain = socket.create_connection(("127.0.0.1", port), 10, (f"127.0.4.{1 + number % 4}", 0))
    sender = context.wrap_socket(plain, server_hostname="collect.example")
    sender.sendall(b"POST /v1/batch HTTP/1.1\r\nHost: collect.example\r\nContent-Length: 60000\r\n\r\n" + b" " * 40000)
    held.append(sender)
def connections():
    # From another address than the proxies', whose requests are looked for in the log.
    connection = http.client.HTTPConnection("127.0.0.1", inner, timeout=10, source_address=("127.0.0.5", 0))
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith("countersign_connections "))
# What they have sent is on its way for a moment.
for _ in range(3):
    time.sleep(0.3)
    if connections() > 30: sys.exit(f"the gateway has {connections():.0f} connections")
P

    # New configuration under traffic: no request is lost.
    n=0
    while [ $n -lt 60 ]; do
        n=$((n + 1))
        batch "$name-reload-$n" >"$folder/body"
        status="$(ask "$port" -o /dev/null -w '%{http_code}' -H "X-Write-Key: $key" -H "Authorization: Bearer $token" \
            --data @"$folder/body" https://collect.example/v1/batch || true)"
        expect "$name, request $n around a reload" "$status" 200
        case $n in 20 | 40) "reload_$name" ;; esac
    done
    stored="$(sqlite3 -readonly "$folder/data/events.sqlite" "SELECT count(*) FROM event WHERE message_id LIKE '$name-%'")"
    expect "$name, stored events" "$stored" 71
}
reload_nginx() { nginx -e "$folder/nginx.log" -p "$folder" -c "$folder/nginx.conf" -s reload; }
reload_haproxy() { kill -USR2 "$haproxy_pid"; }

try nginx "$nginx_port"
try haproxy "$haproxy_port"

# The same with another list of gateways: whoever comes after one was killed notices nothing.
differ() {
    diff "packaging/$1" "packaging/cluster/$1" | grep '^[<>]' | grep -v '^[<>] *#' | grep -vcE "$2" >"$folder/differences" || true
    [ "$(cat "$folder/differences")" -eq 0 ] || fail "packaging/cluster/$1 differs from packaging/$1 in more than the gateways"
}
differ nginx.conf 'least_conn;|server 127'
differ haproxy.cfg 'balance|retries|option redispatch|default-server|server gateway'
nginx_configuration packaging/cluster nginx.conf
haproxy_configuration packaging/cluster haproxy.cfg
haproxy -c -f "$folder/haproxy.cfg" >"$folder/haproxy.log" 2>&1 || fail "HAProxy refuses the configuration of the cluster"
reload_nginx
reload_haproxy
both() {
    for port in "$nginx_port" "$haproxy_port"; do
        n=0
        while [ $n -lt 20 ]; do
            n=$((n + 1))
            # What there is not is in the log.
            status="$(ask "$port" -o /dev/null -w '%{http_code}' "https://collect.example/$1-$port" || true)"
            expect "two gateways, request $n, $1" "$status" 404
        done
    done
}
rm "$folder/url"
mkfifo "$folder/url"
"$countersign" serve --port "$second" --data "$folder/second" --trusted-proxies 127.0.0.1 >"$folder/url" 2>"$folder/second.log" &
second_pid=$!
read -r _ <"$folder/url"
# Both check each second whether a gateway is there.
sleep 3
both one-of-two
for port in "$nginx_port" "$haproxy_port"; do
    for log in gateway second; do
        grep -q "/one-of-two-$port" "$folder/$log.log" || fail "the proxy at $port asked the gateway of $log.log nothing"
    done
done
kill -KILL "$second_pid"
both the-other-was-killed

# HAProxy's health checks come from this machine, and are not logged at this level; everything else has its client.
grep -q '"client":"127.0.0.1"' "$folder/gateway.log" && fail "some request lost its client"
echo "proxy-test: nginx and HAProxy pass signed events, ids, addresses and refusals; reloads lose nothing ($url);"
echo "proxy-test: before two gateways nobody notices that one is killed"
