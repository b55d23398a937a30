#!/bin/sh
# Installs the gateway as docs/operating/install.md says, into a Debian of its own that is booted with systemd, and runs it there:
# the binary with Swift's libraries inside, the packages of packaging/Containerfile, the unit of packaging/.
# Needs root, Linux, and Debian's packages.
set -eu
cd "$(dirname "$0")/.."

[ "$(id -u)" -eq 0 ] || { echo "service-test: it needs root" >&2; exit 1; }
command -v debootstrap >/dev/null 2>&1 || apt-get install -y -qq --no-install-recommends debootstrap >/dev/null

scratch="${SCRATCH_PATH:-.build-static}"
swift build -c release --static-swift-stdlib --product countersign-cli --scratch-path "$scratch"
root="$(mktemp -d /var/tmp/countersign-service.XXXXXX)"
chmod 755 "$root"
init=""
cleanup() {
    [ -z "$init" ] || kill -9 "$init" 2>/dev/null || true
    rm -rf "$root"
}
trap cleanup EXIT

packages="$(sed -n '/bookworm-slim/,$p' packaging/Containerfile | grep -oE '(^| )(ca-certificates|lib[a-z0-9+.-]+|zlib1g)' | tr -d ' ' | sort -u | paste -sd, -)"
debootstrap --variant=minbase --include="systemd,systemd-sysv,curl,$packages" bookworm "$root" >"$root.log" 2>&1 ||
    { tail -n 5 "$root.log" >&2; exit 1; }
rm -f "$root.log"
install -m 0755 "$scratch/release/countersign-cli" "$root/usr/local/bin/countersign"
install -m 0644 packaging/countersign.service "$root/etc/systemd/system/"
install -d -m 0750 "$root/etc/countersign" "$root/old"
cat >"$root/etc/countersign/environment" <<'END'
COUNTERSIGN_PUBLIC_URL=https://collect.example
COUNTERSIGN_TRUSTED_PROXIES=127.0.0.1
END

# A container whose first process is systemd. In a chroot the unit could not use PrivateUsers.
cat >"$root/boot.sh" <<END
set -e
mount --make-rprivate /
mount --bind $root $root
cd $root
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs tmpfs run
mount --rbind /dev dev
if ! grep -q '^cgroup2 /sys/fs/cgroup ' /proc/mounts; then
    mount -t tmpfs tmpfs sys/fs/cgroup
    mkdir sys/fs/cgroup/systemd sys/fs/cgroup/unified
    mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
    mount -t cgroup -o none,name=systemd systemd sys/fs/cgroup/systemd
fi
pivot_root . old
umount -l /old
exec env container=lxc /lib/systemd/systemd
END
unshare --mount --pid --fork --uts --ipc --cgroup --net sh "$root/boot.sh" </dev/null >/dev/null 2>&1 &
waited=0
until init="$(pgrep -P $!)" && [ "$(cat "/proc/$init/comm")" = systemd ]; do
    waited=$((waited + 1))
    [ $waited -lt 50 ] || { echo "service-test: systemd did not start" >&2; exit 1; }
    sleep 0.2
done

cat >"$root/check.sh" <<'END'
set -eu
fail() {
    echo "service-test: $1" >&2
    journalctl -u countersign -o cat --no-pager -n 30 >&2
    exit 1
}
ready() { curl -fsS --retry 20 --retry-delay 1 --retry-all-errors -o /dev/null http://127.0.0.1:8787/readyz 2>/dev/null || fail "not ready: $1"; }
c() { runuser -u countersign -- env COUNTERSIGN_DATA=/var/lib/countersign countersign "$@"; }
until systemctl list-units >/dev/null 2>&1; do sleep 0.2; done
useradd --system --home-dir /var/lib/countersign --shell /usr/sbin/nologin countersign
systemctl daemon-reload
systemctl enable --now countersign 2>/dev/null || fail "it does not start"
ready "at first"

cd /tmp
key="$(c app create shop 2>/dev/null)"
c doctor >/dev/null 2>&1 || fail "the doctor finds something"
send() {
    curl -sS --retry 3 --retry-all-errors http://127.0.0.1:8787/v1/batch -H "X-Write-Key: $key" \
        -d "{\"batch\":[{\"type\":\"track\",\"messageId\":\"$1\",\"anonymousId\":\"a\",\"event\":\"Seen\"}]}"
}
systemctl reload countersign || fail "it does not reload"
case "$(send 1)" in *'"accepted":1'*) ;; *) fail "an event was not taken" ;; esac

kill -9 "$(systemctl show -p MainPID --value countersign)"
sleep 3
ready "after SIGKILL"
[ "$(c event list shop --json | grep -c '"message_id"')" -ge 1 ] || fail "the event is gone"

# After an invalid setting the service must not be restarted.
echo COUNTERSIGN_PORT=x >>/etc/countersign/environment
systemctl restart countersign 2>/dev/null || true
sleep 4
[ "$(systemctl show -p ExecMainStatus --value countersign)" = 2 ] || fail "a wrong setting ends with another status"
[ "$(systemctl is-active countersign)" = failed ] || fail "it is started again with a wrong setting"
sed -i '$d' /etc/countersign/environment
systemctl reset-failed countersign
systemctl start countersign
ready "after the correction"
systemctl stop countersign
[ "$(systemctl show -p Result --value countersign)" = success ] || fail "it does not stop in peace"
[ "$(stat -c '%U %a' /var/lib/countersign)" = "countersign 700" ] || fail "the data directory is open to others"
[ -z "$(find /var/lib/countersign ! -user countersign)" ] || fail "a file belongs to somebody else"
END
timeout 180 nsenter -t "$init" -m -p -u -i -C -n -r -w sh /check.sh
echo "service-test: starts, reloads, comes back after SIGKILL, gives up on a wrong setting, stops"
