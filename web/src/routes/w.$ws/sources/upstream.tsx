import { Button, Checkbox, Stack, Switch, TextInput } from '@mantine/core';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import { ApiError } from '../../../api/http';
import { type Sharing, useConnect } from '../../../api/sign-in';
import type { Credential } from '../../../api/sources';
import { type UpstreamPreview, useAddUpstream, usePreviewUpstream } from '../../../api/upstreams';
import { CredentialForm } from '../../../components/credential-form';
import { useFields } from '../../../components/form';
import { Page, Panel } from '../../../components/page';
import { SharingChoice } from '../../../components/sharing';
import { Submit } from '../../../components/submit';
import { Unsaved } from '../../../components/unsaved';
import { Offered, ServerFacts } from '../../../components/upstream-offer';
import { addressFault, blank } from '../../../rules';
import { useMay, useSession } from '../../../session';

export const Route = createFileRoute('/w/$ws/sources/upstream')({
  component: NewUpstreamPage,
});

/** Two steps: where the server is and what opens it; then what it offers, chosen and named. */
function NewUpstreamPage() {
  const { me, workspace } = useSession();
  const edits = useMay('edit_registry');
  const preview = usePreviewUpstream(workspace.slug);
  const form = useFields({
    initialValues: { url: '', wantsCredential: false },
    validate: ({ url }) => ({ url: addressFault(url.trim()) }),
    error: preview.error,
  });
  const url = form.values.url.trim();
  const { wantsCredential } = form.values;
  const credential = preview.variables?.credential ?? undefined;
  const back = { label: 'Sources', to: '/w/$ws/sources', params: { ws: workspace.slug } } as const;

  if (!edits) {
    return (
      <Page title="Add an MCP server" back={back}>
        <Panel>Your role can’t add MCP servers. Ask a developer, admin or owner.</Panel>
      </Page>
    );
  }

  const look = (chosen?: Credential) =>
    form.onSubmit(() => preview.mutate({ url, ...(chosen ? { credential: chosen } : {}) }));

  const wantsSignIn =
    preview.error instanceof ApiError && preview.error.code === 'upstream_wants_sign_in' && !credential;
  if (preview.data) {
    return <Choose url={url} credential={credential} offer={preview.data} onBack={() => preview.reset()} />;
  }
  return (
    <Page
      title="Add an MCP server"
      help="console#sources"
      back={back}
      lede="An existing MCP server, any protocol version. Publish its tools, prompts and resources next to your own."
    >
      <Panel>
        <Stack gap="md" maw={560}>
          {wantsSignIn && <SignInFirst url={url} />}
          <form ref={form.ref} onSubmit={look()} noValidate>
            <Stack gap="md">
              <TextInput
                label="Address"
                description="The server’s MCP endpoint URL."
                placeholder="https://mcp.example.com/mcp"
                type="url"
                required
                {...form.getInputProps('url')}
              />
              {me.demo_api && form.values.url === '' && (
                <div>
                  <Button
                    variant="default"
                    size="compact-md"
                    onClick={() => form.setFieldValue('url', me.demo_api?.mcp_url ?? '')}
                  >
                    Use the demo server
                  </Button>
                </div>
              )}
              <Checkbox
                label="This server requires a credential"
                {...form.getInputProps('wantsCredential', { type: 'checkbox' })}
              />
              {!wantsCredential && (
                <Submit
                  error={wantsSignIn ? undefined : preview.error}
                  title="Could not connect to the server"
                >
                  <Button type="submit" loading={preview.isPending}>
                    Connect and preview
                  </Button>
                </Submit>
              )}
            </Stack>
          </form>
          {wantsCredential && (
            <CredentialForm
              hints={[]}
              note="Encrypted at rest. It can’t be viewed again."
              submitLabel="Connect and preview"
              pending={preview.isPending}
              error={wantsSignIn ? null : preview.error}
              failed="Could not connect to the server"
              onSubmit={(chosen) => look(chosen)()}
            />
          )}
        </Stack>
      </Panel>
    </Page>
  );
}

/** A server that wants a token: it is added first, and looked at once an account is connected. */
function SignInFirst({ url }: { url: string }) {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const add = useAddUpstream(workspace.slug);
  const connect = useConnect(workspace.slug);
  const form = useFields({ initialValues: { sharing: 'workspace' as Sharing } });
  const { sharing } = form.values;

  function go() {
    add.mutate(
      { url, sign_in: sharing, hold_changes: true },
      {
        onSuccess: (made) =>
          connect.mutate(made.id, {
            onSuccess: (begun) => {
              if (begun.url) window.location.assign(begun.url);
            },
            // It is there, and its page says what is missing.
            onError: () =>
              void navigate({
                to: '/w/$ws/sources/$id',
                params: { ws: workspace.slug, id: made.id },
                search: { tab: 'credential' },
              }),
          }),
      },
    );
  }

  return (
    <Panel
      title="This server requires sign-in"
      note="You go to its authorization server and come back. If you have a key instead, set a credential below."
    >
      <Stack gap="md">
        <SharingChoice value={sharing} onChange={(next) => form.setFieldValue('sharing', next)} looks />
        <Submit error={add.error} title="The server was not added">
          <Button onClick={go} loading={add.isPending || connect.isPending || connect.isSuccess}>
            Add server and sign in
          </Button>
        </Submit>
      </Stack>
    </Panel>
  );
}

function Choose({
  url,
  credential,
  offer,
  onBack,
}: {
  url: string;
  credential?: Credential;
  offer: UpstreamPreview;
  onBack: () => void;
}) {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const add = useAddUpstream(workspace.slug);
  const form = useFields({
    initialValues: {
      name: offer.server_name ?? new URL(url).hostname,
      prefix: '',
      hold_changes: true,
      tools: new Set(offer.tools.map((tool) => tool.name)),
    },
    validate: ({ name }) => ({ name: blank(name, 'Enter a name for the server.') }),
    eager: true,
    error: add.error,
  });

  const send = ({ name, prefix, hold_changes, tools }: typeof form.values) =>
    add.mutate(
      {
        name: name.trim(),
        url,
        prefix: prefix.trim(),
        hold_changes,
        tools: [...tools],
        ...(credential ? { credential } : {}),
      },
      {
        onSuccess: (made) =>
          void navigate({
            to: '/w/$ws/sources/$id',
            params: { ws: workspace.slug, id: made.id },
            ignoreBlocker: true,
          }),
      },
    );

  return (
    <Page
      title="Add an MCP server"
      back={{ label: 'Sources', to: '/w/$ws/sources', params: { ws: workspace.slug } }}
      lede={<code>{url}</code>}
    >
      <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
        <Unsaved when={!add.isSuccess} />
        <Stack gap="lg">
          <Panel title="Server details">
            <ServerFacts server={offer} />
          </Panel>
          <Offered
            offer={offer}
            chosen={form.values.tools}
            onChoose={(tools) => form.setFieldValue('tools', tools)}
          />
          <Panel title="In this workspace">
            <Stack gap="md" maw={560}>
              <TextInput label="Name" maxLength={80} required {...form.getInputProps('name')} />
              <TextInput
                label="Prefix"
                description="Added before the names of its tools and prompts. Leave empty to keep the names."
                placeholder="weather_"
                maxLength={32}
                {...form.getInputProps('prefix')}
              />
              <Switch
                label="Require approval for upstream changes"
                description="Recommended. Without approval, changes are published within minutes."
                {...form.getInputProps('hold_changes', { type: 'checkbox' })}
              />
            </Stack>
          </Panel>
          <Submit sticky error={add.error} title="The server was not added">
            <Button type="submit" loading={add.isPending}>
              Add server
            </Button>
            <Button variant="default" onClick={onBack}>
              Back
            </Button>
          </Submit>
        </Stack>
      </form>
    </Page>
  );
}
