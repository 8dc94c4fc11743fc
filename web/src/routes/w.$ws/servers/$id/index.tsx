import { Alert, Button, Group, Stack, Tabs } from '@mantine/core';
import { IconActivity, IconPlayerPause, IconPlayerPlay, IconTerminal2 } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import {
  connectionQuery,
  type ServerDetail,
  serverCallsQuery,
  serverQuery,
  useSetPublished,
} from '../../../../api/servers';
import { sourcesQuery } from '../../../../api/sources';
import { toolsQuery } from '../../../../api/tools';
import { ServerStatus, Tag } from '../../../../components/badges';
import { CallsTable } from '../../../../components/calls';
import { ClientWarnings } from '../../../../components/client-warnings';
import { ConnectionGuide, ServerUrl } from '../../../../components/connection';
import { RefusedCredentials, SourceCredentialStatus } from '../../../../components/credential-state';
import { LinkButton, TextLink } from '../../../../components/link-button';
import { ManagedBy } from '../../../../components/managed-by';
import { Empty, Loaded, Page, Panel } from '../../../../components/page';
import { LoadMore } from '../../../../components/table';
import { toastDone, toastFailed, toastUndo } from '../../../../components/toast';
import { text } from '../../../../search';
import { useMay, useSession } from '../../../../session';
import { ShowAsYaml } from '../../-show-as-yaml';
import { ServerPrompts, ServerResources } from './-offers';
import { ServerSettings } from './-settings';
import { ServerTools } from './-tools';
import classes from './server.module.css';

export const Route = createFileRoute('/w/$ws/servers/$id/')({
  component: ServerPage,
  validateSearch: (search: Record<string, unknown>): { tab?: string } => ({ tab: text(search.tab) }),
});

function ServerPage() {
  const { workspace } = useSession();
  const { id } = Route.useParams();
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
  const { tab } = Route.useSearch();
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
          <ServerStatus status={server.status} /> {server.workspace_url && <Tag>Default server</Tag>}{' '}
          <ManagedBy owner={server.managed_by} />
        </>
      }
      lede={server.description}
      actions={
        <>
          <ShowAsYaml kind="server" of={server.slug} />
          <LinkButton
            to="/w/$ws/servers/$id/playground"
            params={{ ws, id: server.id }}
            variant="default"
            leftSection={<IconTerminal2 size={16} aria-hidden />}
          >
            Playground
          </LinkButton>
          {edits && (
            <Button
              variant={published ? 'default' : 'filled'}
              loading={publish.isPending}
              leftSection={
                published ? (
                  <IconPlayerPause size={16} aria-hidden />
                ) : (
                  <IconPlayerPlay size={16} aria-hidden />
                )
              }
              onClick={toggle}
            >
              {published ? 'Pause' : server.status === 'paused' ? 'Resume' : 'Publish'}
            </Button>
          )}
        </>
      }
    >
      <ServerUrl url={server.url} />
      <ServerSources server={server} />
      {((tab ?? 'tools') !== 'tools' || server.tools.length === 0) && (
        <ClientWarnings warnings={server.warnings} />
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
      <Group component="ul" aria-label="Sources" gap="lg" m={0} p={0} className={classes.sources}>
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
              <CallsTable calls={items} label="Calls" ws={workspace.slug} server={false} />
              <LoadMore query={calls} />
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}
