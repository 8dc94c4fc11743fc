import { Button, Checkbox, Stack, Switch, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { ApiError } from '../api/http';
import { type Sharing, useConnect } from '../api/sign-in';
import type { Credential } from '../api/sources';
import { type UpstreamPreview, useAddUpstream, usePreviewUpstream } from '../api/upstreams';
import { CredentialForm } from '../components/credential-form';
import { Page, Panel } from '../components/page';
import { SharingChoice } from '../components/sharing';
import { Submit, useFaultFocus } from '../components/submit';
import { Unsaved } from '../components/unsaved';
import { Offered, ServerFacts } from '../components/upstream';
import { useMay, useSession } from '../session';

/** Two steps: where the server is and what opens it; then what it offers, chosen and named. */
export function NewUpstreamPage() {
  const { me, workspace } = useSession();
  const edits = useMay('edit_registry');
  const preview = usePreviewUpstream(workspace.slug);
  const [url, setUrl] = useState('');
  const [tries, setTries] = useState(0);
  const tried = tries > 0;
  const form = useFaultFocus(tries);
  const [wantsCredential, setWantsCredential] = useState(false);
  const [credential, setCredential] = useState<Credential>();
  const badUrl = !/^https?:\/\//i.test(url.trim()) || !URL.canParse(url.trim());
  const back = { label: 'Sources', to: '/w/$ws/sources', params: { ws: workspace.slug } } as const;

  if (!edits) {
    return (
      <Page title="Add an MCP server" back={back}>
        <Panel>Your role can’t add MCP servers. Ask a developer, admin or owner.</Panel>
      </Page>
    );
  }

  function look(chosen?: Credential) {
    setTries((old) => old + 1);
    if (badUrl) return;
    setCredential(chosen);
    preview.mutate({ url: url.trim(), ...(chosen ? { credential: chosen } : {}) });
  }

  function submit(event: FormEvent) {
    event.preventDefault();
    look();
  }

  const wantsSignIn =
    preview.error instanceof ApiError && preview.error.code === 'upstream_wants_sign_in' && !credential;
  if (preview.data) {
    return (
      <Choose url={url.trim()} credential={credential} offer={preview.data} onBack={() => preview.reset()} />
    );
  }
  return (
    <Page
      title="Add an MCP server"
      back={back}
      lede="An existing MCP server, any protocol version. Publish its tools, prompts and resources next to your own."
    >
      <Panel>
        <Stack gap="md" maw={560}>
          {wantsSignIn && <SignInFirst url={url.trim()} />}
          <form ref={form} onSubmit={submit} noValidate>
            <Stack gap="md">
              <TextInput
                label="Address"
                description="The server’s MCP endpoint URL."
                placeholder="https://mcp.example.com/mcp"
                type="url"
                value={url}
                onChange={(event) => setUrl(event.currentTarget.value)}
                error={tried && badUrl ? 'Enter a complete URL: https://host/path.' : null}
                required
              />
              {me.demo_api && url === '' && (
                <div>
                  <Button
                    variant="default"
                    size="compact-md"
                    onClick={() => setUrl(me.demo_api?.mcp_url ?? '')}
                  >
                    Use the demo server
                  </Button>
                </div>
              )}
              <Checkbox
                label="This server requires a credential"
                checked={wantsCredential}
                onChange={(event) => setWantsCredential(event.currentTarget.checked)}
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
              onSubmit={look}
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
  const [sharing, setSharing] = useState<Sharing>('workspace');

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
        <SharingChoice value={sharing} onChange={setSharing} looks />
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
  const [name, setName] = useState(offer.server_name ?? new URL(url).hostname);
  const [prefix, setPrefix] = useState('');
  const [holds, setHolds] = useState(true);
  const [chosen, setChosen] = useState(() => new Set(offer.tools.map((tool) => tool.name)));

  const form = useFaultFocus(add.error);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (name.trim() === '') return;
    add.mutate(
      {
        name: name.trim(),
        url,
        prefix: prefix.trim(),
        hold_changes: holds,
        tools: [...chosen],
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
  }

  return (
    <Page
      title="Add an MCP server"
      back={{ label: 'Sources', to: '/w/$ws/sources', params: { ws: workspace.slug } }}
      lede={<code>{url}</code>}
    >
      <form ref={form} onSubmit={submit} noValidate>
        <Unsaved when={!add.isSuccess} />
        <Stack gap="lg">
          <Panel title="Server details">
            <ServerFacts server={offer} />
          </Panel>
          <Offered offer={offer} chosen={chosen} onChoose={setChosen} />
          <Panel title="In this workspace">
            <Stack gap="md" maw={560}>
              <TextInput
                label="Name"
                value={name}
                maxLength={80}
                onChange={(event) => setName(event.currentTarget.value)}
                error={name.trim() === '' ? 'Enter a name for the server.' : null}
                required
              />
              <TextInput
                label="Prefix"
                description="Added before the names of its tools and prompts. Leave empty to keep the names."
                placeholder="weather_"
                value={prefix}
                maxLength={32}
                onChange={(event) => setPrefix(event.currentTarget.value)}
              />
              <Switch
                label="Require approval for upstream changes"
                description="Recommended. Without approval, changes are published within minutes."
                checked={holds}
                onChange={(event) => setHolds(event.currentTarget.checked)}
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
