#!/usr/bin/env bash
# Three hosts on one machine: network namespaces, each with its own host name and monotonic clock. mpiexec starts one
# rank in each, and all measure one directory. Nothing of the machine's own network is touched.
#
#   scripts/cluster-demo.sh PROGRAM DIRECTORY OUT [OPTION…]
#
# With RIGEL_DEMO_VERB=curve another verb than calibrate. Needs root, iproute2 and mpiexec.hydra.
set -euo pipefail

program=$(realpath "${1:?the program}")
target=$(realpath "${2:?a directory on the storage}")
out=${3:?a directory for the results, which does not exist}
shift 3
[ "$(id -u)" = 0 ] || { echo "cluster-demo: namespaces need root" >&2; exit 1; }
command -v mpiexec.hydra >/dev/null || { echo "cluster-demo: mpiexec.hydra is missing: apt install mpich" >&2; exit 1; }

# Names of this run's own: two demonstrations at once do not meet.
mark=rgl$$
work=$(mktemp -d)
hosts=(h1 h2 h3)

down() {
    local host pids
    for host in "${hosts[@]}" sw; do
        pids=$(ip netns pids "$mark-$host" 2>/dev/null) || true
        # shellcheck disable=SC2086 # one word for each process
        [ -z "$pids" ] || kill -9 $pids 2>/dev/null || true
        ip netns del "$mark-$host" 2>/dev/null || true
        rm -rf "/etc/netns/$mark-$host"
    done
    rm -rf "$work"
}
trap down EXIT

ip netns add "$mark-sw"
ip -n "$mark-sw" link add br0 type bridge
ip -n "$mark-sw" link set br0 up
for i in 1 2 3; do
    space=$mark-h$i
    ip netns add "$space"
    echo "00000000-0000-4000-8000-00000000000$i" >"$work/boot-h$i"
    ip -n "$space" link set lo up
    ip -n "$mark-sw" link add "p$i" type veth peer name eth0 netns "$space"
    ip -n "$mark-sw" link set "p$i" master br0 up
    ip -n "$space" addr add "10.77.0.$i/24" dev eth0
    ip -n "$space" link set eth0 up
    # `ip netns exec` shows it as /etc/hosts.
    mkdir -p "/etc/netns/$space"
    printf '127.0.0.1 localhost\n10.77.0.1 h1\n10.77.0.2 h2\n10.77.0.3 h3\n' >"/etc/netns/$space/hosts"
done

# What mpiexec calls instead of ssh: [-x] HOST COMMAND. Each host's clock is an hour ahead of the one before, and its
# kernel has a boot ID of its own: a file in its place, which only its mounts show.
cat >"$work/launch" <<LAUNCH
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1; shift; number=\$((\${host#h} - 1))
exec ip netns exec "$mark-\$host" unshare --uts --mount --time --monotonic \$((number * 3600)) --fork --kill-child \\
    sh -c 'hostname \$0; mount --bind "$work/boot-\$0" /proc/sys/kernel/random/boot_id; exec sh -c "\$*"' "\$host" "\$@"
LAUNCH
chmod 755 "$work/launch"

HYDRA_LAUNCHER_AUTOFORK=0 ip netns exec "$mark-h1" unshare --uts sh -c 'hostname h1; exec "$@"' sh \
    timeout "${RIGEL_DEMO_SECONDS:-1200}" mpiexec.hydra -launcher ssh -launcher-exec "$work/launch" \
    -ppn 1 -hosts h1,h2,h3 -n 3 \
    "$program" "${RIGEL_DEMO_VERB:-calibrate}" "$target" --hosts 3 --out "$out" "$@" </dev/null
