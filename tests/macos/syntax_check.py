#!/usr/bin/env python3
"""Compiles the whole tree for arm64 macOS, as far as -fsyntax-only goes, on any machine.

The headers of macOS and libc++ come from the ziglang package of PyPI, pinned by hash and used for
nothing else. Status 77 with a reason when it cannot be had: offline is no fault of the tree.

usage: syntax_check.py BUILD_DIRECTORY [FILE...]
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "ziglang==0.15.2"
SHA256 = "806316453d1ede7174ed3fefb8e5348154629089c3bb5fe812dfd0e172fac130"
# Every platform's wheel has the same headers; one is pinned.
PLATFORM = "manylinux2010_x86_64"
HEADERS = ["ziglang/lib/libcxx/include", "ziglang/lib/libcxxabi/include",
           "ziglang/lib/libc/include/any-macos-any"]
# Header-only here, so that nothing else of the system's include directory is seen.
LIBRARIES = ["fmt", "nlohmann", "CLI", "tl", "valijson", "plist", "unicorn"]
COMMON = ["algorithm", "array", "map", "memory", "optional", "set", "string", "string_view", "vector",
          "fmt/format.h", "nlohmann/json.hpp", "tl/expected.hpp"]
ROOMS = ("tables/", "scanners/", "shim/", "tools/")
COMPILER = next((c for c in ("clang++-22", "clang++") if shutil.which(c)), None)

# What libc++'s configure step would have written into __config_site.
LIBCXX = ["ABI_VERSION=1", "ABI_NAMESPACE=__1", "HAS_THREADS=1", "HAS_THREAD_API_PTHREAD=1",
          "HAS_MONOTONIC_CLOCK=1", "HAS_TERMINAL=1", "HAS_MUSL_LIBC=0", "HAS_FILESYSTEM=1",
          "HAS_RANDOM_DEVICE=1", "HAS_LOCALIZATION=1", "HAS_UNICODE=1", "HAS_WIDE_CHARACTERS=1",
          "HAS_TIME_ZONE_DATABASE=0", "HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0", "PSTL_BACKEND_SERIAL",
          "HARDENING_MODE_DEFAULT=_LIBCPP_HARDENING_MODE_NONE"]


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def fetch_headers():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    directory = cache / "metaldoctor-macos-headers" / PACKAGE
    if directory.is_dir():
        return directory
    with tempfile.TemporaryDirectory() as scratch:
        wanted = pathlib.Path(scratch) / "requirements.txt"
        wanted.write_text(f"{PACKAGE} --hash=sha256:{SHA256}\n")
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes",
             "--only-binary", ":all:", "--platform", PLATFORM, "-d", scratch, "-r", wanted],
            capture_output=True, text=True)
        if done.returncode != 0:
            skip(f"{PACKAGE} cannot be fetched: {done.stderr.strip().splitlines()[-1:]}")
        wheel = next(pathlib.Path(scratch).glob("*.whl"))
        fresh = directory.with_name(f"{directory.name}.{os.getpid()}")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.startswith(tuple(h + "/" for h in HEADERS)):
                    archive.extract(name, fresh)
        fresh.rename(directory)
    return directory


def include_farm(directory):
    farm = pathlib.Path(directory)
    for name in LIBRARIES:
        for prefix in ("/usr/include", "/usr/local/include"):
            if (pathlib.Path(prefix) / name).is_dir():
                (farm / name).symlink_to(pathlib.Path(prefix) / name)
                break
    return farm


def kept_flags(command):
    """Defines and include directories of the host build, except the system's own."""
    flags = []
    words = iter(command.split())
    for word in words:
        if word.startswith("-D") and not word.startswith(("-D_G", "-D__STDC")):
            flags.append(word.replace('\\"', '"'))
        elif word.startswith("-I"):
            flags.append(word)
        elif word == "-isystem":
            path = next(words)
            if "llvm" in path:
                flags += ["-isystem", path]
    return flags


def base_flags(headers, farm):
    resources = subprocess.run([COMPILER, "-print-resource-dir"], capture_output=True, text=True,
                               check=True).stdout.strip()
    flags = ["-target", "arm64-apple-macos13", "-std=c++20", "-nostdinc++", "-nostdlibinc",
             "-Wall", "-Wextra", "-Werror", "-Wno-unused-command-line-argument"]
    for path in [headers / HEADERS[0], headers / HEADERS[1], f"{resources}/include",
                 headers / HEADERS[2], farm]:
        flags += ["-isystem", str(path)]
    return flags + [f"-D_LIBCPP_{name}" for name in LIBCXX]


def precompile(base, scratch):
    """What most files include, parsed once: it is most of the time of each."""
    header = pathlib.Path(scratch) / "common.h"
    header.write_text("".join(f"#include <{name}>\n" for name in COMMON))
    out = header.with_suffix(".pch")
    subprocess.run([COMPILER, *base, "-x", "c++-header", header, "-o", out], check=True)
    return ["-include-pch", str(out)]


def main():
    build = pathlib.Path(sys.argv[1])
    source = pathlib.Path(__file__).resolve().parents[2]
    if COMPILER is None:
        skip("there is no clang")
    headers = fetch_headers()
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        name = path.relative_to(source).as_posix() if path.is_relative_to(source) else ""
        if name.startswith(ROOMS) and name.endswith(".cpp"):
            entries.setdefault(name, entry["command"])
    chosen = sys.argv[2:] or sorted(entries)
    with tempfile.TemporaryDirectory() as scratch:
        base = base_flags(headers, include_farm(scratch))
        common = precompile(base, scratch)

        def check(name):
            command = [COMPILER, "-fsyntax-only", *base, *common, *kept_flags(entries[name]), f"-I{source}",
                       str(source / name)]
            return name, subprocess.run(command, capture_output=True, text=True)

        failed = 0
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for name, done in pool.map(check, chosen):
                if done.returncode != 0:
                    failed += 1
                    print(f"{name}\n{done.stderr}")
    print(f"{len(chosen)} files for arm64 macOS, {failed} do not compile")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
