"""A client that openapi-python-client made of the document plans and applies configuration.

Usage: configuration.py FOLDER URL TOKEN WORKSPACE. FOLDER has the generated package
`portolan_api`; the workspace is empty. Prints one line a step, and `done`.
"""

import json
import sys

folder, url, token, workspace = sys.argv[1:]
sys.path.insert(0, folder)

from portolan_api import AuthenticatedClient
from portolan_api.api.configuration import (
    apply_configuration,
    export_configuration,
    plan_configuration,
)
from portolan_api.models import (
    ApplyRequest,
    ApplyRequestMeta,
    PlanRequest,
    PlanRequestSecrets,
)

client = AuthenticatedClient(base_url=url, token=token)

FIRST = """
format: portolan/v1
name: ci
sources:
  - name: crm
    kind: http
    base_url: https://crm.example/v1
    credential:
      bearer:
        secret: env:CRM_KEY
prompts:
  - name: greet
    messages:
      - role: user
        content:
          text: Say hello.
servers:
  - slug: sales
    prompts:
      - prompt: greet
"""
# Without the source, and with another text.
SECOND = """
format: portolan/v1
name: ci
prompts:
  - name: greet
    messages:
      - role: user
        content:
          text: Say good morning.
servers:
  - slug: sales
    prompts:
      - prompt: greet
"""
SECRET = "key-of-the-crm"


def expect(answer, status):
    assert answer.status_code == status, (answer.status_code, answer.content)
    print("ok", status, type(answer.parsed).__name__)
    return answer.parsed


def plan(text, secrets=None):
    body = PlanRequest(bundle=text)
    if secrets:
        body.secrets = PlanRequestSecrets.from_dict(secrets)
    return expect(plan_configuration.sync_detailed(workspace, client=client, body=body), 201)


def apply(made, status=200):
    meta = ApplyRequestMeta.from_dict({"commit": "4f2a9c1"})
    answer = apply_configuration.sync_detailed(
        workspace, made.id, client=client, body=ApplyRequest(meta=meta)
    )
    return expect(answer, status)


def operations(made):
    return [(change.op.value, change.kind.value, change.key) for change in made.changes]


def exported():
    """The file as the client reads it: its requests name no form, so the answer is JSON."""
    return expect(export_configuration.sync_detailed(workspace, client=client), 200)


def exported_yaml():
    """The text for people. The generated function reads JSON alone; its HTTP client reads any form."""
    answer = client.get_httpx_client().get(
        f"/api/v1/workspaces/{workspace}/configuration", headers={"accept": "application/yaml"}
    )
    assert answer.status_code == 200, (answer.status_code, answer.text)
    assert answer.headers["content-type"] == "application/yaml", answer.headers
    return answer.text


lacking = PlanRequest(bundle=FIRST)
refused = expect(plan_configuration.sync_detailed(workspace, client=client, body=lacking), 422)
assert "env:CRM_KEY" in refused.error.message, refused.error.message

first = plan(FIRST, {"env:CRM_KEY": SECRET})
created = [("create", "source", "crm"), ("create", "prompt", "greet"), ("create", "server", "sales")]
assert operations(first) == created, operations(first)
assert operations(apply(first)) == created
assert apply(first, 409).error.message

# Both forms of the export are a file: neither changes anything.
file = exported()
assert file["format"] == "portolan/v1" and file["name"] == "ci", file
assert [server["slug"] for server in file["servers"]] == ["sales"], file
text = exported_yaml()
assert "format: portolan/v1" in text and "slug: sales" in text, text
for form in (json.dumps(file), text):
    assert SECRET not in form
    again = plan(form)
    assert again.changes == [] and again.claimed == 0, operations(again)

second, late = plan(SECOND), plan(SECOND)
changed = [("update", "prompt", "greet"), ("delete", "source", "crm")]
assert sorted(operations(second)) == sorted(changed), operations(second)
apply(second)
moved = apply(late, 409)
assert moved.error.code == "workspace_moved", moved.error.code
assert plan(SECOND).changes == []
print("done")
