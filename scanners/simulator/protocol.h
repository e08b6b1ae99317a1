#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scanners/device/capture.h"
#include "scanners/macho/bytes.h"
#include "tables/answer.h"
#include "tables/diagnostic.h"
#include "tables/document.h"
#include "tables/tables.h"

namespace metaldoctor {

// What is asked of the simulator and what it says. Free of Unicorn: the tool that links the engine
// (GPL) speaks JSON, see sim-request.schema.json and sim-result.schema.json.

/// A Mach-O file to load. Order is dyld's: inserted libraries first, then the program.
struct SimImage {
  std::string path;  ///< as the program sees it
  Bytes bytes;       ///< must outlive the simulation; never written. Text is mapped from here.
};

/// Metal's device classes stand around one capture.
struct SimDevice {
  Capture capture;
  std::string driver;  ///< class name; empty = AppleParavirtDevice for a guest, else an AGX class
  enum class Wrapper { none, debug, capture } wrapper = Wrapper::none;
};

enum class SimMetal {
  linked,  ///< loaded at start if an image links it, else by dlopen
  start,   ///< loaded at start whatever the images link
  never,   ///< no image links it and dlopen fails
};

/// A result of an earlier step, used as an argument.
struct SimStepResult {
  std::size_t step = 0;
};
/// A block of zero bytes on the heap, made before the step.
struct SimBuffer {
  std::uint64_t size = 0;
};
using SimArgument = std::variant<std::int64_t, std::string, SimStepResult, SimBuffer>;

/// One thing that happens in the simulated process, in order.
struct SimStep {
  enum class Kind {
    initializers,  ///< of all images, in image order; each image once
    main,          ///< LC_MAIN of the executable, with `argv`
    call,          ///< `symbol` (or `address`, unslid) of `image` with `arguments`
    ask,           ///< `queries` to every device, sent by the program itself
    unload,        ///< run handlers of atexit
  } kind = Kind::call;
  std::string image;   ///< path or leaf name; empty = the first image that has the symbol
  std::string symbol;  ///< "_ggml_metal_device_init"
  std::optional<std::uint64_t> address;
  std::vector<SimArgument> arguments;
  std::vector<QueryKey> queries;
  std::vector<std::string> argv;
};

struct SimBudget {
  std::uint64_t instructions = 50'000'000;  ///< a run
  std::uint64_t memory = std::uint64_t{256} << 20;
  std::uint64_t milliseconds = 20'000;  ///< a run; ends runs only, never decides a result
  unsigned call_depth = 64;             ///< calls from the host back into the program
  std::uint64_t log_bytes = std::uint64_t{4} << 20;
};

struct SimRun {
  std::string id;
  std::vector<Answer> answers;  ///< instead of the captures' answers, on every device
  std::map<std::string, std::string> environment;  ///< added to the request's
};

/// A method that this system has otherwise than the known ones.
struct SimMethodChange {
  std::string class_name, selector;
  std::optional<std::string> types;  ///< its encoding; none = the class has no such method
};

struct SimRequest {
  std::vector<SimImage> images;
  std::string arch;  ///< "arm64", "x86_64"; empty = arm64 if the first image has it
  SimMetal metal = SimMetal::linked;
  std::vector<SimDevice> devices;
  std::vector<SimMethodChange> system;
  std::vector<SimStep> steps;
  std::vector<SimRun> runs;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> files;  ///< path -> text, what open() finds
  SimBudget budget;
};

/// How a host function stands in for the real one.
enum class Fidelity {
  exact,     ///< same result for the same input
  constant,  ///< a fixed answer that the real one could give as well
  assumed,   ///< a guess the run depends on: listed among the assumptions
  unknown,   ///< nothing is known of it; it answered 0
};
std::string_view to_string(Fidelity fidelity);

struct SimStop {
  std::string kind;  ///< stable: "budget-instructions", "unmapped-read", "abort", ...
  std::string text;
  std::string where;  ///< "libggml-metal.so+0x6854"
};

/// A capability question that reached a device.
struct SimQuery {
  QueryKey key;
  std::int64_t answer = 0;  ///< what the sender got; texts and structures: 0
  std::string text;         ///< for texts
  std::string caller;       ///< image + offset of the return address
  std::size_t device = 0;   ///< index into the request's devices
  bool from_metal = false;  ///< Metal's own code asked
  std::uint64_t count = 1;
};
struct SimMessage {
  std::string text;  ///< "[NSMutableDictionary setObject:forKey:] 'GGML_METAL_HAS_BF16'"
  std::uint64_t count = 1;
};
struct SimImport {
  std::string name;
  Fidelity fidelity = Fidelity::exact;
  std::uint64_t calls = 0;
};
/// Bytes that the program wrote, with a name that does not depend on addresses.
struct SimWrite {
  std::string object;        ///< "heap(libggml-metal.so+0x80dc#1)", "libx.dylib"
  std::uint64_t offset = 0;  ///< in the object
  std::vector<std::uint8_t> bytes;
  /// Where an aligned word holds an address: offset in the object -> its name.
  std::map<std::uint64_t, std::string> pointers;
};
struct SimLogLine {
  std::string stream;  ///< "stderr", "stdout", "NSLog"
  std::string text;
  std::string comparable;  ///< with addresses replaced by names
};
/// A method whose implementation is the program's own at the end of a run.
struct SimOverride {
  std::string class_name, selector;
  std::string types;           ///< encoding it was installed with
  std::string implementation;  ///< image + offset
  bool added = false;          ///< the class had no method of its own
};

struct Trace {
  std::string id;
  std::optional<SimStop> stop;         ///< none = every step returned
  std::vector<std::uint64_t> results;  ///< one a step that returned
  std::optional<int> exit_status;      ///< exit() or the result of main
  std::uint64_t instructions = 0;
  std::vector<std::string> path;    ///< distinct blocks in order of first execution
  std::vector<std::uint32_t> walk;  ///< indices into path, in order, up to a bound; not in JSON
  std::vector<SimQuery> queries;
  std::map<std::int64_t, std::uint64_t> metal_family_queries;  ///< supportsFamily: by Metal itself
  std::vector<std::string> metal_features;  ///< familySupports... that Metal's snapshot holds
  std::vector<std::string> events;          ///< "0: initGPUFamilySupport"
  std::vector<SimMessage> messages;
  std::vector<SimLogLine> log;
  std::vector<SimImport> imports;
  std::vector<SimWrite> writes;
  std::vector<SimOverride> overrides;
  std::vector<std::string> assumptions;  ///< sorted, unique
  std::map<std::string, std::string> files_written;
  std::map<std::string, std::string> environment;  ///< at the end
};

/// The first byte, line, message and block in which a run differs from the first run.
struct SimDifference {
  std::string from, to;  ///< run ids
  struct Byte {
    std::string where;
    std::string before, after;  ///< "05", "-" where only one run wrote it, or a pointer's name
  };
  std::vector<Byte> bytes;
  struct Line {
    std::string before, after;  ///< empty = absent
  };
  std::vector<Line> log;
  std::vector<Line> messages;
  std::vector<std::string> queries_changed;  ///< "supportsFamily:1007 no -> yes at ..."
  std::vector<std::string> features_gained, features_lost;
  std::string first_branch;  ///< the last common block before the walks part; empty = same walk
  std::vector<std::string> only_before, only_after;  ///< blocks
  enum class Verdict {
    differs,
    no_difference_observed,
    inconclusive
  } verdict = Verdict::inconclusive;
};

struct SimResult {
  std::vector<Trace> runs;
  std::vector<SimDifference> differences;  ///< each later run against the first
  std::vector<std::string> assumptions;    ///< of all runs
};

/// What the caller lends: nothing here reads the clock by itself.
struct SimHost {
  std::function<std::uint64_t()> milliseconds;  ///< monotonic; empty = no time budget
};

/// Runs every run of the request from the same state. An error is a request or an image that
/// cannot be used at all; whatever happens inside a run ends that run with a named stop.
Result<SimResult> simulate(const Tables& tables, const SimRequest& request, const SimHost& host);

/// How run `to` differs from run `from`.
SimDifference compare_traces(const Trace& from, const Trace& to);

/// Libraries that the images of the request link or load by @rpath, @loader_path or a bare path
/// and that are not among them: leaf names, to be looked for beside the file.
Result<std::vector<std::string>> missing_libraries(const SimRequest& request);

/// JSON forms. An image is a path, and the caller maps the file, or a path with its bytes. Moved,
/// never copied: images point into `contents`.
struct SimRequestDocument {
  SimRequest request;
  std::vector<std::string> image_files;             ///< where to read each image from
  std::vector<std::vector<std::uint8_t>> contents;  ///< of each image; empty = in the file
};
Result<SimRequestDocument> read_sim_request(const Tables& tables, std::string_view text,
                                            std::string_view name);
Json to_json(const SimResult& result);

}  // namespace metaldoctor
