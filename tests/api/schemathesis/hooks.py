"""What schemathesis cannot know from the description alone.

It is given names of what exists, kept from taking away what the other requests need, and told which answers are
right though the description allows the request: each with its reason, and no wider than that.
"""

import re
import tomllib

import schemathesis
from schemathesis.core.failures import ServerError
from schemathesis.openapi.checks import (
    AllowHeaderMismatch,
    JsonSchemaError,
    RejectedPositiveData,
    UnsupportedMethodResponse,
)

with open("schemathesis.toml", "rb") as file:
    SETTINGS = tomllib.load(file)
MADE = {name: made["values"] for name, made in SETTINGS["dictionaries"].items()}


def dictionaries(operation):
    """Which dictionary each parameter of an operation has."""
    bound = dict(SETTINGS["parameters"])
    for part in SETTINGS["operations"]:
        included = part["include-operation-id"]
        if operation in ([included] if isinstance(included, str) else included):
            bound |= part.get("parameters", {})
    return {name: binding["dictionary"] for name, binding in bound.items()}


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """An example is something that exists: examples are asked for as they are, dictionaries only by chance."""
    for methods in raw_schema["paths"].values():
        for operation in methods.values():
            bound = dictionaries(operation["operationId"])
            for parameter in operation.get("parameters", []):
                name = bound.get(f"{parameter['in']}.{parameter['name']}")
                if name:
                    parameter["example"] = MADE[name][0]


# What must not become of that which the other requests need. It is learnt from answers, too.
SPARED = {
    "terminate_session": ("session_id", MADE["sessions"]),
    "pause_session": ("session_id", MADE["sessions"]),
    "update_template": ("template_id", MADE["templates"]),
    "delete_template": ("template_id", MADE["templates"]),
    # A drained node takes no new session.
    "drain_node": ("node_id", ["local"]),
}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Whoever would take away what is needed gets another one."""
    operation = case.operation.definition.raw["operationId"]
    name, spared = SPARED.get(operation, (None, []))
    if (case.path_parameters or {}).get(name) in spared:
        case.path_parameters[name] = MADE[dictionaries(operation)[f"path.{name}"]][0]


# Operation, what schemathesis says, and what the answer says where it is right.
EXCUSED = [
    # A schema cannot say that a cursor is one that the list gave out, and not together with an offset.
    ("list_.*", RejectedPositiveData, r'"cursor: '),
    # Nor which fields need each other.
    ("create_session", RejectedPositiveData, r'"network\.allow: is given, but the network is not enabled"'),
    ("create_session", RejectedPositiveData, r'"agent_id: is needed for a persistent session"'),
    ("create_session", RejectedPositiveData, r'"source: has not exactly one of directory and files"'),
    ("create_session", RejectedPositiveData, r'"pool: no session of the pool is like this"'),
    # Nor that a length is counted in bytes.
    ("create_session|list_sessions", RejectedPositiveData, r'"agent_id: must have 1 to 128 bytes"'),
    # Nor what is on this machine, and in which state.
    ("create_session", RejectedPositiveData, r'"source\.directory: is not there"'),
    ("create_session|fork_session", RejectedPositiveData, r"template \S+ is not active"),
    ("delete_template", RejectedPositiveData, r"is used by \d+ live sessions"),
    ("download_file", RejectedPositiveData, r'"path: \S+ is a directory"|"Range: the file has \d+ bytes"'),
    ("upload_file", RejectedPositiveData, r'"path: (Is|Not) a directory '),
    # Nor how amounts are bounded. Variables, packages, hosts, images and paths have rules that are told in words.
    (
        "create_session|(create|update)_template",
        RejectedPositiveData,
        r'"((default_)?resources\.(cpu|memory|disk)|env_vars|network\.allow|pre_installed_packages|image): ',
    ),
    (
        "create_session|.*_file|list_files|download_archive|promote_session",
        RejectedPositiveData,
        r"(paths?|source\.files): .* is not a path in the workspace|path holds a NUL byte",
    ),
    # To JSON Schema 60.0 is an integer. We want it written as one.
    (".*", RejectedPositiveData, r"invalid type: floating point `\d+\.0`"),
    # A session is to come from the pool, and there is none in it.
    ("create_session", ServerError, r"the pool has no session"),
    # OpenAPI 3.1 knows a stream of events as text only; schemathesis holds each event to the schema of that text.
    ("watch_session|execute", JsonSchemaError, r"\A(id|event|data): "),
    # Schemathesis does not speak WebSocket.
    ("open_terminal", RejectedPositiveData, r"Connection header did not include 'upgrade'"),
    # What listens there is the session's own, and nothing does; every method is for it.
    ("speak_to_port", ServerError, r'"nothing listens on port \d+"'),
    ("speak_to_port", UnsupportedMethodResponse, r"Sandbox\."),
    # `upload` is also the name of a file, which can be read and deleted.
    ("upload_file", AllowHeaderMismatch, r"MethodNotAllowed"),
]


@schemathesis.hook
def filter_failure(context, failure, case, response):
    operation = case.operation.definition.raw["operationId"]
    text = response.content.decode(errors="replace")
    return not any(
        re.fullmatch(where, operation) and isinstance(failure, what) and re.search(said, text)
        for where, what, said in EXCUSED
    )
