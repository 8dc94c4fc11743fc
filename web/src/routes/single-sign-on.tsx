import { Alert, Button, Group, PasswordInput, Stack, Switch, TextInput } from '@mantine/core';
import { IconAt } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { ApiError } from '../api/http';
import { confirmPath } from '../api/people';
import { factorPath } from '../api/security';
import {
  type IdentityProvider,
  type SingleSignOn,
  singleSignOnQuery,
  type TenantDomain,
  useAddDomain,
  useCheckDomain,
  useDeleteProvider,
  useEnforce,
  useRemoveDomain,
  useSetProvider,
  useTestProvider,
} from '../api/single-sign-on';
import { Confirm } from '../components/confirm';
import { CopyButton } from '../components/copy';
import { Empty, Facts, Loaded, Page, Panel } from '../components/page';
import { Refused } from '../components/refused';
import { toastDone } from '../components/toast';
import { useSession } from '../session';
import { formatDate } from '../time';

export function SingleSignOnPage() {
  const { workspace } = useSession();
  const query = useQuery(singleSignOnQuery(workspace.slug));
  return (
    <Page
      title="Single sign-on"
      lede="Members sign in with the OpenID provider of your company. What it says of people counts in this workspace only."
      narrow
    >
      <Loaded query={query}>
        {(data) => (
          <>
            <Provider key={data.provider?.callback_url ?? 'none'} provider={data.provider} />
            <Domains domains={data.domains} />
            {data.provider && <Enforcement data={data} provider={data.provider} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** The message of a refusal that names a field, to be shown there. */
function fault(error: unknown, field: string): string | undefined {
  return error instanceof ApiError && error.field === field ? error.message : undefined;
}

/** What to show above a form: a refusal that is not shown at one of its fields. */
function general(error: unknown): unknown {
  return error instanceof ApiError && error.field ? undefined : error;
}

function Provider({ provider }: { provider: IdentityProvider | null }) {
  const { workspace } = useSession();
  const save = useSetProvider(workspace.slug);
  const test = useTestProvider(workspace.slug);
  const remove = useDeleteProvider(workspace.slug);
  const [name, setName] = useState(provider?.name ?? '');
  const [issuer, setIssuer] = useState(provider?.issuer ?? '');
  const [clientId, setClientId] = useState(provider?.client_id ?? '');
  const [secret, setSecret] = useState('');
  const [removing, setRemoving] = useState(false);

  function submit(event: FormEvent) {
    event.preventDefault();
    test.reset();
    remove.reset();
    save.mutate(
      { name, issuer, client_id: clientId, ...(secret ? { client_secret: secret } : {}) },
      {
        onSuccess: () => {
          setSecret('');
          toastDone('The provider is entered.');
        },
      },
    );
  }

  return (
    <Panel
      title="Provider"
      note="Any that speaks OpenID Connect: Entra ID, Okta, Google Workspace, Keycloak."
    >
      <form onSubmit={submit} noValidate>
        <Stack gap="md" maw={560}>
          <Refused error={general(save.error) ?? test.error ?? remove.error} title="This did not work" />
          {test.data && (
            <Alert color="green" data-tone="green" role="status" title="It answers">
              <Stack gap="sm" align="flex-start">
                Its metadata and keys can be used. Now try a sign-in: it brings you back here.
                <Button component="a" href={test.data.sign_in_path} size="compact-md">
                  Try a sign-in
                </Button>
              </Stack>
            </Alert>
          )}
          {provider?.turned_off && (
            <Alert color="yellow" data-tone="yellow" title="An operator turned this provider off">
              Nobody signs in with it, and who did was signed out. Save it again to turn it on.
            </Alert>
          )}
          {provider && (
            <Facts
              items={[
                [
                  'Redirect URI',
                  <Group key="uri" gap="xs" wrap="nowrap">
                    <code style={{ overflowWrap: 'anywhere' }}>{provider.callback_url}</code>
                    <CopyButton text={provider.callback_url} label="Copy the redirect URI" />
                  </Group>,
                ],
              ]}
            />
          )}
          <TextInput
            label="Name on the button"
            description="Continue with …"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={fault(save.error, 'name')}
            maxLength={64}
            required
          />
          <TextInput
            label="Issuer"
            placeholder="https://login.example.com"
            value={issuer}
            onChange={(event) => setIssuer(event.currentTarget.value)}
            error={fault(save.error, 'issuer')}
            inputMode="url"
            required
          />
          <TextInput
            label="Client ID"
            value={clientId}
            onChange={(event) => setClientId(event.currentTarget.value)}
            error={fault(save.error, 'client_id')}
            autoComplete="off"
            required
          />
          <PasswordInput
            label="Client secret"
            description={
              provider?.has_secret
                ? 'One is kept. Leave this empty to keep it.'
                : 'It is sealed, and never shown again.'
            }
            value={secret}
            onChange={(event) => setSecret(event.currentTarget.value)}
            error={fault(save.error, 'client_secret')}
            autoComplete="off"
          />
          {provider && (issuer.trim() !== provider.issuer || clientId.trim() !== provider.client_id) && (
            <Alert color="yellow" data-tone="yellow" title="This is another provider">
              Who signed in with the one before is signed out, and what they connected is disconnected.
              {provider.enforced && ' It is not the only way in any more until you switch that on again.'}
            </Alert>
          )}
          <Group>
            <Button type="submit" loading={save.isPending}>
              {provider ? 'Save' : 'Set up'}
            </Button>
            {provider && (
              <>
                <Button
                  variant="default"
                  loading={test.isPending}
                  onClick={() => {
                    save.reset();
                    remove.reset();
                    test.mutate();
                  }}
                >
                  Test
                </Button>
                <Button variant="subtle" color="red" onClick={() => setRemoving(true)}>
                  Remove
                </Button>
              </>
            )}
          </Group>
        </Stack>
      </form>
      <Confirm
        title="Remove the provider?"
        word="Remove"
        opened={removing}
        close={() => setRemoving(false)}
        busy={remove.isPending}
        act={() =>
          remove.mutate(undefined, {
            onSuccess: () => toastDone('The provider is removed.'),
            onSettled: () => setRemoving(false),
          })
        }
      >
        Whoever signed in with it is signed out, and signs in in another way: by a password that a mail lets
        them set, if they have none.
      </Confirm>
    </Panel>
  );
}

function Domains({ domains }: { domains: TenantDomain[] }) {
  const { workspace } = useSession();
  const add = useAddDomain(workspace.slug);
  const check = useCheckDomain(workspace.slug);
  const remove = useRemoveDomain(workspace.slug);
  const [domain, setDomain] = useState('');

  function submit(event: FormEvent) {
    event.preventDefault();
    check.reset();
    remove.reset();
    add.mutate(domain, { onSuccess: () => setDomain('') });
  }

  return (
    <Panel
      title="Mail domains"
      note="Whoever has an address of a domain that is proved becomes a member at the first sign-in with the provider. The records are looked at again every week."
    >
      <Stack gap="lg">
        <Refused error={general(add.error) ?? check.error ?? remove.error} title="The domain is not proved" />
        {domains.length === 0 && (
          <Empty icon={<IconAt size={24} />} title="No domain yet">
            Without one, people are invited as before, and connect the provider to their account.
          </Empty>
        )}
        {domains.map((one) => (
          <Stack key={one.id} gap="xs" component="section" aria-label={one.domain}>
            <Group justify="space-between">
              <strong>{one.domain}</strong>
              <Group gap="xs">
                <Button
                  variant="default"
                  size="compact-md"
                  loading={check.isPending && check.variables === one.id}
                  onClick={() => {
                    add.reset();
                    remove.reset();
                    check.mutate(one.id, { onSuccess: () => toastDone(`${one.domain} is proved.`) });
                  }}
                >
                  Check
                </Button>
                <Button
                  variant="subtle"
                  color="red"
                  size="compact-md"
                  loading={remove.isPending && remove.variables === one.id}
                  onClick={() => {
                    add.reset();
                    check.reset();
                    remove.mutate(one.id);
                  }}
                >
                  Remove
                </Button>
              </Group>
            </Group>
            <span>
              {one.verified_at ? `Proved since ${formatDate(one.verified_at)}.` : 'Not proved yet.'}
              {one.missing_since &&
                ` The record has been missing since ${formatDate(one.missing_since)}: after three days the domain counts no more.`}
            </span>
            {(!one.verified_at || one.missing_since) && (
              <Facts
                items={[
                  [
                    'TXT record',
                    <Copied
                      key="name"
                      text={one.record_name}
                      label={`Copy the record name of ${one.domain}`}
                    />,
                  ],
                  [
                    'Text',
                    <Copied
                      key="text"
                      text={one.record_text}
                      label={`Copy the record text of ${one.domain}`}
                    />,
                  ],
                ]}
              />
            )}
          </Stack>
        ))}
        <form onSubmit={submit} noValidate>
          <Group align="flex-start" maw={560}>
            <TextInput
              aria-label="Domain"
              placeholder="example.com"
              value={domain}
              onChange={(event) => setDomain(event.currentTarget.value)}
              error={fault(add.error, 'domain')}
              style={{ flex: 1 }}
            />
            <Button type="submit" variant="default" loading={add.isPending} disabled={domain.trim() === ''}>
              Add domain
            </Button>
          </Group>
        </form>
      </Stack>
    </Panel>
  );
}

function Copied({ text, label }: { text: string; label: string }) {
  return (
    <Group gap="xs" wrap="nowrap">
      <code style={{ overflowWrap: 'anywhere' }}>{text}</code>
      <CopyButton text={text} label={label} />
    </Group>
  );
}

function Enforcement({ data, provider }: { data: SingleSignOn; provider: IdentityProvider }) {
  const { workspace } = useSession();
  const enforce = useEnforce(workspace.slug);
  const way = factorPath(enforce.error);
  return (
    <Panel
      title="The only way in"
      note="Owners with a passkey get in all the same, in case the provider fails."
    >
      <Stack gap="md" maw={560}>
        {way ? (
          <Alert color="sea" role="alert" title="Use it yourself first">
            <Stack gap="sm" align="flex-start">
              {enforce.error?.message}
              <Button component="a" href={way} size="compact-md">
                Continue
              </Button>
            </Stack>
          </Alert>
        ) : (
          <Refused error={enforce.error} title={confirmPath(enforce.error) ? '' : 'Nothing was changed'} />
        )}
        <Switch
          label="Members have to sign in with the provider"
          description="Apps that they connected without it are disconnected at once. API keys and service accounts go on."
          checked={provider.enforced}
          disabled={enforce.isPending}
          onChange={(event) =>
            enforce.mutate(event.currentTarget.checked, {
              onSuccess: () => toastDone('The rule is changed.'),
            })
          }
        />
        {!provider.enforced && !data.may_enforce && (
          <span>To switch it on, sign in with the provider yourself first: “Test” above leads there.</span>
        )}
      </Stack>
    </Panel>
  );
}
