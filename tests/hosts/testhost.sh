#!/usr/bin/env bash
# Throw-away hosts for tests: systemd as PID 1, sshd, an address of their own; up in a second.
#
#   testhost.sh up NAME IP     begins a host and waits until its sshd greets
#   testhost.sh down NAME      ends it and removes all that it wrote; harmless when there is none
#
# A host is a booted systemd-nspawn. Its files are this machine's own under an overlay that lies in
# memory, so it has what is installed here, but neither /root nor the checkout. Its network is a
# namespace on a bridge: hosts see each other and this machine and nothing else.
#
# In $COGRID_HOSTS (/run/cogrid-hosts) lie the key that every host lets in as root, and for each
# host NAME/: root (its files), known_hosts, ssh_config, console.log.
#
# Needs root and: systemd-sysv systemd-container dbus libpam-systemd openssh-server
# openssh-client iproute2 (apt-get install --no-install-recommends).
set -euo pipefail

home=${COGRID_HOSTS:-/run/cogrid-hosts}
bridge=cogrid0
memory=${COGRID_HOST_SIZE:-512m}
cgroup2=/sys/fs/cgroup
[ -e "$cgroup2/cgroup.controllers" ] || cgroup2=/sys/fs/cgroup/unified   # beside version 1
checkout=$(cd "$(dirname "$0")/../.." && pwd)

fail() { printf 'testhost.sh: %s\n' "$*" >&2; exit 1; }

alone() {                              # hosts come up side by side, the bridge is one
    exec 9>"$home/lock"
    flock 9
    "$@"
    exec 9>&-
}

share_key() {
    [ -e "$home/key" ] || ssh-keygen -q -t ed25519 -N '' -C cogrid-test -f "$home/key"
}

lay_files() {
    mkdir "$place"
    mount -t tmpfs -o "size=$memory,mode=755" cogrid-host "$place"
    mkdir "$place/own" "$place/scratch" "$files"
    local hidden
    for hidden in root tmp "$(cut -d/ -f2 <<<"$checkout")"; do
        [ -e "$place/own/$hidden" ] || mknod "$place/own/$hidden" c 0 0    # whiteout
    done
    mount -t overlay -o "lowerdir=/,upperdir=$place/own,workdir=$place/scratch" cogrid-host "$files"
}

give_identity() {
    systemd-id128 new >"$files/etc/machine-id"
    echo "$name" >"$files/etc/hostname"
    printf '127.0.0.1 localhost\n%s %s\n' "$address" "$name" >"$files/etc/hosts"
    : >"$files/etc/fstab"
    rm -rf "$files"/etc/ssh/ssh_host_* "$files"/etc/ssh/sshd_config.d "$files"/var/tmp/*
    install -d -m 1777 "$files/tmp"
    mkdir "$files/etc/ssh/sshd_config.d"
    cat >"$files/etc/ssh/sshd_config" <<'END'
Include /etc/ssh/sshd_config.d/*.conf
PermitRootLogin prohibit-password
KbdInteractiveAuthentication no
UsePAM yes
UseDNS no
Subsystem sftp /usr/lib/openssh/sftp-server
END
    ssh-keygen -q -t ed25519 -N '' -C "$name" -f "$files/etc/ssh/ssh_host_ed25519_key"
    install -d -m 700 "$files/root" "$files/root/.ssh"
    install -m 600 "$home/key.pub" "$files/root/.ssh/authorized_keys"
    cp /etc/skel/.bashrc /etc/skel/.profile "$files/root/" 2>/dev/null || true
}

write_client_files() {
    echo "$address $(cut -d' ' -f1,2 "$files/etc/ssh/ssh_host_ed25519_key.pub")" >"$place/known_hosts"
    cat >"$place/ssh_config" <<END
Host *
    User root
    IdentityFile $home/key
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile $place/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
END
}

enable_only_ssh() {                    # whatever is enabled on this machine
    mkdir -p "$files/etc/systemd/system-preset"
    printf 'enable ssh.service\ndisable *\n' >"$files/etc/systemd/system-preset/00-test.preset"
    systemctl --quiet --root="$files" preset-all 2>/dev/null
    systemctl --quiet --root="$files" set-default multi-user.target
}

plug_in() {
    local net=${address%.*} mac
    # The same for the same address: who knows the host that had it before would write to that one
    # until it has asked again, and a connection begun meanwhile may take two minutes.
    mac=$(printf '02:%02x:%02x:%02x:%02x:01' ${address//./ })
    # What is sent to a host that is gone must not leave by the default route.
    ip route replace unreachable "$net.0/24" metric 9999
    # An address of its own: otherwise it has one of its hosts', and another as they come and go, and
    # connections hang until everybody has asked again who has this machine's.
    ip link show "$bridge" &>/dev/null || ip link add "$bridge" address 02:c0:91:1d:00:01 type bridge
    ip addr replace "$net.1/24" dev "$bridge"
    ip link set "$bridge" up
    ip netns add "$name"
    ip link add "cg-$name" type veth peer name eth0 address "$mac" netns "$name"
    ip link set "cg-$name" master "$bridge" up
    ip -n "$name" link set lo up
    ip -n "$name" addr add "$address/24" dev eth0
    ip -n "$name" link set eth0 up
}

unplug() {
    ip netns del "$name" 2>/dev/null || true
    ip link del "cg-$name" 2>/dev/null || true
    [ -n "$(ls "/sys/class/net/$bridge/brif" 2>/dev/null)" ] || ip link del "$bridge" 2>/dev/null || true
}

cgroups() {                            # all that this machine mounts and nspawn writes to
    printf '%s\n' "$cgroup2"
    [ ! -d /sys/fs/cgroup/systemd ] || echo /sys/fs/cgroup/systemd
}

live() {                               # returns when the host is switched off
    local mount again=133 code=133     # 133: nspawn says that the host wants to be rebooted
    for mount in $(cgroups); do
        mkdir -p "$mount/cogrid-$name"
        echo "$BASHPID" >"$mount/cogrid-$name/cgroup.procs"
    done
    export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 SYSTEMD_NSPAWN_API_VFS_WRITABLE=network
    while [ "$code" = "$again" ]; do
        code=0
        # nsenter as well: nspawn mounts /sys before it joins the namespace.
        nsenter --net="/run/netns/$name" systemd-nspawn --boot --quiet \
            --machine="$name" --directory="$files" \
            --network-namespace-path="/run/netns/$name" \
            --capability=CAP_NET_ADMIN,CAP_BPF --system-call-filter=bpf \
            --register=no --keep-unit --settings=no --link-journal=no \
            --resolv-conf=off --timezone=off --console=read-only || code=$?
    done
}

greeted() { [ "$( (exec 3<>"/dev/tcp/$address/22" && head -c 4 <&3) 2>/dev/null)" = SSH- ]; }

up() {
    [[ $address =~ ^(10|172\.(1[6-9]|2[0-9]|3[01])|192\.168)(\.[0-9]{1,3})+$ ]] ||
        fail "$address is no private address"
    [ -e "$cgroup2/cgroup.procs" ] || fail "no cgroup version 2 is mounted"
    mkdir -p "$home"
    [ ! -e "$place" ] || fail "$name is there already; down it first"
    trap 'down' EXIT                   # all or nothing
    alone share_key
    lay_files
    give_identity
    write_client_files
    enable_only_ssh
    alone plug_in
    export -f live cgroups
    export name files cgroup2
    setsid bash -c live </dev/null >"$place/console.log" 2>&1 &
    local pid=$! try
    for ((try = 0; try < 300; try++)); do
        if greeted; then trap - EXIT; return; fi
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    tail -n 20 "$place/console.log" >&2
    fail "$name did not come up"
}

down() {
    local mount try
    if [ -d "$cgroup2/cogrid-$name" ]; then          # holds every process of the host, no other
        echo 1 >"$cgroup2/cogrid-$name/cgroup.kill"
        for ((try = 0; try < 500; try++)); do
            grep -q 'populated 0' "$cgroup2/cogrid-$name/cgroup.events" && break
            sleep 0.02
        done
        for mount in $(cgroups); do
            [ ! -d "$mount/cogrid-$name" ] || find "$mount/cogrid-$name" -depth -type d -exec rmdir {} +
        done
    fi
    mkdir -p "$home"
    alone unplug
    umount "$files" 2>/dev/null || true
    umount "$place" 2>/dev/null || true
    rmdir "$place" "/run/systemd/nspawn/propagate/$name" 2>/dev/null || true
    [ ! -e "$place" ] || fail "$place is still in use"
}

name=${2-} address=${3-} place=$home/$name files=$home/$name/root
[[ $name =~ ^[a-z][a-z0-9-]{0,11}$ ]] || fail "a host's name is 1 to 12 of a-z, 0-9 and -"
case "${1-}/$#" in
    up/3) up ;;
    down/2) down ;;
    *) fail 'usage: testhost.sh up NAME IP | down NAME' ;;
esac
