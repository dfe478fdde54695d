"""Replaces the librdkafka that the wheel of confluent_kafka brings, and puts it back.

The extension module of the wheel loads the library by a name with a hash from the folder confluent_kafka.libs, so the file under this
name is what has to change. The new file is written beside the old one, tried in a process of its own, and then takes its name in one
step: a reader finds the old or the new one, and programs that run keep the one that they have.
"""

import ctypes
import glob
import importlib.util
import os
import platform
import shutil
import subprocess
import sys

BACKUP = ".original"
OURS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "librdkafka.so.1")
#: What Ottla's library of every version contains: the names of its sources, for messages about defects.
MARK = b"crates/capi/src/"
#: A program that prints the version of a library.
TRIAL = "import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); l.rd_kafka_version_str.restype = ctypes.c_char_p; print(l.rd_kafka_version_str().decode())"


class Refused(Exception):
    """Why the library can't be replaced, and what to do."""


def install(site=None):
    """Puts Ottla's library in; returns a sentence about it."""
    target = _library(site)
    if _same(target, OURS):
        return "%s is Ottla's library already" % target
    ours, original = _version(OURS), _version(target)
    if _number(original) > _number(ours):
        raise Refused(
            "confluent_kafka brings librdkafka %s and asks for its functions; Ottla's library has those of %s. Install a newer "
            "ottla-librdkafka, or confluent-kafka of %s" % (original, ours, ours)
        )
    missing = _missing_functions(target)
    if missing:
        raise Refused("Ottla's library lacks %s, which confluent_kafka calls: install a newer ottla-librdkafka" % ", ".join(missing))
    # An older version of Ottla is replaced without becoming the original.
    _exchange(target, OURS, None if _is_ottla(target) else target + BACKUP)
    return "%s is Ottla's library (librdkafka %s, in place of %s); `uninstall` puts the original back" % (target, ours, original)


def uninstall(site=None):
    """Puts the original back; returns a sentence about it."""
    target = _library(site)
    backup = target + BACKUP
    if not _is_ottla(target):
        # A later installation of confluent_kafka brought its own file.
        if os.path.exists(backup):
            _attempt(lambda: os.remove(backup), backup)
        return "%s is the original" % target
    if not os.path.exists(backup):
        raise Refused("the original is not there any more: pip install --force-reinstall confluent-kafka")
    _exchange(target, backup, None)
    _attempt(lambda: os.remove(backup), backup)
    return "%s is the original (librdkafka %s)" % (target, _version(target))


def status(site=None):
    """Says which library is there."""
    target = _library(site)
    whose = "Ottla's library" if _is_ottla(target) else "the original"
    return "%s is %s (librdkafka %s)" % (target, whose, _version(target))


def _library(site):
    """Finds the library of the installed confluent_kafka."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Refused("this wheel has a library for Linux on x86_64; this is %s on %s" % (sys.platform, platform.machine()))
    if site is None:
        found = importlib.util.find_spec("confluent_kafka")
        if found is None or not found.origin:
            raise Refused("confluent_kafka is not installed: pip install confluent-kafka")
        site = os.path.dirname(os.path.dirname(found.origin))
    libraries = sorted(
        path for path in glob.glob(os.path.join(site, "confluent_kafka.libs", "librdkafka-*.so.1")) if not os.path.islink(path)
    )
    if not libraries:
        raise Refused(
            "confluent_kafka.libs/librdkafka-*.so.1 is missing in %s: confluent_kafka was not installed from its wheel. If it was "
            "compiled here it uses the system's librdkafka.so.1, which a package or LD_LIBRARY_PATH replaces" % site
        )
    if len(libraries) > 1:
        raise Refused("there are several: %s; remove those of old installations" % ", ".join(libraries))
    return libraries[0]


def _same(one, other):
    with open(one, "rb") as first, open(other, "rb") as second:
        return os.path.getsize(one) == os.path.getsize(other) and first.read() == second.read()


def _is_ottla(path):
    with open(path, "rb") as file:
        return MARK in file.read()


def _version(path):
    """Loads a library in a process of its own, so that one that can't be loaded does no harm here."""
    tried = subprocess.run([sys.executable, "-c", TRIAL, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if tried.returncode != 0:
        reason = tried.stderr.decode(errors="replace").strip().splitlines() or ["signal %d" % -tried.returncode]
        hint = ""
        if "GLIBC_" in reason[-1]:
            hint = ": the library needs glibc 2.28 (Debian 10, RHEL 8, Ubuntu 20.04 or newer)"
        raise Refused("%s can't be loaded here (%s)%s" % (path, reason[-1], hint))
    return tried.stdout.decode().strip()


def _number(version):
    return tuple(int(part) for part in version.split("-")[0].split("."))


def _missing_functions(target):
    """Returns the functions that the extension module asks for and our library lacks."""
    library = ctypes.CDLL(OURS)
    package = os.path.join(os.path.dirname(os.path.dirname(target)), "confluent_kafka")
    names = set()
    for module in glob.glob(os.path.join(package, "cimpl*.so")):
        with open(module, "rb") as file:
            names.update(word for word in file.read().split(b"\0") if word.startswith(b"rd_kafka_"))
    names = {name.decode() for name in names if name.replace(b"_", b"").isalnum()}
    # Texts of the module that look like functions are in neither library.
    original = ctypes.CDLL(target)
    return sorted(name for name in names if hasattr(original, name) and not hasattr(library, name))


def _exchange(target, new, backup):
    """Gives the name `target` to a copy of the file `new`; the file that had it becomes `backup`."""
    fresh = target + ".new"

    def work():
        shutil.copyfile(new, fresh)
        shutil.copymode(target, fresh)
        if backup:
            if os.path.exists(backup):
                os.remove(backup)
            os.link(target, backup)
        os.replace(fresh, target)

    try:
        _attempt(work, target)
    except Refused:
        if os.path.exists(fresh):
            os.remove(fresh)
        raise


def _attempt(work, path):
    try:
        work()
    except OSError as error:
        hint = "; run it as the user that installed confluent_kafka" if isinstance(error, PermissionError) else ""
        raise Refused("%s: %s%s" % (path, error.strerror or error, hint))
