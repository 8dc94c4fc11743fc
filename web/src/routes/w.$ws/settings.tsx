import { Button, Stack, Switch, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import {
  useChangeWorkspace,
  useDeleteWorkspace,
  type Workspace,
  type WorkspaceChange,
  workspaceQuery,
} from '../../api/workspaces';
import { useFields } from '../../components/form';
import { TextLink } from '../../components/link-button';
import { Facts, Loaded, Page, Panel } from '../../components/page';
import { Refused } from '../../components/refused';
import { Submit } from '../../components/submit';
import { toastDone } from '../../components/toast';
import { Unsaved } from '../../components/unsaved';
import { blank } from '../../rules';
import { useMay, useSession } from '../../session';
import { formatDate } from '../../time';

export const Route = createFileRoute('/w/$ws/settings')({
  component: SettingsPage,
});

function SettingsPage() {
  const { workspace } = useSession();
  const query = useQuery(workspaceQuery(workspace.slug));
  return (
    <Page title="Workspace settings">
      <Loaded query={query}>{(data) => <Settings key={data.name} workspace={data} />}</Loaded>
    </Page>
  );
}

function Settings({ workspace }: { workspace: Workspace }) {
  const administers = useMay('administer');
  const rename = useChangeWorkspace(workspace.slug);
  const form = useFields({
    initialValues: { name: workspace.name },
    validate: ({ name }) => ({ name: blank(name, 'Enter a name for the workspace.') }),
    eager: true,
    error: rename.error,
  });
  const name = form.values.name.trim();

  return (
    <>
      <Panel title="Name">
        <form
          ref={form.ref}
          onSubmit={form.onSubmit(() =>
            rename.mutate({ name }, { onSuccess: () => toastDone('Workspace renamed.') }),
          )}
          noValidate
        >
          <Unsaved when={name !== workspace.name && !rename.isPending} />
          <Stack gap="md" maw={460}>
            <TextInput
              label="Workspace name"
              {...form.getInputProps('name')}
              disabled={!administers}
              maxLength={80}
            />
            {administers ? (
              <Submit error={rename.error} title="The workspace was not renamed">
                <Button type="submit" loading={rename.isPending} disabled={name === workspace.name}>
                  Save
                </Button>
              </Submit>
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
            [
              'Server URLs begin with',
              <code key="url">{`${window.location.origin}/t/${workspace.slug}/`}</code>,
            ],
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

/** How apps reach the servers: what is deprecated is served until an admin turns it off. */
function Reach({ workspace, administers }: { workspace: Workspace; administers: boolean }) {
  const change = useChangeWorkspace(workspace.slug);
  const shown: WorkspaceChange = { ...workspace, ...(change.isPending ? change.variables : {}) };

  function turn(wish: WorkspaceChange, said: string) {
    change.mutate(wish, { onSuccess: () => toastDone(said) });
  }

  return (
    <Panel title="Access to the servers">
      <Stack gap="md" maw={460}>
        <Refused error={change.error} title="Nothing was changed" />
        <Switch
          label="Allow the legacy HTTP+SSE transport"
          description="The deprecated transport of MCP 2024-11-05. Turn it off when no app uses a URL that ends in /sse; such apps are refused immediately."
          checked={shown.http_sse}
          disabled={!administers || change.isPending}
          onChange={(event) => {
            const on = event.currentTarget.checked;
            turn({ http_sse: on }, on ? 'HTTP+SSE is allowed.' : 'HTTP+SSE is turned off.');
          }}
        />
        <Switch
          label="Allow workspace-wide tokens"
          description="Apps and keys with access to the whole workspace can use all of its servers. When off, they can use only the default server, and need separate access for each other one."
          checked={shown.workspace_tokens}
          disabled={!administers || change.isPending}
          onChange={(event) => {
            const on = event.currentTarget.checked;
            turn(
              { workspace_tokens: on },
              on ? 'Workspace-wide tokens are allowed.' : 'Workspace-wide tokens are turned off.',
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
  const form = useFields({ initialValues: { slug: '' }, error: remove.error });
  const slug = form.values.slug.trim();

  function send() {
    if (slug !== workspace.slug) return;
    remove.mutate(
      { slug },
      {
        onSuccess: (done) => {
          toastDone(`Workspace deleted. It can be restored until ${formatDate(done.delete_after)}.`);
          void navigate({ to: '/', search: { create: true } });
        },
      },
    );
  }

  return (
    <Panel title="Delete this workspace">
      <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
        <Stack gap="md" maw={460}>
          <span>
            Its servers stop and its apps lose access immediately. An owner can restore it for 30 days; after
            that, everything in it is deleted permanently and its address is never reused.
          </span>
          <TextInput
            label={`Type ${workspace.slug} to delete it`}
            {...form.getInputProps('slug')}
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
          />
          <Submit error={remove.error} title="The workspace was not deleted">
            <Button type="submit" color="red" loading={remove.isPending} disabled={slug !== workspace.slug}>
              Delete workspace
            </Button>
          </Submit>
        </Stack>
      </form>
    </Panel>
  );
}
