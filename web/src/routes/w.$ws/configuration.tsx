import { Button, Group, Stack } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { configurationQuery, type ObjectKind } from '../../api/configuration';
import { promptsQuery } from '../../api/prompts';
import { resourcesQuery } from '../../api/resources';
import { serversQuery } from '../../api/servers';
import { sourcesQuery } from '../../api/sources';
import { webhooksQuery } from '../../api/webhooks';
import { CodeBlock, CopyButton } from '../../components/copy';
import { TextLink } from '../../components/link-button';
import { NumberedText } from '../../components/numbered-text';
import { type OwnedObject, OwnedObjects } from '../../components/owned-objects';
import { Facts, Failed, Loaded, Loading, Page, Panel } from '../../components/page';
import { Restricted } from '../../components/restricted';
import { saveFile } from '../../save-file';
import { useMay, useSession } from '../../session';

export const Route = createFileRoute('/w/$ws/configuration')({
  component: ConfigurationPage,
});

const fileName = 'portolan.yaml';

function ConfigurationPage() {
  return (
    <Restricted needs="edit_registry" title="Configuration">
      <Configuration />
    </Restricted>
  );
}

function Configuration() {
  const { workspace } = useSession();
  const file = useQuery(configurationQuery(workspace.slug));
  const text = file.data;
  return (
    <Page
      title="Configuration"
      help="configuration-as-code"
      lede="The workspace as one file: its sources with their tools, its prompts, resources, servers and webhooks."
    >
      <Panel
        title={fileName}
        note="Secrets are references: the file has no values of credentials."
        aside={
          text !== undefined && (
            <Group gap="xs">
              <CopyButton text={text} label="Copy the file" />
              <Button
                variant="default"
                leftSection={<IconDownload size={16} aria-hidden />}
                onClick={() => saveFile(text, fileName, 'application/yaml')}
              >
                Download
              </Button>
            </Group>
          )
        }
      >
        <Loaded query={file} lines={12}>
          {(whole) => <NumberedText text={whole} label="The workspace as YAML" />}
        </Loaded>
      </Panel>
      <Owned />
      <Apply ws={workspace.slug} />
    </Page>
  );
}

/** The objects of a list that a file owns. */
const ownedOf = <Thing extends { id: string; managed_by?: string }>(
  kind: ObjectKind,
  things: Thing[],
  name: (thing: Thing) => string,
): OwnedObject[] =>
  things.flatMap((thing) =>
    thing.managed_by ? [{ kind, id: thing.id, name: name(thing), owner: thing.managed_by }] : [],
  );

function Owned() {
  const { workspace } = useSession();
  const ws = workspace.slug;
  const sources = useQuery(sourcesQuery(ws));
  const prompts = useQuery(promptsQuery(ws));
  const resources = useQuery(resourcesQuery(ws));
  const servers = useQuery(serversQuery(ws));
  const administers = useMay('administer');
  const webhooks = useQuery({ ...webhooksQuery(ws), enabled: administers });
  const areWebhooksRead = webhooks.data !== undefined || !administers;
  if (sources.data && prompts.data && resources.data && servers.data && areWebhooksRead) {
    const objects = [
      ...ownedOf('source', sources.data.items, (one) => one.name),
      ...ownedOf('prompt', prompts.data.items, (one) => one.name),
      ...ownedOf('resource', resources.data.items, (one) => one.uri),
      ...ownedOf('server', servers.data.items, (one) => one.name),
      ...ownedOf('webhook', webhooks.data?.items ?? [], (one) => one.url),
    ];
    return <OwnedObjects ws={ws} objects={objects} />;
  }
  const queries = [sources, prompts, resources, servers, webhooks];
  const failed = queries.find((query) => query.error);
  const again = () => {
    for (const query of queries) void query.refetch();
  };
  return (
    <Panel title="Objects that files own">
      {failed ? <Failed error={failed.error} retry={again} /> : <Loading />}
    </Panel>
  );
}

/** The commands that read the file. */
function Apply({ ws }: { ws: string }) {
  const commands = [
    `export PORTOLAN_URL=${window.location.origin}`,
    `export PORTOLAN_WORKSPACE=${ws}`,
    'export PORTOLAN_TOKEN=ptlw_…',
    'portolan plan',
    'portolan apply',
  ].join('\n');
  return (
    <Panel
      title="Apply a file"
      note={
        <>
          The commands read <code>{fileName}</code> of the folder that they run in.
        </>
      }
    >
      <Stack gap="md">
        <span>
          Make an access token of the workspace on the page{' '}
          <TextLink to="/w/$ws/keys" params={{ ws }} underline="always">
            Keys
          </TextLink>
          , with the scopes <code>registry:read</code> and <code>registry:write</code>.
        </span>
        <CodeBlock code={commands} label="commands" />
        <Facts
          items={[
            [
              'Check',
              <span key="validate">
                <code>portolan validate</code> checks the file without a workspace.
              </span>,
            ],
            [
              'Preview',
              <span key="plan">
                <code>portolan plan</code> shows what the file would change, and changes nothing.
              </span>,
            ],
            [
              'Apply',
              <span key="apply">
                <code>portolan apply</code> shows the changes, asks, and makes all of them or none. The file
                then owns its objects.
              </span>,
            ],
          ]}
        />
      </Stack>
    </Panel>
  );
}
