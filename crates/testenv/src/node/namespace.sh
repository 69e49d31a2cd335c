#!/bin/sh
# Prepares the namespaces of a node and keeps them open. Arguments: the kind of node, its directory, the address of the API
# server inside of a cluster, then for each cgroup hierarchy its mount point and its selector. Runs in mount, uts, ipc and
# cgroup namespaces of its own, for the kind `isolated` also in pid and network namespaces, so that nothing here is seen
# outside, and everything is gone when the last process in it ends.
set -eu
kind=$1
node=$2
service=$3
shift 3

# What kubelet and containerd write.
for place in /run /var/lib /var/log; do
  mkdir -p "$node$place"
  mount --bind "$node$place" "$place"
done
mount --bind "$node/etc/machine-id" /etc/machine-id

values="vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys
  kernel/keys/root_maxbytes"
if [ "$kind" = isolated ]; then
  # The processes of the node in place of those of the machine.
  mount -t proc proc /proc
  ip link set dev lo up
  ip address add "$service/32" dev lo
  # Pods reach the machine through the node.
  echo 1 >/proc/sys/net/ipv4/ip_forward
else
  values="$values net/ipv4/ip_forward"
fi

# Values that kubelet and network plugins set for the whole machine: here they set copies.
for value in $values; do
  copy=$node/sys-values/$(echo "$value" | tr / .)
  mkdir -p "$node/sys-values"
  cat "/proc/sys/$value" >"$copy"
  mount --bind "$copy" "/proc/sys/$value"
done

# The cgroup hierarchies, seen from the node's own cgroup.
mount -t tmpfs tmpfs /sys/fs/cgroup
while [ $# -gt 0 ]; do
  mkdir -p "$1"
  mount -t cgroup -o "$2" cgroup "$1"
  shift 2
done

: >"$node/prepared"
if [ "$kind" = isolated ]; then
  # The first process of a pid namespace waits for those that have lost their parents.
  while true; do
    sleep infinity &
    wait
  done
fi
exec sleep infinity
