#!/usr/bin/env python3
"""Re-disassembles every reported site with llvm-objdump, which shares no code of ours.

    check_sites.py DUMP_PROGRAM LLVM_BIN ID ...

LLVM_BIN holds llvm-objdump, llvm-lipo and llvm-ar. For each corpus file that was fetched, and each
slice or archive member of it: the instruction at a site must be a call or branch; where it is a
direct one and a symbol or a relocation names its target, that must be the reported selector or
function. Exit status 0, 1 for a site that does not hold, 77 if no file is there.
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

import fetch

IMAGE = re.compile(r"^image (\S+) ?(.*)$")
SITE = re.compile(r"^(send|call) (\S+) .*?@0x([0-9a-f]+) (\w+)")
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
RELOCATION = re.compile(r"^\s*([0-9a-f]+):\s+(\w+_RELOC_\w+)\s+(\S+)$")
BRANCHES = {"arm64": {"bl", "b", "blr", "br"}, "arm64e": {"bl", "b", "blr", "br", "blraa", "blraaz", "braa", "braaz"},
            "x86_64": {"call", "callq", "jmp", "jmpq"}}

Site = collections.namedtuple("Site", "name address route")


def output(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def images(dump, path):
    """{(arch, member): [Site]}"""
    out = {}
    for line in output([dump, path]).splitlines():
        if match := IMAGE.match(line):
            sites = out.setdefault((match[1], match[2]), [])
        elif match := SITE.match(line):
            sites.append(Site(match[2], int(match[3], 16), match[4]))
    return out


def thin(tools, path, arch, member, scratch):
    """A file that holds only that slice or member."""
    if member:
        subprocess.run([tools / "llvm-ar", "x", path, member], cwd=scratch, check=True)
        return scratch / member
    if "universal binary" not in output([tools / "llvm-objdump", "-a", "--macho", "--universal-headers", path])\
            and not output([tools / "llvm-lipo", "-archs", path]).strip().count(" "):
        return path
    target = scratch / arch
    subprocess.run([tools / "llvm-lipo", path, "-thin", arch, "-output", target], check=True)
    return target


def disassembly(tools, path, sites):
    """{address: (mnemonic, operands, relocation)} around the sites."""
    code = {}
    groups = []
    for site in sorted(sites, key=lambda site: site.address):
        if groups and site.address - groups[-1][1] < 0x4000:
            groups[-1][1] = site.address
        else:
            groups.append([site.address, site.address])
    for low, high in groups:
        command = [tools / "llvm-objdump", "-d", "-r", "--no-show-raw-insn", f"--start-address={low:#x}",
                   f"--stop-address={high + 8:#x}", path]
        last = None
        for line in output(command).splitlines():
            if match := RELOCATION.match(line):
                if last is not None:
                    code[last][2] = match[3]
            elif match := LINE.match(line):
                last = int(match[1], 16)
                code[last] = [match[2], match[3], ""]
    return code


def wrong(site, code, arch):
    if site.address not in code:
        return "no instruction there"
    mnemonic, operands, relocation = code[site.address]
    if mnemonic not in BRANCHES[arch]:
        return f"found {mnemonic}"
    symbol = re.search(r"<(_objc_msgSend\$[^>+]+)>", operands)
    named = symbol[1] if symbol else relocation
    if site.route in ("stub", "symbol") and named.startswith("_objc_msgSend$") and \
            named != "_objc_msgSend$" + site.name:
        return f"found a call of {named}"
    if site.route == "symbol" and not relocation:
        return "found no relocation"
    return None


def check(dump, tools, identity, path):
    checked = failed = 0
    for (arch, member), sites in images(dump, path).items():
        if not sites:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            code = disassembly(tools, thin(tools, path, arch, member, pathlib.Path(scratch)), sites)
        for site in sites:
            checked += 1
            if problem := wrong(site, code, arch):
                failed += 1
                print(f"{identity} {arch} {member}: {site.name} at {site.address:#x}: {problem}")
    return checked, failed


def main(dump, tools, ids):
    checked = failed = 0
    for identity in ids:
        path = fetch.cache_dir() / identity
        if not path.exists():
            print(f"SKIPPED {identity}: not fetched")
            continue
        some, bad = check(dump, tools, identity, path)
        checked += some
        failed += bad
    print(f"{checked} sites, {failed} wrong")
    return 77 if checked == 0 else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]))
