import shutil
import subprocess
from importlib import metadata


def in_python(name, version):
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return version in ("", found)


def in_node(name, version):
    look = (
        "try { const found = require(process.argv[1] + '/package.json').version;"
        " process.exit(process.argv[2] && process.argv[2] !== found ? 1 : 0) }"
        " catch { process.exit(1) }"
    )
    node = shutil.which("node")
    return bool(node) and subprocess.run([node, "-e", look, name, version]).returncode == 0


def handler(packages):
    missing = []
    for package in packages:
        name, _, version = package.partition("==")
        is_program = not version and shutil.which(name) is not None
        if not (in_python(name, version) or is_program or in_node(name, version)):
            missing.append(package)
    return missing
