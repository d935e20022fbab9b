// The methods, for the table in order_methods.cpp. As OrderMethod::clusters says.
#pragma once

#include "espalier/partition/order_methods.hpp"

namespace espalier {

Buffer<std::uint16_t> order_by_metis(const OrderTask& task);
void check_metis(std::int64_t nodes, std::int64_t entries);
Buffer<std::uint16_t> order_by_multilevel(const OrderTask& task);
Buffer<std::uint16_t> order_by_streaming(const OrderTask& task);
Buffer<std::uint16_t> order_by_cut(const OrderTask& task);

}  // namespace espalier
