#!/usr/bin/env bash
# How mpirun starts its daemon on a host of hosts.py: agent.sh PREFIX ADDRESS COMMAND..., in that host's network and under its
# name. The host with address 10.77.0.3 is PREFIX-3.
host=$1-${2##*.}
shift 2
exec ip netns exec "$host" unshare --uts bash -c "hostname $host; $*"
