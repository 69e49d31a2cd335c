#!/bin/sh
# Prepares the mount namespace of a node and keeps it open. Arguments: the directory of the node, then for each cgroup
# hierarchy its mount point and its selector. Runs in mount, uts, ipc and cgroup namespaces of its own, so that nothing
# here is seen outside, and everything is gone when the last process in it ends.
set -eu
node=$1
shift

# What kubelet and containerd write.
for place in /run /var/lib /var/log; do
  mkdir -p "$node$place"
  mount --bind "$node$place" "$place"
done
mount --bind "$node/etc/machine-id" /etc/machine-id

# Values that kubelet and network plugins set for the whole machine: here they set copies.
for value in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys \
  kernel/keys/root_maxbytes net/ipv4/ip_forward; do
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
exec sleep infinity
