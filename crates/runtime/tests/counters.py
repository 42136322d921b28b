import array, ctypes, errno, fcntl, os, resource, signal, socket, sys, time

libc = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def flight(kept):
    """Descriptors in flight over Unix sockets."""
    if not kept:
        null = os.open("/dev/null", os.O_RDONLY)
        kept.append(null)
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    kept.append(pair)
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [kept[0]] * 200))
    pair[0].sendmsg([b"x"], [rights])


def inotify(kept):
    """Instances of inotify."""
    kept.append(checked(libc.inotify_init1(0)))


def pipes(kept):
    """Pages of pipes."""
    kept.append(os.pipe())
    fcntl.fcntl(kept[-1][0], 1031, 1 << 20)


def signals(kept):
    """Signals that are pending."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
    checked(libc.sigqueue(os.getpid(), int(signal.SIGRTMIN), None))
    kept.append(None)


def queues(kept):
    """Message queues."""
    name = b"/queue-%d-%d" % (os.getpid(), len(kept))
    result = libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None)
    # Landlock refuses to open the queue that the kernel has created, and counts, by then.
    if result >= 0 or ctypes.get_errno() != errno.EACCES:
        checked(result)
    kept.append(result)


def locked(kept):
    """Memory that cannot be swapped out."""
    identifier = checked(libc.shmget(0, 1 << 20, 0o600))
    kept.append(identifier)
    checked(libc.shmctl(identifier, 11, None))


def keys(kept):
    """Keys of the kernel."""
    calls = {"x86_64": 248, "aarch64": 217}
    call = calls[os.uname().machine]
    checked(libc.syscall(call, b"user", b"key-%d" % len(kept), b"x", 1, -3))
    kept.append(None)


def namespaces(kept):
    """User namespaces."""
    checked(libc.unshare(0x10000000))
    kept.append(None)


def used_up(name):
    """Uses up as much of one as there is: how much that was, and why there was no more."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    use, kept = globals()[name], []
    for number in range(1_000_000):
        try:
            use(kept)
        except OSError as error:
            return number, errno.errorcode[error.errno], kept
    return number, "", kept


def take_all(name):
    number, error, kept = used_up(name)
    with open("said.new", "w") as file:
        file.write(f"{number} {error}")
    os.rename("said.new", "said")
    time.sleep(600)


def take_one(name):
    try:
        globals()[name]([])
        print("well")
    except OSError as error:
        print(errno.errorcode[error.errno])
