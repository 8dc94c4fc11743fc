import { Alert, Button, Checkbox, Group, Stack, Switch, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { ApiError } from '../api/http';
import { type Sharing, useConnect } from '../api/sign-in';
import type { Credential } from '../api/sources';
import { type UpstreamPreview, useAddUpstream, usePreviewUpstream } from '../api/upstreams';
import { CredentialForm } from '../components/credential-form';
import { Page, Panel } from '../components/page';
import { SharingChoice } from '../components/sharing';
import { Offered, ServerFacts } from '../components/upstream';
import { useMay, useSession } from '../session';

/** Two steps: where the server is and what opens it; then what it offers, chosen and named. */
export function NewUpstreamPage() {
  const { workspace } = useSession();
  const edits = useMay('edit_registry');
  const preview = usePreviewUpstream(workspace.slug);
  const [url, setUrl] = useState('');
  const [tried, setTried] = useState(false);
  const [wantsCredential, setWantsCredential] = useState(false);
  const [credential, setCredential] = useState<Credential>();
  const badUrl = !/^https?:\/\//i.test(url.trim()) || !URL.canParse(url.trim());
  const back = { label: 'Sources', to: '/w/$ws/sources', params: { ws: workspace.slug } } as const;

  if (!edits) {
    return (
      <Page narrow title="Add an MCP server" back={back}>
        <Panel>A developer, admin or owner can add an MCP server.</Panel>
      </Page>
    );
  }

  function look(chosen?: Credential) {
    setTried(true);
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
      narrow
      title="Add an MCP server"
      back={back}
      lede="A server that others run, of any revision of MCP. Its tools, prompts and resources can be published beside your own."
    >
      <Panel>
        <Stack gap="md" maw={560}>
          {wantsSignIn && <SignInFirst url={url.trim()} />}
          {preview.error && !wantsSignIn && (
            <Alert color="red" data-tone="red" role="alert" title="The server could not be looked at">
              {preview.error.message}
            </Alert>
          )}
          <form onSubmit={submit} noValidate>
            <Stack gap="md">
              <TextInput
                label="Address"
                description="Of its MCP endpoint, exactly as its documentation names it."
                placeholder="https://mcp.example.com/mcp"
                type="url"
                value={url}
                onChange={(event) => setUrl(event.currentTarget.value)}
                error={tried && badUrl ? 'Give a complete URL: https://host/path.' : null}
                required
              />
              <Checkbox
                label="It wants a credential"
                checked={wantsCredential}
                onChange={(event) => setWantsCredential(event.currentTarget.checked)}
              />
              {!wantsCredential && (
                <div>
                  <Button type="submit" loading={preview.isPending}>
                    Look at the server
                  </Button>
                </div>
              )}
            </Stack>
          </form>
          {wantsCredential && (
            <CredentialForm
              hints={[]}
              note="Sealed at rest. Neither this console nor any client sees it again."
              submitLabel="Look at the server"
              pending={preview.isPending}
              error={null}
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
      { url, sign_in: sharing },
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
      title="This server wants you to sign in"
      note="You go to its own authorization server and come back. If it gave you a key instead, set a credential below."
    >
      <Stack gap="md">
        {add.error && (
          <Alert color="red" data-tone="red" role="alert" title="The server was not added">
            {add.error.message}
          </Alert>
        )}
        <SharingChoice value={sharing} onChange={setSharing} looks />
        <div>
          <Button onClick={go} loading={add.isPending || connect.isPending || connect.isSuccess}>
            Add the server and sign in
          </Button>
        </div>
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
  const [holds, setHolds] = useState(false);
  const [chosen, setChosen] = useState(() => new Set(offer.tools.map((tool) => tool.name)));

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
          void navigate({ to: '/w/$ws/sources/$id', params: { ws: workspace.slug, id: made.id } }),
      },
    );
  }

  return (
    <Page
      title="Add an MCP server"
      back={{ label: 'Sources', to: '/w/$ws/sources', params: { ws: workspace.slug } }}
      lede={<code>{url}</code>}
    >
      <form onSubmit={submit} noValidate>
        <Stack gap="lg">
          {add.error && (
            <Alert color="red" data-tone="red" role="alert" title="The server was not added">
              {add.error.message}
            </Alert>
          )}
          <Panel title="What it says of itself">
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
                error={name.trim() === '' ? 'Give the server a name.' : null}
                required
              />
              <TextInput
                label="Prefix"
                description="Stands before the names of its tools and prompts. Leave it empty to publish them as they are."
                placeholder="weather_"
                value={prefix}
                maxLength={32}
                onChange={(event) => setPrefix(event.currentTarget.value)}
              />
              <Switch
                label="Hold changes until somebody agrees"
                description="Otherwise what changes at the server is published a few minutes later."
                checked={holds}
                onChange={(event) => setHolds(event.currentTarget.checked)}
              />
            </Stack>
          </Panel>
          <Group>
            <Button type="submit" loading={add.isPending}>
              Add the server
            </Button>
            <Button variant="default" onClick={onBack}>
              Back
            </Button>
          </Group>
        </Stack>
      </form>
    </Page>
  );
}
