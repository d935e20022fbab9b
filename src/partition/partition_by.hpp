// The methods, for the table in partition_methods.cpp. As VertexPartitionMethod::clusters says.
#pragma once

#include "espalier/partition/partition_methods.hpp"

namespace espalier {

Buffer<std::uint16_t> partition_by_metis(const VertexPartitionTask& task);
void check_metis(std::int64_t nodes, std::int64_t entries);
Buffer<std::uint16_t> partition_by_multilevel(const VertexPartitionTask& task);
Buffer<std::uint16_t> partition_by_streaming(const VertexPartitionTask& task);
Buffer<std::uint16_t> partition_by_cut(const VertexPartitionTask& task);

}  // namespace espalier
