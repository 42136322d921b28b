"""An agent that has a table analysed where it can do no harm: python3 examples/agent.py"""
import os
import pathlib
import sys

import requests

server = os.environ.get("SANDBOX_SERVER", "http://127.0.0.1:8000")
here = pathlib.Path(__file__).parent


def ask(method, path, **content):
    headers = {"Authorization": "Bearer " + os.environ["SANDBOX_API_KEY"]}
    answer = requests.request(method, f"{server}/api/v1{path}", headers=headers, timeout=60, **content)
    if not answer.ok:
        sys.exit("{description}: {error_detail}\nhint: {solution}".format(**answer.json()))
    return answer


session = ask("POST", "/sessions", json={"template_id": "python-basic"}).json()["session_id"]
try:
    ask("POST", f"/sessions/{session}/files/upload", files={"file": open(here / "sales.csv", "rb")})
    work = {"language": "python", "code": (here / "analysis.py").read_text(), "event": {"file": "sales.csv"}}
    result = ask("POST", f"/sessions/{session}/execute?wait=true", json=work).json()
    print(result["status"], result["return_value"] or result["stderr"])
    for artifact in result["artifacts"]:
        content = ask("GET", f"/sessions/{session}/files/{artifact['path']}").content
        pathlib.Path(artifact["name"]).write_bytes(content)
        print(f"saved {artifact['name']}: {artifact['mime_type']}, {len(content)} bytes")
finally:
    ask("DELETE", f"/sessions/{session}")
