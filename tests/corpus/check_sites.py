#!/usr/bin/env python3
"""Re-disassembles every reported site with llvm-objdump, which shares no code of ours.

    check_sites.py DUMP_PROGRAM LLVM_OBJDUMP ID ...

For each corpus file that was fetched: the instruction at a site must be a call or branch; where it
is a direct one and the file has symbols, they must name the reported selector or function.
Exit status 0, 1 for a site that does not hold, 77 if no file is there.
"""
import re
import subprocess
import sys

import fetch

SITE = re.compile(r"^(send|call) (\S+) .*?@0x([0-9a-f]+) (\w+)")
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")


def sites(dump, path):
    text = subprocess.run([dump, path], capture_output=True, text=True, check=True).stdout
    return [(match[2], int(match[3], 16), match[4]) for match in map(SITE.match, text.splitlines()) if match]


def disassembly(objdump, path, low, high):
    command = [objdump, "-d", "--no-show-raw-insn", f"--start-address={low:#x}", f"--stop-address={high:#x}", path]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {int(match[1], 16): (match[2], match[3]) for match in map(LINE.match, lines) if match}


def wrong(site, code):
    name, address, route = site
    if address not in code:
        return "no instruction there"
    mnemonic, operands = code[address]
    if mnemonic not in ("bl", "b", "blr", "br"):
        return f"found {mnemonic}"
    symbol = re.search(r"<(_objc_msgSend\$[^>+]+)>", operands)
    if route == "stub" and symbol and symbol[1] != "_objc_msgSend$" + name:
        return f"found a call of {symbol[1]}"
    return None


def main(dump, objdump, ids):
    checked = failed = 0
    entries = {identity: fetch.cache_dir() / identity for identity in ids}
    for identity, path in entries.items():
        if not path.exists():
            print(f"SKIPPED {identity}: not fetched")
            continue
        found = sites(dump, path)
        # One disassembly for each group of sites that lie close together.
        groups = []
        for site in sorted(found, key=lambda site: site[1]):
            if groups and site[1] - groups[-1][-1][1] < 0x4000:
                groups[-1].append(site)
            else:
                groups.append([site])
        for group in groups:
            code = disassembly(objdump, path, group[0][1], group[-1][1] + 4)
            for site in group:
                checked += 1
                problem = wrong(site, code)
                if problem:
                    failed += 1
                    print(f"{identity}: {site[0]} at {site[1]:#x}: {problem}")
    print(f"{checked} sites, {failed} wrong")
    return 77 if checked == 0 else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
