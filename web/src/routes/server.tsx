import { Alert, Button, Group, Stack, Tabs, Textarea, TextInput } from '@mantine/core';
import { IconActivity, IconPlayerPause, IconPlayerPlay } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { ApiError } from '../api/http';
import {
  connectionQuery,
  type ServerDetail,
  serverCallsQuery,
  serverQuery,
  useDeleteServer,
  useSetPublished,
  useSetServerTools,
  useUpdateServer,
} from '../api/servers';
import { sourcesQuery } from '../api/sources';
import { type ToolSummary, toolsQuery } from '../api/tools';
import { Ago } from '../components/ago';
import { ServerStatus, Tag } from '../components/badges';
import { CallsTable } from '../components/calls';
import { ConnectionGuide, ServerUrl } from '../components/connection';
import { RefusedCredentials, SourceCredentialStatus } from '../components/credential-state';
import { DeletePanel } from '../components/delete-panel';
import { useFields } from '../components/form';
import { InlineCode } from '../components/inline-code';
import { TextLink } from '../components/link-button';
import operations from '../components/operations.module.css';
import { Empty, Facts, Loaded, Page, Panel } from '../components/page';
import { ServerPrompts, ServerResources } from '../components/server-offers';
import { Submit } from '../components/submit';
import { LoadMore } from '../components/table';
import { toastDone, toastFailed, toastUndo } from '../components/toast';
import { clashingNames, ToolPicker } from '../components/tool-picker';
import { Unsaved } from '../components/unsaved';
import { blank } from '../rules';
import { useMay, useSession } from '../session';

export function ServerPage() {
  const { workspace } = useSession();
  const { id } = useParams({ from: '/w/$ws/servers/$id' });
  const server = useQuery(serverQuery(workspace.slug, id));
  if (!server.data) {
    return (
      <Page title="Server" back={{ label: 'Servers', to: '/w/$ws/servers', params: { ws: workspace.slug } }}>
        <Loaded query={server}>{() => null}</Loaded>
      </Page>
    );
  }
  return <ServerView key={server.data.id} server={server.data} />;
}

function ServerView({ server }: { server: ServerDetail }) {
  const { workspace } = useSession();
  const ws = workspace.slug;
  const { tab } = useSearch({ from: '/w/$ws/servers/$id' });
  const navigate = useNavigate();
  const edits = useMay('edit_registry');
  const publish = useSetPublished(ws);
  const published = server.status === 'published';
  // As the list of servers counts them: what is disabled or gone is not served.
  const served = server.tools.filter((tool) => tool.enabled && tool.state === 'active');

  function toggle() {
    publish.mutate(
      { id: server.id, published: !published },
      {
        onSuccess: () =>
          published
            ? toastUndo(
                'Server paused. Clients get an error.',
                () => publish.mutateAsync({ id: server.id, published: true }),
                'Server resumed.',
              )
            : toastDone('Server published.'),
        onError: toastFailed,
      },
    );
  }

  return (
    <Page
      title={server.name}
      back={{ label: 'Servers', to: '/w/$ws/servers', params: { ws } }}
      beside={
        <>
          <ServerStatus status={server.status} /> {server.workspace_url && <Tag>Default server</Tag>}
        </>
      }
      lede={server.description}
      actions={
        edits && (
          <Button
            variant={published ? 'default' : 'filled'}
            loading={publish.isPending}
            leftSection={
              published ? <IconPlayerPause size={16} aria-hidden /> : <IconPlayerPlay size={16} aria-hidden />
            }
            onClick={toggle}
          >
            {published ? 'Pause' : server.status === 'paused' ? 'Resume' : 'Publish'}
          </Button>
        )
      }
    >
      <ServerUrl url={server.url} />
      <ServerSources server={server} />
      {server.warnings.length > 0 && (
        <Alert color="yellow" data-tone="yellow" title="Client compatibility">
          <ul className="short">
            {server.warnings.map((warning) => (
              <li key={`${warning.client}${warning.message}`}>
                <strong>{warning.client}</strong>: <InlineCode text={warning.message} />
              </li>
            ))}
          </ul>
        </Alert>
      )}
      <Tabs
        value={tab ?? 'tools'}
        onChange={(value) =>
          void navigate({
            to: '/w/$ws/servers/$id',
            params: { ws, id: server.id },
            search: { tab: value ?? undefined },
            replace: true,
          })
        }
      >
        <Tabs.List mb="lg">
          <Tabs.Tab value="tools">Tools {served.length}</Tabs.Tab>
          <Tabs.Tab value="prompts">Prompts {server.prompts.length}</Tabs.Tab>
          <Tabs.Tab value="resources">Resources {server.resources.length}</Tabs.Tab>
          <Tabs.Tab value="connect">Connect</Tabs.Tab>
          <Tabs.Tab value="calls">Calls</Tabs.Tab>
          <Tabs.Tab value="settings">Settings</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="tools">
          <ServerTools key={server.updated_at} server={server} />
        </Tabs.Panel>
        <Tabs.Panel value="prompts">
          <ServerPrompts key={server.updated_at} server={server} />
        </Tabs.Panel>
        <Tabs.Panel value="resources">
          <ServerResources key={server.updated_at} server={server} />
        </Tabs.Panel>
        <Tabs.Panel value="connect">
          <Connect server={server} />
        </Tabs.Panel>
        <Tabs.Panel value="calls">
          <ServerCalls server={server} />
        </Tabs.Panel>
        <Tabs.Panel value="settings">
          <ServerSettings key={server.updated_at} server={server} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

/** The sources of the published tools, each with the state of its credential. */
function ServerSources({ server }: { server: ServerDetail }) {
  const { workspace } = useSession();
  const ws = workspace.slug;
  const sources = useQuery(sourcesQuery(ws));
  const tools = useQuery(toolsQuery(ws));
  const published = new Set(server.tools.map((tool) => tool.tool_id));
  const ids = new Set(tools.data?.filter((tool) => published.has(tool.id)).map((tool) => tool.source_id));
  const used = sources.data?.items.filter((source) => ids.has(source.id)) ?? [];
  if (used.length === 0) return null;
  return (
    <>
      <RefusedCredentials ws={ws} sources={used} />
      <Group component="ul" aria-label="Sources" gap="lg" m={0} p={0} style={{ listStyle: 'none' }}>
        {used.map((source) => (
          <Group component="li" key={source.id} gap="xs">
            <TextLink to="/w/$ws/sources/$id" params={{ ws, id: source.id }}>
              {source.name}
            </TextLink>
            <SourceCredentialStatus source={source} />
          </Group>
        ))}
      </Group>
    </>
  );
}

function ServerTools({ server }: { server: ServerDetail }) {
  const { workspace } = useSession();
  const tools = useQuery(toolsQuery(workspace.slug));
  return (
    <Loaded query={tools} lines={8}>
      {(items) => <ChooseTools server={server} all={items} />}
    </Loaded>
  );
}

function ChooseTools({ server, all }: { server: ServerDetail; all: ToolSummary[] }) {
  const { workspace } = useSession();
  const edits = useMay('edit_registry');
  const save = useSetServerTools(workspace.slug);
  const before = new Map(server.tools.map((tool) => [tool.tool_id, tool.published_name]));
  const [names, setNames] = useState<Map<string, string>>(before);
  const shown = all.filter((tool) => before.has(tool.id) || (tool.enabled && tool.state === 'active'));
  const refused = save.error instanceof ApiError ? save.error : null;
  const named = (refused?.details as { names?: string[] } | undefined)?.names ?? [];
  const clashes = new Set([
    ...clashingNames(names),
    ...named.filter((name) => [...names.values()].includes(name)),
  ]);
  const dirty = names.size !== before.size || [...names].some(([id, name]) => before.get(id) !== name);
  const badName = [...names.values()].some((name) => !/^[A-Za-z0-9_-]{1,64}$/.test(name));

  return (
    <Stack gap="lg">
      <Unsaved when={dirty && !save.isPending} />
      <Panel
        title="Tools of this server"
        note="The field beside a selected tool is its published name (what clients see)."
        flush
      >
        {shown.length === 0 ? (
          <p className={operations.none}>This workspace has no enabled tools.</p>
        ) : (
          <ToolPicker
            tools={shown}
            names={names}
            onChange={setNames}
            editable={edits}
            clashes={clashes}
            onlySelected={before.size > 0}
          />
        )}
      </Panel>
      {edits && (
        <Submit sticky error={save.error} title="The tools were not saved">
          <Button
            disabled={!dirty || clashes.size > named.length || badName}
            loading={save.isPending}
            onClick={() =>
              save.mutate(
                {
                  id: server.id,
                  tools: [...names].map(([tool_id, published_name]) => ({ tool_id, published_name })),
                },
                { onSuccess: () => toastDone('Tools saved. Connected clients see the new list.') },
              )
            }
          >
            Save tools
          </Button>
          {dirty && (
            <Button variant="subtle" onClick={() => setNames(before)}>
              Discard changes
            </Button>
          )}
        </Submit>
      )}
    </Stack>
  );
}

function Connect({ server }: { server: ServerDetail }) {
  const { workspace } = useSession();
  const connection = useQuery(connectionQuery(workspace.slug, server.id));
  return (
    <Stack gap="lg">
      {server.status !== 'published' && (
        <Alert color="yellow" data-tone="yellow">
          Publish the server first. Until then, clients can’t list or call its tools.
        </Alert>
      )}
      <Panel
        title="Connect a client"
        note="The client opens a browser window where you sign in and allow access. There is no key to copy."
      >
        <Loaded query={connection}>{(data) => <ConnectionGuide connection={data} />}</Loaded>
      </Panel>
    </Stack>
  );
}

function ServerCalls({ server }: { server: ServerDetail }) {
  const { workspace } = useSession();
  const calls = useInfiniteQuery(serverCallsQuery(workspace.slug, server.id));
  return (
    <Panel flush>
      <Loaded query={calls}>
        {(data) => {
          const items = data.pages.flatMap((page) => page.items);
          return items.length === 0 ? (
            <Empty icon={<IconActivity size={24} />} title="No calls yet">
              Connect a client and ask for something that needs one of the tools.
            </Empty>
          ) : (
            <>
              <CallsTable calls={items} label="Calls" server={false} />
              <LoadMore query={calls} />
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function ServerSettings({ server }: { server: ServerDetail }) {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const edits = useMay('edit_registry');
  const update = useUpdateServer(workspace.slug, server.id);
  const remove = useDeleteServer(workspace.slug);
  const form = useFields({
    initialValues: {
      name: server.name,
      description: server.description ?? '',
      instructions: server.instructions ?? '',
    },
    validate: ({ name }) => ({ name: blank(name, 'Enter a name for the server.') }),
    eager: true,
    error: update.error,
  });

  const send = ({ name, description, instructions }: typeof form.values) =>
    update.mutate(
      { name: name.trim(), description: description.trim(), instructions: instructions.trim() },
      { onSuccess: () => toastDone('Settings saved.') },
    );

  return (
    <Stack gap="lg">
      <Panel title="What clients see">
        <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
          <Unsaved when={form.isChanged() && !update.isPending && !remove.isPending} />
          <fieldset disabled={!edits} className="bare">
            <Stack gap="md" maw={640}>
              <TextInput label="Name" {...form.getInputProps('name')} />
              <TextInput label="Description" {...form.getInputProps('description')} />
              <Textarea
                label="Instructions"
                description="Clients pass them to the model with the tools."
                rows={4}
                {...form.getInputProps('instructions')}
              />
              {edits && (
                <Submit error={update.error} title="The settings were not saved">
                  <Button type="submit" loading={update.isPending}>
                    Save settings
                  </Button>
                </Submit>
              )}
            </Stack>
          </fieldset>
        </form>
      </Panel>
      <Panel title="About">
        <Facts
          items={[
            ['Address', <code key="slug">{server.slug}</code>],
            ['Created', <Ago key="created" at={server.created_at} />],
            ['Published', server.published_at ? <Ago key="published" at={server.published_at} /> : 'Never'],
          ]}
        />
      </Panel>
      {edits && (
        <DeletePanel
          noun="server"
          name={server.name}
          note="Clients lose access immediately. You can restore it from the trash for 30 days."
          busy={remove.isPending}
          error={remove.error}
          act={() =>
            remove.mutate(server.id, {
              onSuccess: () => {
                void navigate({
                  to: '/w/$ws/servers',
                  params: { ws: workspace.slug },
                  ignoreBlocker: true,
                });
              },
            })
          }
        >
          {server.status === 'published'
            ? 'This server is published: connected clients lose access immediately.'
            : 'This server is not published.'}{' '}
          You can restore it from the trash for 30 days.
        </DeletePanel>
      )}
    </Stack>
  );
}
