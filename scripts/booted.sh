#!/bin/sh
# Makes a Debian root with systemd, and boots it as a container. Needs root, Linux, and Debian's packages.
# usage: booted.sh make FOLDER PACKAGE.deb   installs a package with its dependencies into a new root
#        booted.sh boot FOLDER               boots a root in the caller's network and prints the id of its first process
set -eu
root="$2"

if [ "$1" = make ]; then
    command -v debootstrap >/dev/null 2>&1 || apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
    # The root without the package. Later runs reuse it.
    base="$(dirname "$0")/../.build/release-roots/systemd"
    if [ ! -e "$base/complete" ]; then
        rm -rf "$base"
        mkdir -p "$base"
        debootstrap --variant=minbase --include=systemd,systemd-sysv,curl,sqlite3 bookworm "$base" >"$base.log" 2>&1 ||
            { tail -n 5 "$base.log" >&2; exit 1; }
        rm -f "$base.log"
        touch "$base/complete"
    fi
    mkdir -p "$root"
    cp -a "$base/." "$root"
    cp "$3" "$root/countersign.deb"
    cp /etc/resolv.conf "$root/etc/"
    mkdir "$root/old"
    chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends /countersign.deb >"$root/apt.log" 2>&1 ||
        { tail -n 5 "$root/apt.log" >&2; exit 1; }
    exit
fi

# Boots a container whose first process is systemd. It uses pivot_root, because in a chroot a unit cannot use PrivateUsers.
# The container has its own control group, because two systemds in one group would stop each other's services.
group="$(basename "$root")"
cat >"$root/boot.sh" <<END
set -e
if [ "\$1" = begin ]; then
    mount --make-rprivate /
    mount --bind $root $root
    cd $root
    mount -t proc proc proc
    mount --rbind /sys sys
    mount -t tmpfs tmpfs run
    mount --rbind /dev dev
fi
kinds=cgroup2
if ! grep -q '^cgroup2 /sys/fs/cgroup ' /proc/mounts; then
    mount -t tmpfs tmpfs sys/fs/cgroup
    kinds="unified systemd"
fi
for kind in \$kinds; do
    case \$kind in
    cgroup2) place=sys/fs/cgroup && mount -t cgroup2 cgroup2 \$place ;;
    unified) place=sys/fs/cgroup/unified && mkdir \$place && mount -t cgroup2 cgroup2 \$place ;;
    systemd) place=sys/fs/cgroup/systemd && mkdir \$place && mount -t cgroup -o none,name=systemd systemd \$place ;;
    esac
    [ "\$1" != begin ] || { mkdir -p \$place/$group; echo 0 >\$place/$group/cgroup.procs; }
done
[ "\$1" != begin ] || exec unshare --cgroup sh boot.sh end
pivot_root . old
umount -l /old
exec env container=lxc /lib/systemd/systemd
END
(
    unshare --mount --pid --fork --uts --ipc sh "$root/boot.sh" begin </dev/null || true
    find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} +
) >/dev/null 2>&1 &
waited=0
until init="$(pgrep -P "$(pgrep -P $! -x unshare)")" && [ "$(cat "/proc/$init/comm")" = systemd ]; do
    waited=$((waited + 1))
    [ $waited -lt 100 ] || { echo "booted: systemd did not start" >&2; exit 1; }
    sleep 0.2
done
echo "$init"
