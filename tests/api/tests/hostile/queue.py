import array, os, resource, socket, time


def queued(pair, null):
    """Queues copies of one descriptor, as many as the kernel takes, and reads none of them."""
    sent, many = 0, 253
    while many:
        try:
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * many))
            pair[0].sendmsg([b"x"], [rights])
            sent += many
        except BlockingIOError:
            return sent, True
        except OSError:
            many //= 2
    return sent, False


hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
null = os.open("/dev/null", os.O_RDONLY)
pairs, sent, more = [], 0, True
while more:
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for end in pair:
        end.setblocking(False)
    pairs.append(pair)
    count, more = queued(pair, null)
    sent += count
with open("queued.new", "w") as file:
    file.write(str(sent))
os.rename("queued.new", "queued")
time.sleep(600)
