"""Tries to leave something for the next execution, and looks for what another one left."""

import ctypes
import os
import socket
import subprocess

NAME = "left-behind"
KEY = 0x5EC2E7
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
PLACES = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/dev/mqueue", "/run/lock", "/", "/home", "/var", "/root"]
ADD_KEY, REQUEST_KEY = 248, 249
SESSION_KEYRING, USER_KEYRING = -3, -4


def attempt(action):
    try:
        result = action()
    except OSError as error:
        return error.strerror
    return "refused" if result == -1 else "left"


def write(directory):
    with open(f"{directory}/{NAME}", "w") as file:
        file.write("x")


def handler(event):
    left = {directory: attempt(lambda: write(directory)) for directory in PLACES}
    left["shared memory"] = attempt(lambda: libc.shmget(KEY, 4096, 0o1666))
    left["semaphores"] = attempt(lambda: libc.semget(KEY, 1, 0o1666))
    left["messages"] = attempt(lambda: libc.msgget(KEY, 0o1666))
    for name, keyring in [("session keyring", SESSION_KEYRING), ("user keyring", USER_KEYRING)]:
        left[name] = attempt(lambda: libc.syscall(ADD_KEY, b"user", NAME.encode(), b"x", 1, keyring))

    def listen():
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("\0" + NAME)
        listener.listen()
        if os.fork() == 0:
            os.setsid()
            os.execvp("sleep", [NAME, "86400"])

    left["process"] = attempt(listen)
    left["environment"] = attempt(lambda: os.environ.__setitem__("LEFT_BEHIND", "x"))
    left["host name"] = attempt(lambda: socket.sethostname(NAME))
    return left


def look(event):
    found = [directory for directory in PLACES if os.path.lexists(f"{directory}/{NAME}")]
    for name, get in [("shared memory", libc.shmget), ("messages", libc.msgget)]:
        arguments = (KEY, 4096, 0) if get is libc.shmget else (KEY, 0)
        if get(*arguments) != -1:
            found.append(name)
    if libc.semget(KEY, 1, 0) != -1:
        found.append("semaphores")
    if libc.syscall(REQUEST_KEY, b"user", NAME.encode(), None, 0) != -1:
        found.append("key")
    if NAME in subprocess.run(["cat", "/proc/net/unix"], capture_output=True, text=True).stdout:
        found.append("socket")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with open(f"/proc/{pid}/cmdline") as file:
            if file.read().startswith(NAME):
                found.append("process")
    if "LEFT_BEHIND" in os.environ:
        found.append("environment")
    if socket.gethostname() == NAME:
        found.append("host name")
    return found
