#!/bin/sh
# Installs the Debian package in a container with Debian and systemd. Runs, upgrades, removes and purges the package there.
# Needs root, Linux and a Debian mirror.
# usage: service-test.sh [PACKAGE.deb]
set -eu
cd "$(dirname "$0")/.."

[ "$(id -u)" -eq 0 ] || { echo "service-test: needs root" >&2; exit 1; }
[ $# -gt 0 ] || set -- "$(python3 -B -m tools release deb)"
root="$(mktemp -d /var/tmp/countersign-service.XXXXXX)"
init=""
cleanup() {
    [ -z "$init" ] || kill -9 "$init" 2>/dev/null || true
    rm -rf "$root"
}
trap cleanup EXIT

scripts/booted.sh make "$root" "$1"
# The same package under a later version.
dpkg-deb --raw-extract "$1" "$root/later"
sed -i 's/^Version: .*/&+later/' "$root/later/DEBIAN/control"
dpkg-deb --root-owner-group -Zxz -z1 --build "$root/later" "$root/later.deb" >/dev/null
rm -r "$root/later"
init="$(unshare --net scripts/booted.sh boot "$root")"

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
ready "after the boot"

cd /tmp
key="$(c app create shop 2>/dev/null)"
c doctor >/dev/null 2>&1 || fail "countersign doctor reports a problem"
send() {
    curl -sS --retry 3 --retry-all-errors http://127.0.0.1:8787/v1/batch -H "X-Write-Key: $key" \
        -d "{\"batch\":[{\"type\":\"track\",\"messageId\":\"$1\",\"anonymousId\":\"a\",\"event\":\"Seen\"}]}"
}
systemctl reload countersign || fail "the service does not reload"
case "$(send 1)" in *'"accepted":1'*) ;; *) fail "an event was not accepted" ;; esac

kill -9 "$(systemctl show -p MainPID --value countersign)"
sleep 3
ready "after SIGKILL"
[ "$(c event list shop --json | grep -c '"message_id"')" -ge 1 ] || fail "the event is lost"

# systemd must not restart the service when a setting is invalid.
echo COUNTERSIGN_PORT=x >>/etc/countersign/countersign.conf
systemctl restart countersign 2>/dev/null || true
sleep 4
[ "$(systemctl show -p ExecMainStatus --value countersign)" = 2 ] || fail "with an invalid setting the exit status is not 2"
[ "$(systemctl is-active countersign)" = failed ] || fail "systemd restarts the service with an invalid setting"
sed -i '$d' /etc/countersign/countersign.conf
systemctl reset-failed countersign
systemctl start countersign
ready "after the correction"
systemctl stop countersign
[ "$(systemctl show -p Result --value countersign)" = success ] || fail "the service does not stop with success"
[ "$(stat -c '%U %a' /var/lib/countersign)" = "countersign 700" ] || fail "the data directory is open to others"
[ -z "$(find /var/lib/countersign ! -user countersign)" ] || fail "a file belongs to another user"

# An upgrade keeps a changed setting, without a question of dpkg.
systemctl start countersign
echo COUNTERSIGN_BACKUP_KEEP=3 >>/etc/countersign/countersign.conf
before="$(systemctl show -p MainPID --value countersign)"
dpkg -i /later.deb </dev/null >/dev/null 2>&1 || fail "the upgrade fails"
ready "after the upgrade"
[ "$(systemctl show -p MainPID --value countersign)" != "$before" ] || fail "the upgrade does not restart the service"
grep -q BACKUP_KEEP=3 /etc/countersign/countersign.conf || fail "the upgrade changes the settings"
count() { c event list shop --json | grep -c '"message_id"'; }
[ "$(count)" = 1 ] || fail "the upgrade loses an event"

# dpkg downgrades, but the program rejects the database of a later version and changes nothing.
dpkg -i /countersign.deb </dev/null >/dev/null 2>&1 || fail "dpkg does not downgrade"
systemctl stop countersign
database=/var/lib/countersign/events.sqlite
schema="$(sqlite3 $database 'PRAGMA user_version; PRAGMA user_version = 9999')"
before="$(sha256sum <$database)"
systemctl start countersign 2>/dev/null || true
rejected() { journalctl -u countersign -o cat --no-pager | grep -q "written by a newer version"; }
for _ in $(seq 60); do ! rejected || break; sleep 1; done
rejected || fail "the program starts with the database of a later version"
# systemd must not restart the service, because another start would fail too.
sleep 3
[ "$(systemctl is-active countersign)" = failed ] || fail "systemd restarts the service with the database of a later version"
[ "$(sha256sum <$database)" = "$before" ] || fail "the program changes the database of a later version"
sqlite3 $database "PRAGMA user_version = $schema"
chown countersign: $database*
systemctl start countersign
ready "with the database of its own version"

dpkg -r countersign >/dev/null 2>&1 || fail "the package cannot be removed"
[ "$(systemctl is-active countersign)" = inactive ] || fail "the service runs after the removal"
[ -s /var/lib/countersign/events.sqlite ] && [ -s /etc/countersign/countersign.conf ] || fail "the removal deletes data"
dpkg -i /countersign.deb </dev/null >/dev/null 2>&1
ready "after another installation"
[ "$(count)" = 1 ] || fail "the event is lost after another installation"
dpkg -P countersign >/dev/null 2>&1 || fail "the package cannot be purged"
[ ! -e /var/lib/countersign ] && [ ! -e /etc/countersign/countersign.conf ] || fail "the purge leaves data"
END
timeout 400 nsenter -t "$init" -m -p -u -i -C -n -r -w sh /check.sh
echo "service-test: the service starts, reloads, restarts after SIGKILL but not with an invalid setting, stops, is upgraded, removed and purged"
