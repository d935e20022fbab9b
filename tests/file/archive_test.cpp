// ranks: 1 2 3
// Laws: what is written under a name is read under it, to the last bit, and what is missing, of
// another type or shape, or of another format is refused with its name; what ranks write of a
// sealed archive, each its rows, is byte for byte what one makes in memory; an array that is not
// what its digest says is refused, one without a digest is not.
#include "espalier/file/archive.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "espalier/base/error.hpp"
#include "files.hpp"
#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

constexpr ArchiveFormat kSealed = {"espalier-test", "test"};
constexpr ArchiveFormat kBeside = {"espalier-test", "test", "make another"};

// Small, empty and larger than what is moved at a time. Of them each rank saves an even range, or
// this one everything.
std::vector<StateTensor> tensors_of(bool alone) {
  std::vector<StateTensor> tensors;
  for (const auto& [name, rows, columns] : {std::tuple("a/first", 7, 3), std::tuple("none", 0, 4),
                                            std::tuple("thin", 5, 0), std::tuple("a/wide", 3, 700'000)}) {
    Buffer<float> values(static_cast<std::size_t>(rows) * columns);
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = 1.0f / static_cast<float>(k + 1);
    auto& tensor = tensors.emplace_back(kept_tensor(name, rows, columns, std::move(values)));
    if (!alone) tensor.mine = {even_range(rows, test_world().size(), test_world().rank())};
  }
  return tensors;
}

void write_rest(ArchiveWriter& archive) {
  archive("text", "a \"text\" and \xc3\xa9");
  archive("long", std::string(100'000, 'x'));
  archive("whole", (std::int64_t{1} << 60) + 1);
  archive("small", -7);
  archive("number", std::nextafter(1.0, 2.0));
  archive("digest", std::uint64_t{0x8000000000000001u});
  archive("there", std::optional<std::int64_t>(3));
  archive("not_there", std::optional<std::int64_t>());
  archive.numbers("/few", {3}, {0.1, -0.0, 5e-324});
  archive.numbers("/row", {1, 2}, {1.0 / 3, 1e300});
  archive.numbers("/nothing", {0}, {});
}

template <class T>
T read(const ArchiveReader& archive, const char* name) {
  T value{};
  archive(name, value);
  return value;
}

void expect_all(const ArchiveReader& archive) {
  EXPECT_EQ(archive.text("text"), "a \"text\" and \xc3\xa9");
  EXPECT_EQ(archive.text("long").size(), 100'000u);
  EXPECT_EQ(read<std::int64_t>(archive, "whole"), (std::int64_t{1} << 60) + 1);
  EXPECT_EQ(read<int>(archive, "small"), -7);
  EXPECT_EQ(read<double>(archive, "number"), std::nextafter(1.0, 2.0));
  EXPECT_EQ(read<std::uint64_t>(archive, "digest"), 0x8000000000000001u);
  EXPECT_EQ(read<std::optional<std::int64_t>>(archive, "there"), 3);
  EXPECT_FALSE(archive.has("not_there"));
  EXPECT_EQ(read<std::optional<std::int64_t>>(archive, "not_there"), std::nullopt);
  EXPECT_EQ(archive.array<double>("/few", {-1}), (std::vector<double>{0.1, 0.0, 5e-324}));
  EXPECT_TRUE(std::signbit(archive.array<double>("/few", {3})[1]));
  EXPECT_EQ(archive.array<double>("/row", {1, -1}), (std::vector<double>{1.0 / 3, 1e300}));
  EXPECT_TRUE(archive.array<double>("/nothing", {-1}).empty());
  for (const auto& wanted : tensors_of(true)) {
    const auto found = archive.tensor(wanted.name);
    EXPECT_EQ(found.rows, wanted.rows) << wanted.name;
    EXPECT_EQ(found.columns, wanted.columns) << wanted.name;
    EXPECT_EQ(found.all(), wanted.all()) << wanted.name;
  }
}

void expect_refusals(const ArchiveReader& archive) {
  const auto refuse = [](const std::vector<std::string>& words, const auto& work) {
    expect_refused(ExitCode::kInput, words, work);
  };
  refuse({"its attribute nothing is missing"}, [&] { archive.text("nothing"); });
  refuse({"its attribute whole is a whole number, not a text"}, [&] { archive.text("whole"); });
  refuse({"its attribute text is", "not a whole number"}, [&] { read<int>(archive, "text"); });
  refuse({"its attribute small is", "not a floating-point number"}, [&] { read<double>(archive, "small"); });
  refuse({"its attribute text is", "not 16 hex digits"}, [&] { read<std::uint64_t>(archive, "text"); });
  refuse({"its attribute text cannot be understood: so"},
         [&] { archive.understand("text", [](const auto&) { throw std::runtime_error("so"); }); });
  refuse({"there is no dataset /other"}, [&] { archive.array<double>("/other", {-1}); });
  refuse({"/few is not float64 [4]"}, [&] { archive.array<double>("/few", {4}); });
  refuse({"/few is not float64 [any, 3]"}, [&] { archive.array<double>("/few", {-1, 3}); });
  refuse({"/few is not int64 [any]"}, [&] { archive.array<std::int64_t>("/few", {-1}); });
  refuse({"few is no matrix of numbers"}, [&] { archive.tensor("few"); });
}

TEST(SealedArchive, IsTheSameBytesWrittenByRanksAndMadeInMemory) {
  const auto& world = test_world();
  const auto path = test_folder("sealed_archive") + "/archive.h5";
  write_sealed(world, kSealed, path, tensors_of(false), write_rest);
  const auto bytes = sealed_bytes(kSealed, tensors_of(true), write_rest);
  EXPECT_TRUE(read_file(path) == bytes);
  EXPECT_TRUE(is_sealed_as(kSealed, path));
  EXPECT_FALSE(is_sealed_as({"espalier-tes", "other"}, path));
  check_seal(world, kSealed, path);
  expect_all(ArchiveReader(kSealed, path));
  const ArchiveReader in_memory(kSealed, path, bytes);
  expect_all(in_memory);
  expect_refusals(in_memory);
  expect_refused(ExitCode::kInput, {path + ": is no other of this program", "\"espalier-other 1\""}, [&] {
    check_seal(world, {"espalier-other", "other"}, path);
  });
}

// An array of which each rank writes its part.
void write_beside(const std::string& path) {
  const auto& world = test_world();
  hdf5::Output output(world, path);
  const std::vector<std::int64_t> all = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const auto mine = even_range(5, world.size(), world.rank());
  write_array<std::int64_t>(output, "/pairs", {5, 2}, mine.begin,
                            std::span(all).subspan(2 * mine.begin, 2 * mine.size()), "test");
  ArchiveWriter archive(output.file(), kBeside);
  archive("method", "by ranks");
  output.require(archive.good(), "an attribute");
  output.commit();
}

TEST(ArchiveBesideAGraph, IsLookedAtAndItsDigestsAreChecked) {
  const auto path = test_folder("archive_beside") + "/archive.h5";
  write_beside(path);
  if (test_world().rank() != 0) return;
  {
    const auto archive = ArchiveReader::look_at(kBeside, path);
    EXPECT_EQ(archive.text("method"), "by ranks");
    EXPECT_EQ(archive.array<std::int64_t>("/pairs", {-1, 2}),
              (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  }
  const auto refuse = [&](const std::vector<std::string>& words, const ArchiveFormat& format = kBeside) {
    expect_refused(ExitCode::kInput, words, [&] {
      ArchiveReader::look_at(format, path).array<std::int64_t>("/pairs", {-1, 2});
    });
  };
  const auto change = [&](const auto& work) {
    auto file = hdf5::open_file_alone(path, true);
    work(file, hdf5::open_dataset(file, "/pairs"));
  };
  refuse({"order " + path + ": is HDF5 but no order", "\"espalier-test\"", "; so"},
         {"espalier-order", "order", "so"});
  change([](const auto&, const auto& pairs) {
    const std::int64_t other[] = {3, 5};
    hdf5::write_slab(pairs, hdf5::memory_type<std::int64_t>(), {1, 2, 2}, other);
  });
  refuse({"test " + path, "/pairs is not what was written", "; make another"});
  change([](const auto&, const auto& pairs) { hdf5::remove_attribute(pairs.handle, "digest"); });
  EXPECT_EQ(ArchiveReader::look_at(kBeside, path).array<std::int64_t>("/pairs", {5, 2})[3], 5);
  change([](const auto& file, const auto&) {
    hdf5::remove_attribute(file, "version");
    hdf5::write_integer_attribute(file, "version", 2);
  });
  refuse({"is of version 2; this program reads version 1"});
  std::filesystem::resize_file(path, 300);
  refuse({"test " + path});
  std::filesystem::remove(path);
  refuse({"no such file (seen from"});
  std::filesystem::create_directory(path);
  refuse({"is a folder, not a file"});
}

}  // namespace
}  // namespace espalier
