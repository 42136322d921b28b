# Waits for code on a channel, runs it, answers with what its handler returned. Every execution waits for
# what is imported and compiled here: so nothing is imported that an interpreter has not loaded anyway, and
# what few need is text until somebody does.
LATER = """
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
    channel = int(os.environ.pop("SANDBOX_CHANNEL"))
    os.set_inheritable(channel, False)

    def rare(name):
        scope = {}
        exec(later, scope)
        return scope[name]

    # Whatever is compiled first takes most of a millisecond, for all the kinds of nodes that a program may have.
    compile("", "", "exec")

    # Its length, and an expression: (code, event).
    message = bytearray()
    while len(message) < 4 or len(message) - 4 < int.from_bytes(message[:4], "big"):
        message += os.read(channel, 1 << 16) or os._exit(1)
    code, event = eval(message[4:].decode(), {"__builtins__": {}})
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
