#include "espalier/file/npy_file.hpp"

#include <zip.h>

#include <algorithm>

#include "espalier/base/error.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/file/input_files.hpp"

namespace espalier {

namespace {

// An archive that is open.
using Zip = std::unique_ptr<zip_t, decltype(&zip_discard)>;

Zip open_zip(const std::string& path) {
  check_is_input(path);
  int code = 0;
  Zip zip(zip_open(path.c_str(), ZIP_RDONLY, &code), zip_discard);
  if (zip) return zip;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  input_error("cannot open {} as an archive of arrays (.npz): {}", path, reason);
}

class ZipMember : public ByteStream {
 public:
  ZipMember(const std::string& path, const std::string& member, const std::string& name)
      : zip_(open_zip(path)), name_(name) {
    zip_stat_t found;
    zip_stat_init(&found);
    if (zip_stat(zip_.get(), member.c_str(), 0, &found) != 0 || (found.valid & ZIP_STAT_SIZE) == 0)
      input_error("{}: is not in the archive", name);
    size_ = static_cast<std::int64_t>(found.size);
    file_ = zip_fopen(zip_.get(), member.c_str(), 0);
    if (file_ == nullptr) input_error("{}: cannot be read: {}", name, zip_strerror(zip_.get()));
  }
  ~ZipMember() override { zip_fclose(file_); }
  std::int64_t size() const override { return size_; }
  std::int64_t read(char* to, std::int64_t count) override {
    const auto got = zip_fread(file_, to, static_cast<zip_uint64_t>(count));
    if (got < 0)
      input_error("{}: the archive is damaged ({}); fetch it again", name_, zip_file_strerror(file_));
    note_movement();
    return got;
  }

 private:
  Zip zip_;
  std::string name_;
  std::int64_t size_ = 0;
  zip_file_t* file_ = nullptr;
};

}  // namespace

NpzFile::NpzFile(const std::string& path) : path_(path) {
  const auto zip = open_zip(path);
  const auto count = zip_get_num_entries(zip.get(), 0);
  const std::string ending = ".npy";
  for (zip_int64_t k = 0; k < count; ++k) {
    const char* name = zip_get_name(zip.get(), static_cast<zip_uint64_t>(k), 0);
    const std::string member = name == nullptr ? "" : name;
    if (!member.ends_with(ending)) input_error("{}: holds {}, which is no array (.npy)", path, member);
    names_.push_back(member.substr(0, member.size() - ending.size()));
  }
}

bool NpzFile::has(const std::string& name) const {
  return std::ranges::find(names_, name) != names_.end();
}

std::unique_ptr<NpyArray> NpzFile::open(const std::string& name, bool texts) const {
  const auto place = fmt::format("{}: {}", path_, name);
  return std::make_unique<NpyArray>(std::make_unique<ZipMember>(path_, name + ".npy", place), place, texts);
}

}  // namespace espalier
