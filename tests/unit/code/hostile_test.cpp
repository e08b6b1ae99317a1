// Files that were made to cost time or memory: every one ends within CostLimit, in findings or in a
// diagnostic. The generators are ours; nothing is kept as a file.
#include <fmt/format.h>

#include <functional>

#include "scanners/macho/function_starts.h"
#include "scanners/macho/objc.h"
#include "tests/unit/code/limits.h"
#include "tests/unit/code/support.h"
#include "tests/unit/macho/macho_builder.h"

namespace metaldoctor {
namespace {

using testing::ByteWriter;
using testing::CostLimit;
using Words = std::vector<std::uint32_t>;

constexpr std::uint64_t kCodeAddress = 0x1000000;

/// A linked fixture, and code put in the place of its __text: at the end of the file, at an address
/// of its own.
class Host {
 public:
  explicit Host(const char* name = "queries_fast.dylib") {
    original_ = testing::read_file(std::filesystem::path(METALDOCTOR_MACHO_FIXTURES) / name);
    if (original_.empty()) return;
    const auto file = MachOFile::read(original_, "host");
    const auto image = Image::read(file->slices().at(0));
    const auto fixups = Fixups::read(*image);
    for (const ObjcStub& stub : objc_stubs(*image, *fixups).stubs)
      stubs_.emplace(stub.selector, stub.address);
    for (const SelectorSlot& slot : selector_slots(*image, *fixups))
      slots_.emplace(slot.selector, slot.address);
    for (const ImportSlot& slot : import_slots(*image, *fixups))
      slots_.emplace(slot.name, slot.address);
    // The header of __text: the name is in the load commands once.
    const std::string_view commands(reinterpret_cast<const char*>(original_.data()), 0x1000);
    header_ = commands.find("__text");
  }
  bool missing() const { return original_.empty(); }

  /// bl to a stub, as word `index` of the code.
  std::uint32_t send(const std::string& selector, std::size_t index) const {
    const std::uint64_t from = kCodeAddress + index * 4;
    return 0x94000000u | (static_cast<std::uint32_t>((stubs_.at(selector) - from) / 4) & 0x3ffffff);
  }
  std::uint64_t page_of_selectors() const { return stubs_.begin()->second & ~std::uint64_t{0xfff}; }

  /// The displacement from the end of a field at `at` of the code to a selector's or import's slot.
  std::uint32_t to_slot(const std::string& name, std::size_t at) const {
    return static_cast<std::uint32_t>(slots_.at(name) - (kCodeAddress + at + 4));
  }

  std::vector<std::uint8_t> with(const Words& code) const {
    const auto* raw = reinterpret_cast<const std::uint8_t*>(code.data());
    return with(std::vector<std::uint8_t>(raw, raw + code.size() * 4));
  }
  std::vector<std::uint8_t> with(const std::vector<std::uint8_t>& code) const {
    auto bytes = original_;
    bytes.resize((bytes.size() + 3) & ~std::size_t{3});
    const auto offset = static_cast<std::uint32_t>(bytes.size());
    const std::uint64_t size = code.size();
    bytes.insert(bytes.end(), code.begin(), code.end());
    std::memcpy(bytes.data() + header_ + 32, &kCodeAddress, 8);
    std::memcpy(bytes.data() + header_ + 40, &size, 8);
    std::memcpy(bytes.data() + header_ + 48, &offset, 4);
    return bytes;
  }

 private:
  std::vector<std::uint8_t> original_;
  std::map<std::string, std::uint64_t, std::less<>> stubs_, slots_;
  std::size_t header_ = 0;
};

// movz w2, #n; the other encodings are spelled out where they are used.
std::uint32_t family(std::uint32_t n) {
  return 0x52800002u | (n & 0xffff) << 5;
}
constexpr std::uint32_t kRet = 0xd65f03c0, kNop = 0xd503201f;

std::uint32_t branch_to(std::uint32_t opcode, std::int64_t words) {
  return opcode | (static_cast<std::uint32_t>(words) & 0x7ffff) << 5;
}
constexpr std::uint32_t kCbzW0 = 0x34000000, kCbnzW0 = 0x35000000, kBne = 0x54000001;

struct HostileCode {
  const char* what;
  std::function<Words(const Host&)> make;
};

const HostileCode kHostileCode[] = {
    {"sends without end",
     [](const Host& host) {
       Words out;
       while (out.size() < 400'000) {
         out.push_back(family(1001 + out.size() % 20));
         out.push_back(host.send("supportsFamily:", out.size()));
       }
       return out;
     }},
    {"one ladder of 30,000 steps",
     [](const Host& host) {
       Words out;
       for (std::uint32_t n = 0; n < 30'000; ++n) {
         out.push_back(family(n));
         out.push_back(host.send("supportsFamily:", out.size()));
         out.push_back(branch_to(kCbnzW0, 200));
       }
       return out;
     }},
    {"branches everywhere on answers",
     [](const Host& host) {
       Words out;
       std::uint32_t state = 1;
       while (out.size() < 120'000) {
         state = state * 1664525 + 1013904223;
         out.push_back(family(state >> 20));
         out.push_back(host.send("supportsFamily:", out.size()));
         out.push_back(branch_to(kCbzW0, static_cast<int>(state >> 16 & 2047) - 1024));
         out.push_back(0x2a000273);  // orr w19, w19, w0
       }
       return out;
     }},
    {"an expression that doubles",
     [](const Host& host) {
       Words out{0x52800013};  // mov w19, #0
       for (std::uint32_t n = 0; n < 20'000; ++n) {
         out.push_back(family(n));
         out.push_back(host.send("supportsFamily:", out.size()));
         out.push_back(n % 2 ? 0x2a000273 : 0x4a130013);  // orr w19, w19, w0; eor w19, w0, w19
         out.push_back(0x0a130274 + n % 3);               // and w20, w19, w19 and neighbours
       }
       out.push_back(kRet);
       return out;
     }},
    {"4,096 flags, each read by everyone",
     [](const Host& host) {
       Words out{0xaa0003f3};  // mov x19, x0
       for (std::uint32_t n = 0; n < 4096; ++n) {
         out.push_back(family(n));
         out.push_back(host.send("supportsFamily:", out.size()));
         out.push_back(0x39000260 | n << 10);  // strb w0, [x19, #n]
       }
       out.push_back(kRet);
       for (std::uint32_t n = 0; n < 100'000; ++n)
         out.push_back(0x39400000 | (n % 4096) << 10);  // ldrb w0, [x0, #n]
       return out;
     }},
    {"500 switches over 5,000 cases",
     [](const Host& host) {
       Words out;
       for (int n = 0; n < 500; ++n) out.insert(out.end(), {0xd61f0100, kNop});  // br x8
       for (std::uint32_t n = 0; n < 5'000; ++n) {
         out.push_back(family(n));
         out.push_back(host.send("supportsFamily:", out.size()));
         out.push_back(kRet);
       }
       return out;
     }},
    {"loops in loops",
     [](const Host& host) {
       Words out;
       for (std::uint32_t n = 0; n < 3'000; ++n) {
         out.push_back(0x91000400 | n % 31 | n % 31 << 5);  // add xN, xN, #1
         out.push_back(0xf9000000 | n % 29 << 5 | (n % 500) << 10);
       }
       out.push_back(host.send("supportsFamily:", out.size()));
       for (int n = 0; n < 3'000; ++n)
         out.push_back(branch_to(kBne, -static_cast<int>(out.size()) + n % 2'900));
       return out;
     }},
    {"adrp of the selectors' page, 8 MB of it",
     [](const Host& host) {
       Words out;
       while (out.size() < 2'000'000) {
         const std::uint64_t pages =
             (host.page_of_selectors() >> 12) - ((kCodeAddress + out.size() * 4) >> 12);
         const auto imm = static_cast<std::uint32_t>(pages + out.size() % 4);
         out.push_back(0x90000000 | (imm & 3) << 29 | (imm >> 2 & 0x7ffff) << 5 | out.size() % 31);
       }
       out.push_back(host.send("supportsFamily:", out.size()));
       return out;
     }},
    {"one function of 30 MB",
     [](const Host& host) {
       Words out(7'500'000, kNop);
       for (std::size_t at = 0; at < out.size(); at += 100'000)
         out[at] = host.send("supportsFamily:", at);
       return out;
     }},
    {"random words",
     [](const Host& host) {
       Words out;
       std::uint64_t state = 88172645463325252ull;
       while (out.size() < 500'000) {
         state ^= state << 13, state ^= state >> 7, state ^= state << 17;
         out.push_back(state % 8 ? static_cast<std::uint32_t>(state >> 20)
                                 : host.send("supportsFamily:", out.size()));
       }
       return out;
     }},
};

TEST(Hostile, CodeCostsNoMoreThanItsLimit) {
  const Host host;
  if (host.missing()) GTEST_SKIP() << "SKIPPED: clang or ld64.lld was not there at build time";
  const Vocabulary words = testing::small_vocabulary();
  for (const HostileCode& one : kHostileCode) {
    const auto bytes = host.with(one.make(host));
    const CostLimit limit(one.what, bytes.size());
    const auto file = MachOFile::read(bytes, one.what);
    ASSERT_TRUE(file);
    const auto found = audit(file->slices().at(0), words, one.what);
    if (!found) {
      EXPECT_EQ(found.error().fault, Fault::input);
      continue;
    }
    const auto totals = found->totals();
    EXPECT_GT(totals.found, 0u) << one.what;
    EXPECT_EQ(totals.found, totals.resolved + totals.unresolved) << one.what;
  }
}

struct HostileX86 {
  const char* what;
  std::function<void(const Host&, ByteWriter&)> step;  ///< appends some code
  std::size_t bytes = 400'000;
};

/// mov rsi, [selector]; mov edx, n; call [objc_msgSend]
void send_x86(const Host& host, ByteWriter& out, std::uint32_t n) {
  out.put(std::uint8_t{0x48}).put(std::uint16_t{0x358b});
  out.put(host.to_slot("supportsFamily:", out.bytes.size()));
  out.put(std::uint8_t{0xba}).put(n).put(std::uint16_t{0x15ff});
  out.put(host.to_slot("_objc_msgSend", out.bytes.size()));
}

const HostileX86 kHostileX86[] = {
    {"sends without end", [](const Host& host, ByteWriter& out) { send_x86(host, out, 1007); }},
    {"a branch after every send",
     [](const Host& host, ByteWriter& out) {
       send_x86(host, out, static_cast<std::uint32_t>(out.bytes.size()));
       const auto back = static_cast<std::int32_t>(out.bytes.size() * 7 % 4096) - 2048;
       out.put(std::uint16_t{0xc084}).put(std::uint16_t{0x840f}).put(back);  // test al, al; je
     }},
    {"one long instruction after another",
     [](const Host& host, ByteWriter& out) {
       if (out.bytes.empty()) send_x86(host, out, 1007);
       for (int i = 0; i < 14; ++i) out.put(std::uint8_t{0x66});
       out.put(std::uint8_t{0x90});
     },
     8'000'000},
    {"every byte a call",
     [](const Host& host, ByteWriter& out) {
       if (out.bytes.empty()) send_x86(host, out, 1007);
       out.put(std::uint8_t{0xe8});
     },
     8'000'000},
};

TEST(Hostile, X86CodeCostsNoMoreThanItsLimit) {
  const Host host("sends_x86_64.dylib");
  if (host.missing()) GTEST_SKIP() << "SKIPPED: clang or ld64.lld was not there at build time";
  const Vocabulary words = testing::small_vocabulary();
  for (const HostileX86& one : kHostileX86) {
    ByteWriter code;
    while (code.bytes.size() < one.bytes) one.step(host, code);
    const auto bytes = host.with(code.bytes);
    const CostLimit limit(one.what, bytes.size());
    const auto file = MachOFile::read(bytes, one.what);
    ASSERT_TRUE(file);
    const auto found = audit(file->slices().at(0), words, one.what);
    ASSERT_TRUE(found) << found.error().what;
    const auto totals = found->totals();
    EXPECT_GT(totals.found, 0u) << one.what;
    EXPECT_EQ(totals.found, totals.resolved + totals.unresolved) << one.what;
  }
}

struct HostileFile {
  const char* what;
  std::function<std::vector<std::uint8_t>()> make;
};

std::vector<std::uint8_t> archive_of(std::size_t members, const std::string& body) {
  ByteWriter out;
  const std::string magic = "!<arch>\n";
  out.bytes.assign(magic.begin(), magic.end());
  for (std::size_t i = 0; i < members; ++i) {
    const std::string member =
        fmt::format("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", "m", 0, 0, 0, 644, body.size()) + body;
    out.bytes.insert(out.bytes.end(), member.begin(), member.end());
  }
  return out.bytes;
}

const HostileFile kHostileFiles[] = {
    {"100,000 imports that share one long name",
     [] {
       testing::ChainedPayload payload;
       payload.imports_count = 100'000;
       payload.imports.resize(400'000);
       payload.names = std::string(100'000, 'n') + '\0';
       testing::SmallImage image;
       image.data = {0};
       image.linkedit = payload.build();
       return image.build();
     }},
    {"an exports trie that leads back to itself",
     [] {
       testing::SmallImage image;
       image.linkedit_command = 0x80000033;
       for (int i = 0; i < 2'000; ++i)
         image.linkedit.insert(image.linkedit.end(), {0, 2, 'a', 0, 0});
       return image.build();
     }},
    {"function starts at every byte",
     [] {
       testing::SmallImage image;
       image.linkedit_command = 0x26;
       image.linkedit.assign(8'000'000, 1);
       return image.build();
     }},
    {"200,000 empty members", [] { return archive_of(200'001, ""); }},
    {"30,000 members that are headers only",
     [] {
       const auto image = testing::SmallImage().build();
       return archive_of(30'000, std::string(image.begin(), image.begin() + 32));
     }},
    {"64 slices that are one",
     [] {
       ByteWriter out;
       const auto be = [&](std::uint32_t value) { out.put(__builtin_bswap32(value)); };
       const std::vector<std::uint8_t> body = testing::SmallImage().build();
       be(0xcafebabe), be(42);
       for (int i = 0; i < 42; ++i)
         be(0x0100000c), be(0), be(0x1000), be(static_cast<std::uint32_t>(body.size())), be(0);
       return out.pad_to(0x1000).append(body).bytes;
     }},
    {"65,536 load commands",
     [] {
       ByteWriter out;
       out.put(0xfeedfacfu).put(0x0100000cu).put(0u).put(6u).put(65'536u).put(65'536u * 24);
       out.put(std::uint64_t{0});
       for (int i = 0; i < 65'536; ++i)
         out.put(0xcu).put(24u).put(8u).put(0u).put(0u).put(0u);  // LC_LOAD_DYLIB
       return out.bytes;
     }},
};

TEST(Hostile, FilesCostNoMoreThanTheirLimit) {
  const Vocabulary words = testing::small_vocabulary();
  for (const HostileFile& one : kHostileFiles) {
    const auto bytes = one.make();
    const CostLimit limit(one.what, bytes.size());
    const auto file = MachOFile::read(bytes, one.what);
    if (!file) {
      EXPECT_EQ(file.error().fault, Fault::input) << one.what;
      EXPECT_FALSE(file.error().what.empty()) << one.what;
      continue;
    }
    Auditor auditor(words);
    for (const Slice& slice : file->slices())
      if (const auto found = auditor.audit(slice, one.what); !found) {
        EXPECT_EQ(found.error().fault, Fault::input) << one.what;
        EXPECT_FALSE(found.error().where.empty()) << one.what;
      }
  }
}

}  // namespace
}  // namespace metaldoctor
