#!/usr/bin/env python3
"""Fetches the corpus: real Mach-O files that end-to-end tests read.

    fetch.py [ID ...]        fetch what is missing, check every hash
    fetch.py --list          print ids and where each file is kept

Files are kept outside the source tree: $METALDOCTOR_CORPUS, else $XDG_CACHE_HOME/metaldoctor-corpus,
else ~/.cache/metaldoctor-corpus. Packages come through the ordinary clients, npm and pip, by name
and version; install scripts never run. Exit status: 0 all there, 1 a hash is wrong, 77 a registry
cannot be reached (ctest counts that as skipped).
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def cache_dir():
    if os.environ.get("METALDOCTOR_CORPUS"):
        return pathlib.Path(os.environ["METALDOCTOR_CORPUS"])
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "metaldoctor-corpus"


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def run(command, directory):
    return subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)


def download(entry, directory):
    """The package's file in `directory`, or None with the client's last words."""
    if shutil.which(entry["client"]) is None:
        return None, [f"{entry['client']} is not installed"]
    spec = entry["package"]
    if entry["client"] == "npm":
        done = run(["npm", "pack", "--ignore-scripts", "--silent", f"{spec}@{entry['version']}"], directory)
    else:
        done = run(["pip", "download", "--no-deps", "--only-binary", ":all:", "--platform", entry["platform"],
                    "--quiet", "--disable-pip-version-check", f"{spec}=={entry['version']}"], directory)
    files = [path for path in pathlib.Path(directory).iterdir() if path.is_file()]
    if done.returncode != 0 or len(files) != 1:
        return None, (done.stderr or done.stdout).strip().splitlines()[-1:]
    return files[0], []


def extract(package, member, target):
    """Copies one member out; nothing else of the package touches the disk."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            target.write_bytes(archive.read(member))
    else:
        with tarfile.open(package) as archive:
            target.write_bytes(archive.extractfile(member).read())


def fetch(entry, directory):
    """0, 1 or 77."""
    target = directory / entry["id"]
    if not target.exists():
        with tempfile.TemporaryDirectory() as scratch:
            package, words = download(entry, scratch)
            if package is None:
                print(f"SKIPPED {entry['id']}: {entry['client']} could not fetch {entry['package']}: {words}")
                return SKIPPED
            part = directory / f".{entry['id']}.part"
            extract(package, entry["file"], part)
            part.replace(target)
    found = sha256(target)
    if found != entry["sha256"]:
        print(f"{target}: expected sha256 {entry['sha256']}, found {found}")
        return 1
    print(f"{entry['id']}: {target}")
    return 0


def main(arguments):
    entries = json.loads((HERE / "corpus.json").read_text())["files"]
    directory = cache_dir()
    if arguments == ["--list"]:
        for entry in entries:
            print(f"{entry['id']}\t{directory / entry['id']}")
        return 0
    directory.mkdir(parents=True, exist_ok=True)
    results = [fetch(entry, directory) for entry in entries if not arguments or entry["id"] in arguments]
    return 1 if 1 in results else SKIPPED if SKIPPED in results else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
