#!/usr/bin/env python3
"""Writes a platform for SimGrid that is like Perlmutter's GPU partition (Tripathy et al. 2024, section 7.2), and its hostfile.

    bench/simulated/perlmutter.py RANKS [--scale S] [--latency F] [--placement cyclic] -o platform.xml --hostfile hosts

A host per GPU, four GPUs to a node. Every pair of GPUs of a node has an NVLink of 100 GB/s in each direction; every GPU has a
network card of 25 GB/s in each direction; behind the cards stands a switch that never fills (Perlmutter's dragonfly
has congestion that is left out here). Messages between nodes pass two cards and the switch: 0.9 + 0.2 + 0.9 us.
--scale divides all bandwidths (docs/scaling.md says what for), --latency multiplies all latencies. --placement: ranks fill node
after node (block), or go round the nodes (cyclic), as by srun's --distribution.
"""
import argparse

GPUS = 4
NVLINK_BYTES, NVLINK_SECONDS = 100e9, 1.0e-6
CARD_BYTES, CARD_SECONDS, SWITCH_SECONDS = 25e9, 0.9e-6, 0.2e-6
HOST_FLOPS = 1e12  # what scaling.cpp takes a second of charged computing to be


def link(name, bandwidth, seconds, policy="SPLITDUPLEX"):
    return f'<link id="{name}" bandwidth="{bandwidth:.0f}Bps" latency="{seconds:.3e}s" sharing_policy="{policy}"/>'


def node_zone(node, gpus, scale, latency):
    lines = [f'<zone id="node{node}" routing="Full">']
    lines += [f'<host id="gpu{node}.{k}" speed="{HOST_FLOPS:.0f}f"/>' for k in range(gpus)]
    lines += [f'<router id="card{node}"/>']
    lines += [link(f"card{node}.{k}", CARD_BYTES / scale, CARD_SECONDS * latency) for k in range(gpus)]
    pairs = [(k, m) for k in range(gpus) for m in range(k + 1, gpus)]
    lines += [link(f"nvlink{node}.{k}.{m}", NVLINK_BYTES / scale, NVLINK_SECONDS * latency) for k, m in pairs]
    lines += [f'<route src="gpu{node}.{k}" dst="card{node}"><link_ctn id="card{node}.{k}" direction="UP"/></route>'
              for k in range(gpus)]
    lines += [f'<route src="gpu{node}.{k}" dst="gpu{node}.{m}"><link_ctn id="nvlink{node}.{k}.{m}" direction="UP"/></route>'
              for k, m in pairs]
    return lines + ["</zone>"]


def platform(ranks, scale=1.0, latency=1.0, placement="block"):
    """The platform and the hosts of ranks 0, 1, ...: block fills node after node, cyclic goes round the nodes."""
    nodes = [min(GPUS, ranks - first) for first in range(0, ranks, GPUS)]
    lines = ["<?xml version='1.0'?>", '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
             '<platform version="4.1">', '<zone id="cluster" routing="Full">']
    for node, gpus in enumerate(nodes):
        lines += node_zone(node, gpus, scale, latency)
    lines += [link("switch", 1e15 / scale, SWITCH_SECONDS * latency, "FATPIPE")]
    lines += [f'<zoneRoute src="node{a}" dst="node{b}" gw_src="card{a}" gw_dst="card{b}"><link_ctn id="switch"/></zoneRoute>'
              for a in range(len(nodes)) for b in range(a + 1, len(nodes))]
    places = [(node, k) for node, gpus in enumerate(nodes) for k in range(gpus)]
    if placement == "cyclic":
        places.sort(key=lambda place: (place[1], place[0]))
    hosts = [f"gpu{node}.{k}" for node, k in places]
    return "\n".join(lines + ["</zone>", "</platform>"]) + "\n", "\n".join(hosts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ranks", type=int)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--placement", choices=["block", "cyclic"], default="block")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--hostfile", required=True)
    arguments = parser.parse_args()
    xml, hosts = platform(arguments.ranks, arguments.scale, arguments.latency, arguments.placement)
    with open(arguments.output, "w") as file:
        file.write(xml)
    with open(arguments.hostfile, "w") as file:
        file.write(hosts)


if __name__ == "__main__":
    main()
