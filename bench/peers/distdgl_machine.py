"""One process of dgl.distributed on a machine that shares its host with others, and what it moves.

DistDGL finds out on which machine a client runs by the host's addresses, and names the memory that a machine shares by
graph and feature: on one host all processes would be on machine 0 and share under the same names. So three names are
replaced: the machine's number (PEER_MACHINE), the names of shared features, and that of the graph (PEER_NAME), which
stands in the configuration that a machine reads. Nothing else of DGL's is.

Bytes are counted in the servers, where DGL packs and unpacks what they send and receive: its headers and TCP's do not
count. A server is asked for them by a request of our own.
"""

import os

import memory

COUNT_SERVICE = 990001


def become_machine():
    """Makes DGL believe that this process runs on machine PEER_MACHINE, with shared memory of its own."""
    import dgl
    from dgl.distributed import kvstore, rpc, rpc_client

    machine, name, share = int(os.environ["PEER_MACHINE"]), os.environ["PEER_NAME"], kvstore.empty_shared_mem
    rpc_client.get_local_machine_id = lambda namebook: machine
    kvstore.empty_shared_mem = lambda feature, *shape: share(f"{name}-{feature}", *shape)
    service = make_count_service()
    rpc.register_service(COUNT_SERVICE, *service)
    return dgl, service[0]


def make_count_service():
    """A request by which a trainer asks a server for what it has moved so far, and its memory."""
    from dgl.distributed import rpc

    class Counts(rpc.Response):
        def __init__(self, moved, resident):
            self.state = moved, resident

        def __getstate__(self):
            return self.state

        def __setstate__(self, state):
            self.state = state

    class AskForCounts(rpc.Request):
        def __getstate__(self):
            return "counts"

        def __setstate__(self, state):
            pass

        def process_request(self, server_state):
            return Counts(count_payloads.moved, memory.proportional("self"))

    return AskForCounts, Counts


def count_payloads():
    """From now on counts what this server receives and sends, in `count_payloads.moved`."""
    from dgl.distributed import rpc

    pack, unpack = rpc.serialize_to_payload, rpc.deserialize_from_payload
    count_payloads.moved = 0

    def count(data, tensors):
        count_payloads.moved += len(data) + sum(tensor.nbytes for tensor in tensors)

    def pack_and_count(response):
        data, tensors = pack(response)
        count(data, tensors)
        return data, tensors

    def unpack_and_count(kind, data, tensors):
        count(data, tensors)
        return unpack(kind, data, tensors)

    rpc.serialize_to_payload, rpc.deserialize_from_payload = pack_and_count, unpack_and_count
