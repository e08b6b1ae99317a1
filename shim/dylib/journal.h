#pragma once
// The journal: which questions this process asked, what the device said, what was given. In the
// wire format of tables/wire_format.h; nothing is allocated, nothing is written unless asked for.
#include "shim/dylib/config.h"
#include "tables/wire_format.h"

namespace metaldoctor::shim {

class Journal {
 public:
  /// `path`: METALDOCTOR_JOURNAL. A file (appended to, mode 0600, no symbolic link), "stderr", or
  /// null for no journal.
  void open(const char* path);
  bool is_open() const { return file_plus_one_ != 0; }

  void process(const char* executable, const Configuration& configuration);
  void install(const char* device_class, const char* state, uint64_t hooks, const char* reason,
               const char* selector);
  /// Writes each (query, argument) once.
  void asked(const char* device_class, const Query& query, int64_t argument, uint64_t stock,
             uint64_t given, const void* caller);

 private:
  void send(wire::Line& line) const;
  bool first_time(const Query& query, int64_t argument);

  int file_plus_one_ = 0;  ///< zero, so that the whole state takes no space in the file
  uint64_t asked_[wire::kMostQuestions] = {};  ///< open addressing; 0 = free
};

}  // namespace metaldoctor::shim
