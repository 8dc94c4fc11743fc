"""A client that openapi-python-client made of the document manages a server with a token.

Usage: management_api.py FOLDER URL TOKEN WORKSPACE. FOLDER has the generated package
`portolan_api`. Prints one line a step, and `done`.
"""

import sys

folder, url, token, workspace = sys.argv[1:]
sys.path.insert(0, folder)

from portolan_api import AuthenticatedClient
from portolan_api.api.servers import (
    change_server,
    create_server,
    delete_server,
    list_servers,
    show_server,
)
from portolan_api.models import ErrorAnswer, NewServer, ServerChange

client = AuthenticatedClient(base_url=url, token=token)


def expect(answer, status):
    assert answer.status_code == status, (answer.status_code, answer.content)
    print("ok", status, type(answer.parsed).__name__)
    return answer


wanted = NewServer(name="Sales", slug="sales")
made = expect(
    create_server.sync_detailed(workspace, client=client, body=wanted, idempotency_key="one"), 201
).parsed
again = expect(
    create_server.sync_detailed(workspace, client=client, body=wanted, idempotency_key="one"), 201
)
assert again.parsed.id == made.id and again.headers["idempotency-replayed"] == "true"
taken = expect(create_server.sync_detailed(workspace, client=client, body=wanted), 409)
assert isinstance(taken.parsed, ErrorAnswer) and taken.parsed.error.code == "slug_taken"
listed = expect(list_servers.sync_detailed(workspace, client=client), 200).parsed
assert [server.slug for server in listed.items] == ["sales"]
shown = expect(show_server.sync_detailed(workspace, made.id, client=client), 200)
tag = shown.headers["etag"]
change = ServerChange(name="Shop")
changed = expect(
    change_server.sync_detailed(workspace, made.id, client=client, body=change, if_match=tag), 200
).parsed
assert changed.name == "Shop"
stale = expect(
    change_server.sync_detailed(workspace, made.id, client=client, body=change, if_match=tag), 412
)
assert stale.parsed.error.code == "version_differs"
expect(delete_server.sync_detailed(workspace, made.id, client=client), 200)
assert expect(list_servers.sync_detailed(workspace, client=client), 200).parsed.items == []
print("done")
