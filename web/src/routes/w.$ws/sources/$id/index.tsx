import { Alert, Box, Button, Group, Stack, Tabs } from '@mantine/core';
import { IconPlus, IconRefresh } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { isAttached } from '../../../../api/attachments';
import {
  type CredentialState,
  kindName,
  type Source,
  sourceQuery,
  sourceToolsQuery,
  useDeleteCredential,
  useDeleteSource,
  useSetCredential,
  useTestCredential,
  useUpdateSource,
} from '../../../../api/sources';
import { useSetToolsEnabled } from '../../../../api/tools';
import { Ago } from '../../../../components/ago';
import { Tag } from '../../../../components/badges';
import { CredentialForm } from '../../../../components/credential-form';
import {
  CredentialStatus,
  credentialAdvice,
  RefusedCredentials,
  SourceCredentialStatus,
} from '../../../../components/credential-state';
import { DeletePanel } from '../../../../components/delete-panel';
import { LinkButton } from '../../../../components/link-button';
import { ManagedBy } from '../../../../components/managed-by';
import { Facts, Loaded, Page, Panel } from '../../../../components/page';
import { SourceSettingsForm } from '../../../../components/source-settings';
import { toastDone, toastFailed, toastUndo } from '../../../../components/toast';
import { ToolList } from '../../../../components/tool-list';
import { narrowed, text } from '../../../../search';
import { useMay, useSession } from '../../../../session';
import { ShowAsYaml } from '../../-show-as-yaml';
import { NewApiSignIn } from './-api-sign-in';
import { AttachmentPanel } from './-attachment';
import { SignInPanel } from './-sign-in';
import { LookNow, PendingNotice, UpstreamPanel } from './-upstream';

export const Route = createFileRoute('/w/$ws/sources/$id/')({
  component: SourcePage,
  validateSearch: (search: Record<string, unknown>): { tab?: string; q?: string; show?: string } => ({
    tab: text(search.tab),
    ...narrowed(search),
  }),
});

function SourcePage() {
  const { workspace } = useSession();
  const { id } = Route.useParams();
  const source = useQuery(sourceQuery(workspace.slug, id));
  const back = { label: 'Sources', to: '/w/$ws/sources', params: { ws: workspace.slug } } as const;
  if (!source.data) {
    return (
      <Page title="Source" back={back}>
        <Loaded query={source}>{() => null}</Loaded>
      </Page>
    );
  }
  return <SourceView source={source.data} />;
}

function SourceView({ source }: { source: Source }) {
  const { workspace } = useSession();
  const ws = workspace.slug;
  const { tab } = Route.useSearch();
  const navigate = useNavigate();
  const edits = useMay('edit_registry');
  const params = { ws, id: source.id };
  const attached = isAttached(source.base_url);
  return (
    <Page
      title={source.name}
      back={{ label: 'Sources', to: '/w/$ws/sources', params: { ws } }}
      beside={
        <>
          <Tag>{attached ? 'Attached server' : kindName(source.kind)}</Tag>{' '}
          {(!attached || source.credential) && <SourceCredentialStatus source={source} />}{' '}
          <ManagedBy owner={source.managed_by} />
        </>
      }
      lede={attached ? 'Offered by a program on a private machine.' : <code>{source.base_url}</code>}
      actions={
        edits && (
          <>
            <ShowAsYaml kind="source" of={source.name} />
            {source.kind === 'openapi' ? (
              <LinkButton
                to="/w/$ws/sources/$id/reimport"
                params={params}
                variant="default"
                leftSection={<IconRefresh size={17} aria-hidden />}
              >
                Import again
              </LinkButton>
            ) : source.kind === 'mcp' ? (
              <LookNow id={source.id} />
            ) : (
              <LinkButton
                to="/w/$ws/sources/$id/tools/new"
                params={params}
                leftSection={<IconPlus size={17} aria-hidden />}
              >
                Add a tool
              </LinkButton>
            )}
          </>
        )
      }
    >
      {!source.credential && !source.sign_in && source.security.length > 0 && tab !== 'credential' && (
        <Alert color="yellow" data-tone="yellow" title="This API requires a credential">
          <Group justify="space-between">
            <span>Calls fail until you set it.</span>
            {edits && (
              <LinkButton
                to="/w/$ws/sources/$id"
                params={params}
                search={{ tab: 'credential' }}
                variant="default"
                size="compact-sm"
              >
                Set the credential
              </LinkButton>
            )}
          </Group>
        </Alert>
      )}
      {tab !== 'credential' && <RefusedCredentials ws={ws} sources={[source]} />}
      {source.kind === 'mcp' && tab !== 'server' && <PendingNotice id={source.id} />}
      <Tabs
        value={tab ?? 'tools'}
        onChange={(value) =>
          void navigate({
            to: '/w/$ws/sources/$id',
            params,
            search: { tab: value ?? undefined },
            replace: true,
          })
        }
        keepMounted={false}
      >
        <Tabs.List mb="lg">
          <Tabs.Tab value="tools">Tools</Tabs.Tab>
          {source.kind === 'mcp' && <Tabs.Tab value="server">Server</Tabs.Tab>}
          <Tabs.Tab value="credential">Credential</Tabs.Tab>
          <Tabs.Tab value="settings">Settings</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="tools">
          <SourceTools source={source} />
        </Tabs.Panel>
        {source.kind === 'mcp' && (
          <Tabs.Panel value="server">
            {attached && <AttachmentPanel id={source.id} />}
            <UpstreamPanel id={source.id} />
          </Tabs.Panel>
        )}
        <Tabs.Panel value="credential">
          {source.kind !== 'mcp' && source.sign_in ? (
            <SignInPanel source={source} />
          ) : (
            <SourceCredential source={source} />
          )}
          {source.kind === 'mcp' && (
            <Box mt={24}>
              <SignInPanel source={source} />
            </Box>
          )}
        </Tabs.Panel>
        <Tabs.Panel value="settings">
          <SourceSettings source={source} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

function SourceTools({ source }: { source: Source }) {
  const { workspace } = useSession();
  const tools = useQuery(sourceToolsQuery(workspace.slug, source.id));
  const setEnabled = useSetToolsEnabled(workspace.slug);
  const edits = useMay('edit_registry');
  return (
    <Panel flush>
      <Loaded query={tools} lines={6}>
        {(items) => (
          <ToolList
            ws={workspace.slug}
            tools={items}
            withSource={false}
            editable={edits}
            pending={setEnabled.isPending}
            onSetEnabled={(ids, enabled) =>
              setEnabled.mutate(
                { ids, enabled },
                {
                  onSuccess: (switched) =>
                    toastUndo(
                      `${ids.length === 1 ? '1 tool' : `${ids.length} tools`} ${enabled ? 'enabled' : 'disabled'}.`,
                      () => setEnabled.mutateAsync({ ids: switched.ids, enabled: !enabled }),
                      'Undone.',
                    ),
                  onError: toastFailed,
                },
              )
            }
          />
        )}
      </Loaded>
    </Panel>
  );
}

const kindNames = {
  api_key: 'API key',
  bearer: 'Bearer token',
  basic: 'User name and password',
  headers: 'Custom headers',
  oauth_client_credentials: 'OAuth client credentials',
};

/** Says what the test showed; the page says the rest. */
function toastTested(state: CredentialState) {
  if (state.state === 'works') toastDone('Credential saved. The API accepts it.');
  else toastDone('Credential saved. Its state is above.');
}

function SourceCredential({ source }: { source: Source }) {
  const { me, workspace } = useSession();
  const set = useSetCredential(workspace.slug);
  const remove = useDeleteCredential(workspace.slug);
  const edits = useMay('edit_registry');
  const { credential } = source;
  const isDemo = me.demo_api && source.document_url === me.demo_api.openapi_url;
  return (
    <>
      {credential && (
        <Panel
          title="Current credential"
          aside={
            edits && (
              <Group gap="xs">
                {!source.sign_in && <TestButton ws={workspace.slug} id={source.id} />}
                <Button
                  variant="subtle"
                  color="red"
                  loading={remove.isPending}
                  onClick={() =>
                    remove.mutate(source.id, {
                      onSuccess: () => toastDone('Credential removed.'),
                      onError: toastFailed,
                    })
                  }
                >
                  Remove
                </Button>
              </Group>
            )
          }
        >
          <Facts
            items={[
              ['Kind', kindNames[credential.kind]],
              ['Sends', <code key="hint">{credential.hint}</code>],
              ['Set', <Ago key="at" at={credential.updated_at} />],
              [
                'State',
                <div key="state" role="status">
                  <CredentialStatus state={credential.state} />
                  <div>{credentialAdvice(credential.state)}</div>
                </div>,
              ],
            ]}
          />
        </Panel>
      )}
      {edits ? (
        <Box mt={credential ? 24 : 0}>
          <Panel
            title={credential ? 'Replace credential' : 'Set a credential'}
            note="Encrypted at rest. It can’t be viewed again."
          >
            <CredentialForm
              key={credential?.updated_at}
              hints={source.security}
              known={isDemo ? me.demo_api?.api_key : undefined}
              submitLabel={credential ? 'Replace and test' : 'Save and test'}
              pending={set.isPending}
              error={set.error}
              signIn={
                source.kind === 'mcp' ? undefined : (
                  <NewApiSignIn
                    id={source.id}
                    hint={source.security.find((one) => one.kind === 'oauth_authorization_code')}
                  />
                )
              }
              onSubmit={(value) =>
                set.mutate(
                  { id: source.id, credential: value },
                  { onSuccess: ({ state }) => toastTested(state) },
                )
              }
            />
          </Panel>
        </Box>
      ) : (
        !credential && <Panel>No credential is set. A developer, admin or owner can set one.</Panel>
      )}
    </>
  );
}

/** Tests the credential that is set. */
function TestButton({ ws, id }: { ws: string; id: string }) {
  const test = useTestCredential(ws);
  return (
    <Button
      variant="default"
      loading={test.isPending}
      onClick={() => test.mutate(id, { onError: toastFailed })}
    >
      Test credential
    </Button>
  );
}

function SourceSettings({ source }: { source: Source }) {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const update = useUpdateSource(workspace.slug, source.id);
  const remove = useDeleteSource(workspace.slug);
  const edits = useMay('edit_registry');
  const facts: [string, ReactNode][] = [];
  if (source.spec_title) facts.push(['Title', source.spec_title]);
  if (source.spec_version) facts.push(['Format', `OpenAPI ${source.spec_version}`]);
  if (source.document_url) facts.push(['Fetched from', <code key="url">{source.document_url}</code>]);
  if (source.document_digest) facts.push(['Digest', <code key="digest">{source.document_digest}</code>]);
  facts.push(['Created', <Ago key="at" at={source.created_at} />]);
  return (
    <Stack gap={24}>
      <Panel title="Settings">
        <SourceSettingsForm
          key={source.updated_at}
          source={source}
          pending={update.isPending}
          error={update.error}
          readOnly={!edits}
          onSubmit={(change) => update.mutate(change, { onSuccess: () => toastDone('Settings saved.') })}
        />
      </Panel>
      <Panel title="About">
        <Facts items={facts} />
      </Panel>
      {edits && (
        <DeletePanel
          noun="source"
          name={source.name}
          note="Its tools are removed from every server immediately. You can restore it from the trash for 30 days."
          busy={remove.isPending}
          error={remove.error}
          act={() =>
            remove.mutate(source.id, {
              onSuccess: () => {
                void navigate({
                  to: '/w/$ws/sources',
                  params: { ws: workspace.slug },
                  ignoreBlocker: true,
                });
              },
            })
          }
        >
          {source.tool_count === 1 ? 'Its tool is' : `Its ${source.tool_count} tools are`} removed from every
          server immediately, and clients can no longer call {source.tool_count === 1 ? 'it' : 'them'}. You
          can restore it from the trash for 30 days.
        </DeletePanel>
      )}
    </Stack>
  );
}
