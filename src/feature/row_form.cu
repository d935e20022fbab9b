// Forms of rows on a GPU. Numbers are copied by packs (dense/gather.cu); a thread unpacks a code.
#include <omp.h>

#include "espalier/base/arrays.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/gather.hpp"
#include "espalier/feature/quantised_rows.hpp"

namespace espalier {

namespace {

struct RowSources {
  const std::byte *from, *own;
  const std::int64_t* source;
};

template <class T>
void gather_numbers(const Cuda& cuda, const RowSources& of, MatrixView<float, Cuda> to) {
  const auto numbers = [&](const std::byte* rows) {
    return ConstMatrixView<T, Cuda>(to.rows, to.columns, reinterpret_cast<const T*>(rows));
  };
  gather_rows<T>(cuda, numbers(of.from), numbers(of.own), of.source, to);
}

void gather_codes(const Cuda& cuda, const QuantisationOn<Cuda>& packing, std::int64_t row_bytes,
                  const RowSources& of, MatrixView<float, Cuda> to) {
  const auto* const least = packing.least.data();
  const auto* const step = packing.step.data();
  const int bits = packing.bits;
  for_each_in_rows(
      cuda, "dequantise_rows", to.rows, to.columns, [=] __device__(std::int64_t k, std::int64_t j) {
        const auto place = of.source[k];
        const auto* const row = place < 0 ? of.own + ~place * row_bytes : of.from + place * row_bytes;
        const auto code = quantised_code(reinterpret_cast<const std::uint8_t*>(row), j, bits);
        to(k, j) = quantised_number(code, least[j], step[j]);
      });
}

}  // namespace

void gather_rows(const Cuda& cuda, const RowFormOn<Cuda>& form, const std::byte* from, const std::byte* own,
                 const std::int64_t* source, MatrixView<float, Cuda> to) {
  ESPALIER_CHECK(to.columns == form.width, "{} columns of rows -> {}", form.width, to.columns);
  const RowSources of = {from, own, source};
  switch (form.kind->elements) {
    case RowElements::kFloat:
      return gather_numbers<float>(cuda, of, to);
    case RowElements::kHalf:
      return gather_numbers<Half>(cuda, of, to);
    case RowElements::kBFloat16:
      return gather_numbers<BFloat16>(cuda, of, to);
    case RowElements::kCodes:
      return gather_codes(cuda, *form.codes, form.row_bytes(), of, to);
  }
}

StoredRows<Cuda> to_device(const Cuda& cuda, const StoredRows<Cpu>& host, Placement placement, bool narrow) {
  if (narrow && host.form.kind->narrows) {
    const StoredRows<Cpu> narrowed({&row_kind_of(BFloat16()), host.form.width}, host.rows);
    write_rows(narrowed.form, host.floats(), narrowed.data, omp_get_max_threads());
    return to_device(cuda, narrowed, placement);
  }
  RowFormOn<Cuda> form = {host.form.kind, host.form.width};
  // What codes stand for is read again and again.
  if (const auto& of = host.form.codes)
    form.codes = std::make_shared<QuantisationOn<Cuda>>(
        QuantisationOn<Cuda>{of->columns, of->bits, upload(cuda, of->least), upload(cuda, of->step)});
  auto bytes = std::make_shared<DeviceArray<std::byte>>(0, placement);
  upload(cuda, std::span<const std::byte>(host.data, static_cast<std::size_t>(host.bytes())), *bytes);
  return {std::move(form), host.rows, std::move(bytes)};
}

}  // namespace espalier
