// What happens in a simulated process: initialisers, main, calls and questions.
#include <fmt/format.h>

#include <algorithm>

#include "scanners/simulator/call_access.h"

namespace metaldoctor {

/// Runs the steps of a request in a process.
class Steps {
 public:
  explicit Steps(Process& process) : process_(process) {}

  void run() {
    for (const SimStep& step : process_.request.steps) {
      if (process_.stopped()) return;
      const auto result = run(step);
      if (result) process_.results_.push_back(*result);
    }
  }

 private:
  using Result64 = std::optional<std::uint64_t>;
  using Kind = SimStep::Kind;

  Result64 run(const SimStep& step) {
    switch (step.kind) {
      case Kind::initializers:
        return initializers();
      case Kind::main:
        return main(step);
      case Kind::call:
        return call(step);
      case Kind::ask:
        return ask(step);
      case Kind::unload:
        return unload();
    }
    return std::nullopt;
  }

  /// argc, argv, envp, apple: as dyld hands them to initialisers and main.
  std::array<std::uint64_t, 4> program_arguments(const SimStep& step) {
    const auto list = [&](const std::vector<std::string>& texts) {
      const std::uint64_t at = process_.objc.reserve((texts.size() + 1) * 8);
      for (std::size_t i = 0; i < texts.size(); ++i)
        process_.memory.store(at + i * 8, process_.objc.text(texts[i]), true);
      return at;
    };
    std::vector<std::string> environment;
    for (const auto& [name, value] : process_.environment)
      environment.push_back(name + "=" + value);
    return {step.argv.size(), list(step.argv), list(environment),
            list({"executable_path=program"})};
  }

  Result64 initializers() {
    constexpr std::uint32_t function_pointers = 0x9, offsets = 0x16;  // S_MOD_INIT_..., S_INIT_...
    const auto arguments = program_arguments({});
    for (SimLoaded& image : process_.images.images()) {
      if (std::exchange(image.initialized, true)) continue;
      for (const Section& section : image.image->sections()) {
        const std::uint64_t start = image.address(section.address);
        if (section.type == function_pointers)
          for (std::uint64_t at = 0; at + 8 <= section.size; at += 8)
            if (!process_.call(process_.memory.load<std::uint64_t>(start + at).value_or(0),
                               arguments))
              return std::nullopt;
        if (section.type == offsets)
          for (std::uint64_t at = 0; at + 4 <= section.size; at += 4) {
            const std::uint64_t offset =
                process_.memory.load<std::uint32_t>(start + at).value_or(0);
            if (!process_.call(image.address(image.image->base()) + offset, arguments))
              return std::nullopt;
          }
      }
    }
    return 0;
  }

  Result64 main(const SimStep& step) {
    for (const SimLoaded& image : process_.images.images()) {
      if (!image.image->entry_offset()) continue;
      const std::uint64_t entry = image.address(image.image->base()) + *image.image->entry_offset();
      const auto status = process_.call(entry, program_arguments(step));
      if (status) process_.exit_status_ = static_cast<int>(*status & 0xff);
      return status;
    }
    return refuse("no image has a main function (LC_MAIN)");
  }

  Result64 refuse(std::string text) {
    process_.stop("request", std::move(text), 0);
    return std::nullopt;
  }

  Result64 call(const SimStep& step) {
    const SimLoaded* image = step.image.empty() ? nullptr : process_.images.find(step.image);
    if (!step.image.empty() && !image)
      return refuse(fmt::format("there is no image {}", step.image));
    std::optional<std::uint64_t> function;
    if (step.address) {
      const SimLoaded& base = image ? *image : process_.images.images().front();
      function = base.address(*step.address);
    } else {
      function = process_.images.symbol(step.symbol, image);
    }
    if (!function) return refuse(fmt::format("no image has the symbol {}", step.symbol));
    std::vector<std::uint64_t> arguments;
    for (const SimArgument& argument : step.arguments) {
      const auto value = value_of(argument);
      if (!value) return std::nullopt;
      arguments.push_back(*value);
    }
    return process_.call(*function, arguments);
  }

  Result64 value_of(const SimArgument& argument) {
    if (const auto* number = std::get_if<std::int64_t>(&argument))
      return static_cast<std::uint64_t>(*number);
    if (const auto* text = std::get_if<std::string>(&argument)) return process_.objc.text(*text);
    if (const auto* buffer = std::get_if<SimBuffer>(&argument)) {
      const std::uint64_t address = process_.allocate(buffer->size);
      if (address) process_.memory.clear(address, buffer->size);
      return address ? Result64(address) : std::nullopt;
    }
    const std::size_t step = std::get<SimStepResult>(argument).step;
    if (step >= process_.results_.size())
      return refuse("a step uses a result that is not there yet");
    return process_.results_[step];
  }

  /// Every device answers every question, as if the program sent the message.
  Result64 ask(const SimStep& step) {
    const std::uint64_t factory = process_.symbol_address("_MTLCopyAllDevices");
    const auto list =
        process_.call(factory, std::initializer_list<std::uint64_t>{}, SystemLibrary::program);
    if (!list) return std::nullopt;
    const ObjcObject* array = process_.objc.object(*list);
    const std::vector<std::uint64_t> devices = array ? array->items : std::vector<std::uint64_t>{};
    for (const std::uint64_t device : devices)
      for (const QueryKey& key : step.queries) {
        const Query* query = process_.tables.query(key.query);
        if (query && query->type == AnswerType::structure) {
          process_.assume(fmt::format("{} was not asked: it returns a structure", key.query));
          continue;
        }
        std::uint64_t receiver = device;
        std::string selector = key.query;
        if (const auto dot = selector.find('.'); dot != std::string::npos) {
          receiver = process_.send(device, selector.substr(0, dot), {}, SystemLibrary::program);
          selector = selector.substr(dot + 1);
        }
        std::vector<std::uint64_t> message = {receiver, process_.objc.selector(selector)};
        for (const std::int64_t argument : key.arguments)
          message.push_back(static_cast<std::uint64_t>(argument));
        if (!process_.call(process_.symbol_address("_objc_msgSend"), message,
                           SystemLibrary::program))
          return std::nullopt;
      }
    return devices.size();
  }

  Result64 unload() {
    while (!process_.at_exit.empty()) {
      const auto [function, argument] = process_.at_exit.back();
      process_.at_exit.pop_back();
      if (!process_.call(function, {argument})) return std::nullopt;
    }
    return 0;
  }

  Process& process_;
};

void Process::run_steps() {
  for (SimLoaded& image : images.images()) image.initialized = false;
  Steps(*this).run();
}

}  // namespace metaldoctor
