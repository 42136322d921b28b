# Waits for code on a channel, runs it, answers with what its handler returned. Every execution waits for
# what is imported and compiled here: so nothing is imported that an interpreter has not loaded anyway, and
# what few need is text until somebody does.
LATER = """
def watch():
    # Tells later whether this interpreter, which was started ahead, has missed a package: one that was installed since
    # then, or changed, or removed, or has just got a place of its own. The times are those of the filesystem, which
    # code cannot set.
    import os
    import sys

    since = int(os.environ.pop("SANDBOX_SINCE"))
    places = [getattr(sys.modules.get("site"), "USER_SITE", None), *sys.path]

    def changed():
        for place in filter(None, places):
            try:
                if os.stat(place).st_ctime_ns >= since:
                    return True
            except OSError:
                pass
        return False

    return changed


def begin_again(channel, length):
    # Only an interpreter that starts now finds everything as it is; it takes over what is to be read.
    import os
    import sys

    command = getattr(sys, "orig_argv", None) or open("/proc/self/cmdline").read().split("\\0")[:-1]
    os.environ["SANDBOX_CHANNEL"] = "%d %d" % (channel, length)
    os.set_inheritable(channel, True)
    os.execvp(command[0], command)


def encode(value):
    import json

    return json.dumps(value, allow_nan=False)


def progress(steps, say):
    # What a handler yields is how far it is; what it returns is its result.
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            return end.value
        say(b"p", step)


def wait(value):
    import asyncio

    async def wait():
        return await value

    return asyncio.run(wait())


def sort(files):
    # First those that write through others: what is written in Python, then what was made last.
    return sorted(reversed(files), key=lambda file: type(file).__module__ == "_io")


def explain(name, code, kind, error, trace):
    # So that a traceback shows the code; what is ours in it tells nobody anything.
    import linecache
    import traceback

    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    while trace and trace.tb_frame.f_code.co_filename != name:
        trace = trace.tb_next
    traceback.print_exception(kind, error, trace)
"""


def main(later):
    import atexit
    import gc
    import os
    import sys

    # Until the code runs, its directory has no say in what is imported.
    here = sys.path.pop(0)
    channel, _, length = os.environ.pop("SANDBOX_CHANNEL").partition(" ")
    channel, length = int(channel), int(length or 0)
    os.set_inheritable(channel, False)

    def rare(name):
        scope = {}
        exec(later, scope)
        return scope[name]

    # Whatever is compiled first takes most of a millisecond, for all the kinds of nodes that a program may have.
    compile("", "", "exec")

    def receive(length):
        data = bytearray()
        while len(data) < length:
            data += os.read(channel, length - len(data)) or os._exit(1)
        return data

    changed = "SANDBOX_SINCE" in os.environ and rare("watch")()
    # Its length, and an expression: (code, event).
    if not length:
        length = int.from_bytes(receive(4), "big")
        if changed and changed():
            rare("begin_again")(channel, length)
    code, event = eval(receive(length).decode(), {"__builtins__": {}})
    sys.path.insert(0, here)

    # What is there already need not be looked at when the code is done.
    gc.freeze()
    before = set(sys.modules)
    name = "<execution>"
    scope = sys.modules["__main__"].__dict__
    for key in "LATER", "main", "__annotations__":
        scope.pop(key, None)
    scope["__file__"] = name

    def quote(text):
        if type(text) is not str:
            raise TypeError
        easy = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        if easy.isprintable():
            return '"' + easy + '"'
        # In a library that is looked for and loaded: that takes longer than all the rest here.
        from _json import encode_basestring_ascii

        return encode_basestring_ascii(text)

    def plain(value):
        kind = type(value)
        if kind is int or kind is float and value - value == 0:
            return repr(value)
        if kind is dict:
            return "{" + ",".join([quote(key) + ":" + plain(item) for key, item in value.items()]) + "}"
        if kind is list or kind is tuple:
            return "[" + ",".join(map(plain, value)) + "]"
        if value is None or kind is bool:
            return "null" if value is None else repr(value).lower()
        return quote(value)

    def say(what, value):
        try:
            text = plain(value)
        except Exception:
            text = None
        # What is wrong with it, the language's own says best.
        text = text or rare("encode")(value)
        text = what + text.encode()
        if len(text) > 1 + (1 << 20):
            raise ValueError("what a handler returns or yields may be 1 MiB of JSON at most")
        data = len(text).to_bytes(4, "big") + text
        while data:
            data = data[os.write(channel, data):]

    def end():
        # An interpreter that takes itself apart takes longer than many a handler. Where there is nothing in it
        # but the language's own, written in itself, all that anybody would notice of that is done here: what
        # the code made goes, and open files are closed.
        from _io import _IOBase

        library = os.path.dirname(os.__file__) + "/"
        for module in sys.modules.keys() - before:
            place = sys.modules[module].__spec__.origin
            is_library = place.startswith(library) and place.endswith(".py") and "-packages/" not in place
            if module == "threading" or not (is_library or place in ("built-in", "frozen")):
                return
        if atexit._ncallbacks():
            return
        sys.stdout.flush()
        sys.stderr.flush()

        def files():
            found = [it for it in gc.get_objects() if isinstance(it, _IOBase) and not it.closed]
            return found and rare("sort")(found)

        for file in files():
            file.flush()
        scope.clear()
        gc.collect()
        for file in files():
            file.close()
        os._exit(0)

    sys.excepthook = lambda *error: rare("explain")(name, code, *error)
    exec(compile(code, name, "exec", dont_inherit=True), scope)
    handler = scope.get("handler")
    if callable(handler):
        value = handler(event)
        if getattr(getattr(handler, "__code__", None), "co_flags", 0) & 0x20:
            value = rare("progress")(value, say)
        if hasattr(value, "__await__"):
            value = rare("wait")(value)
        say(b"r", value)
    try:
        end()
    except Exception:
        # Then the interpreter does all of it, and says what it says.
        pass


main(LATER)
