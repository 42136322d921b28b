"""Looks everywhere for anything that looks like a secret, and for ways to whoever might have one."""

import ctypes
import os
import re
import socket

SECRET = re.compile(rb"[0-9a-f]{64}")
# What everybody's system has, and what only tells of the machine.
BORING = ("/usr", "/proc", "/sys", "/lib", "/lib64", "/bin", "/sbin", "/dev")
libc = ctypes.CDLL(None, use_errno=True)


def read(path, most=1 << 20):
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(descriptor, most)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def files():
    for top in ["/" + name for name in os.listdir("/") if "/" + name not in BORING]:
        yield top
        for directory, _, names in os.walk(top):
            for name in names:
                yield os.path.join(directory, name)


def traced(pid):
    attach, vm = 16, ctypes.create_string_buffer(8)
    if libc.ptrace(attach, pid, 0, 0) == 0:
        return True

    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    here = Vector(ctypes.cast(vm, ctypes.c_void_p), 8)
    there = Vector(0x400000, 8)
    return libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) >= 0


def listed(directory):
    try:
        return bool(os.listdir(directory))
    except OSError:
        return False


def opened(directory):
    """Their numbers may be seen; not what they are, nor may they be used."""
    for number in range(64):
        for use in (os.readlink, lambda path: os.close(os.open(path, os.O_RDONLY))):
            try:
                use(f"{directory}/{number}")
                return True
            except OSError:
                pass
    return False


def killed(pid):
    """Signals from inside reach an init only if it asked for them: it is still there afterwards."""
    libc.kill(pid, 9)
    return not os.path.exists(f"/proc/{pid}")


def connects(address, family=socket.AF_UNIX):
    with socket.socket(family) as client:
        client.settimeout(1)
        try:
            client.connect(address)
        except OSError:
            return False
    return True


def handler(event):
    found = set()
    for pid in processes():
        for name in ("environ", "cmdline", "maps", "mountinfo"):
            found.update(SECRET.findall(read(f"/proc/{pid}/{name}")))
    for path in files():
        found.update(SECRET.findall(read(path)))
    found.update(SECRET.findall(str(os.environ).encode()))

    parent = os.getppid()
    powerful = {}
    for pid in {1, parent} - {os.getpid()}:
        inner = f"/proc/{pid}"
        powerful[pid] = {
            "traced": traced(pid),
            "memory": bool(read(f"{inner}/mem")),
            "root": listed(f"{inner}/root/"),
            "descriptors": opened(f"{inner}/fd"),
            "environment": bool(read(f"{inner}/environ")),
            "killed": killed(pid),
        }
    sockets = []
    for line in read("/proc/net/unix").decode().splitlines()[1:]:
        sockets.append(line.split()[-1])
    return {
        "secrets": sorted(secret.decode() for secret in found),
        "processes": [read(f"/proc/{pid}/cmdline").decode(errors="replace") for pid in processes()],
        "powerful": powerful,
        "descriptors": [os.readlink(f"/proc/self/fd/{name}") if os.path.exists(f"/proc/self/fd/{name}") else "?"
                        for name in os.listdir("/proc/self/fd") if int(name) > 2],
        "sockets": sockets,
        "reached": [path for path in event["sockets"] if connects(path)],
        "seen": [path for path in event["paths"] if os.path.lexists(path)],
        "ids": [os.getuid(), os.getgid(), os.getgroups()],
    }
