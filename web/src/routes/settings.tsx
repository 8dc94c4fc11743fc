import { Alert, Button, Stack, Switch, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { confirmPath } from '../api/people';
import {
  useChangeWorkspace,
  useDeleteWorkspace,
  type Workspace,
  type WorkspaceChange,
  workspaceQuery,
} from '../api/workspaces';
import { TextLink } from '../components/link-button';
import { Facts, Loaded, Page, Panel } from '../components/page';
import { Refused } from '../components/refused';
import { toastDone } from '../components/toast';
import { useMay, useSession } from '../session';
import { formatDate } from '../time';

export function SettingsPage() {
  const { workspace } = useSession();
  const query = useQuery(workspaceQuery(workspace.slug));
  return (
    <Page title="Workspace settings" narrow>
      <Loaded query={query}>{(data) => <Settings key={data.name} workspace={data} />}</Loaded>
    </Page>
  );
}

function Settings({ workspace }: { workspace: Workspace }) {
  const administers = useMay('administer');
  const rename = useChangeWorkspace(workspace.slug);
  const [name, setName] = useState(workspace.name);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (name.trim() === '') return;
    rename.mutate({ name: name.trim() }, { onSuccess: () => toastDone('The workspace was renamed.') });
  }

  return (
    <>
      <Panel title="Name">
        <form onSubmit={submit} noValidate>
          <Stack gap="md" maw={460}>
            {rename.error && (
              <Alert color="red" data-tone="red" role="alert" title="The workspace was not renamed">
                {rename.error.message}
              </Alert>
            )}
            <TextInput
              label="Workspace name"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={name.trim() === '' ? 'Give the workspace a name.' : null}
              disabled={!administers}
              maxLength={80}
            />
            {administers ? (
              <div>
                <Button type="submit" loading={rename.isPending} disabled={name.trim() === workspace.name}>
                  Save
                </Button>
              </div>
            ) : (
              <span>An admin or owner can rename the workspace.</span>
            )}
          </Stack>
        </form>
      </Panel>
      <Reach workspace={workspace} administers={administers} />
      <Panel title="About">
        <Facts
          items={[
            ['Address', <code key="slug">{workspace.slug}</code>],
            ['Servers live under', <code key="url">{`${window.location.origin}/t/${workspace.slug}/`}</code>],
            ['Created', formatDate(workspace.created_at)],
            [
              'Limits',
              <TextLink key="limits" to="/w/$ws/limits" params={{ ws: workspace.slug }}>
                Calls a minute and at once
              </TextLink>,
            ],
          ]}
        />
      </Panel>
      {workspace.role === 'owner' && <Deletion workspace={workspace} />}
    </>
  );
}

/** How apps reach the servers: what is deprecated is served until somebody decides that nobody needs it. */
function Reach({ workspace, administers }: { workspace: Workspace; administers: boolean }) {
  const change = useChangeWorkspace(workspace.slug);
  const shown: WorkspaceChange = { ...workspace, ...(change.isPending ? change.variables : {}) };

  function turn(wish: WorkspaceChange, said: string) {
    change.mutate(wish, { onSuccess: () => toastDone(said) });
  }

  return (
    <Panel title="How apps reach the servers">
      <Stack gap="md" maw={460}>
        <Refused error={change.error} title="Nothing was changed" />
        <Switch
          label="Serve HTTP+SSE too"
          description="The transport of 2024-11-05, deprecated since. Turn it off once none of your apps connects to an address that ends in /sse: they are refused at once."
          checked={shown.http_sse}
          disabled={!administers || change.isPending}
          onChange={(event) => {
            const on = event.currentTarget.checked;
            turn({ http_sse: on }, on ? 'HTTP+SSE is served.' : 'HTTP+SSE is no longer served.');
          }}
        />
        <Switch
          label="One token for all servers"
          description="Apps and keys that are allowed into the whole workspace may use each of its servers. If this is off, they may use the default server alone, and whoever wants another one has to ask for that one."
          checked={shown.workspace_tokens}
          disabled={!administers || change.isPending}
          onChange={(event) => {
            const on = event.currentTarget.checked;
            turn(
              { workspace_tokens: on },
              on ? 'One token opens all servers.' : 'A token opens one server, and no other.',
            );
          }}
        />
        {!administers && <span>An admin or owner can change this.</span>}
      </Stack>
    </Panel>
  );
}

/** Typed, proved and undone for a month: everything else would be an accident one day. */
function Deletion({ workspace }: { workspace: Workspace }) {
  const navigate = useNavigate();
  const remove = useDeleteWorkspace(workspace.slug);
  const [typed, setTyped] = useState('');
  const path = confirmPath(remove.error);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (typed.trim() !== workspace.slug) return;
    remove.mutate(
      { slug: typed.trim() },
      {
        onSuccess: (done) => {
          toastDone(`The workspace stopped. It can be restored until ${formatDate(done.delete_after)}.`);
          void navigate({ to: '/', search: { create: true } });
        },
      },
    );
  }

  return (
    <Panel title="Delete this workspace">
      <form onSubmit={submit} noValidate>
        <Stack gap="md" maw={460}>
          <span>
            Its servers stop and its apps lose access at once. For 30 days an owner can restore it; after that
            everything in it is destroyed, and its address is never given to anybody else.
          </span>
          {remove.error && (
            <Alert
              color={path ? 'yellow' : 'red'}
              data-tone={path ? 'yellow' : 'red'}
              role="alert"
              title={path ? 'Confirm it is you' : 'The workspace was not deleted'}
            >
              {remove.error.message} {path && <a href={path}>Confirm</a>}
            </Alert>
          )}
          <TextInput
            label={`Type ${workspace.slug} to delete it`}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
          />
          <div>
            <Button
              type="submit"
              color="red"
              loading={remove.isPending}
              disabled={typed.trim() !== workspace.slug}
            >
              Delete the workspace
            </Button>
          </div>
        </Stack>
      </form>
    </Panel>
  );
}
