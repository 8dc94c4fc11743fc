import { Alert, Button, Group, PasswordInput, Stack, Switch, TextInput } from '@mantine/core';
import { IconAt } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { useState } from 'react';
import { confirmPath } from '../../api/people';
import { factorPath } from '../../api/security';
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
} from '../../api/single-sign-on';
import { Confirm } from '../../components/confirm';
import { CopyButton } from '../../components/copy';
import { useFields } from '../../components/form';
import { Empty, Facts, Loaded, Page, Panel } from '../../components/page';
import { Refused } from '../../components/refused';
import { Restricted } from '../../components/restricted';
import { Submit } from '../../components/submit';
import { toastDone } from '../../components/toast';
import { Unsaved } from '../../components/unsaved';
import { useSession } from '../../session';
import { formatDate } from '../../time';

export const Route = createFileRoute('/w/$ws/single-sign-on')({
  component: SingleSignOnPage,
});

function SingleSignOnPage() {
  return (
    <Restricted needs="administer" title="Single sign-on">
      <SingleSignOnSettings />
    </Restricted>
  );
}

function SingleSignOnSettings() {
  const { workspace } = useSession();
  const query = useQuery(singleSignOnQuery(workspace.slug));
  return (
    <Page
      title="Single sign-on"
      help="console#sign-in-rules"
      lede="Members sign in with your company’s OpenID provider. Claims apply to this workspace only."
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

function Provider({ provider }: { provider: IdentityProvider | null }) {
  const { workspace } = useSession();
  const save = useSetProvider(workspace.slug);
  const test = useTestProvider(workspace.slug);
  const remove = useDeleteProvider(workspace.slug);
  const form = useFields({
    initialValues: {
      name: provider?.name ?? '',
      issuer: provider?.issuer ?? '',
      client_id: provider?.client_id ?? '',
      client_secret: '',
    },
    error: save.error,
  });
  const { issuer, client_id } = form.values;
  const [removing, setRemoving] = useState(false);

  function send({ client_secret, ...known }: typeof form.values) {
    test.reset();
    remove.reset();
    save.mutate(
      { ...known, ...(client_secret ? { client_secret } : {}) },
      {
        onSuccess: () => {
          form.setFieldValue('client_secret', '');
          form.resetDirty();
          toastDone('Provider saved.');
        },
      },
    );
  }

  return (
    <Panel title="Provider" note="Any OpenID Connect provider: Entra ID, Okta, Google Workspace, Keycloak.">
      <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
        <Unsaved when={form.isChanged() && !save.isPending} />
        <Stack gap="md" maw={560}>
          {test.data && (
            <Alert color="green" data-tone="green" role="status" title="The provider responded">
              <Stack gap="sm" align="flex-start">
                Its metadata and keys are valid. Now test a sign-in; it brings you back here.
                <Button component="a" href={test.data.sign_in_path} size="compact-md">
                  Test sign-in
                </Button>
              </Stack>
            </Alert>
          )}
          {provider?.turned_off && (
            <Alert color="yellow" data-tone="yellow" title="An operator turned this provider off">
              Sign-in with it is off, and its users were signed out. Save it again to turn it on.
            </Alert>
          )}
          {provider && (
            <Facts
              items={[
                [
                  'Redirect URI',
                  <Group key="uri" gap="xs" wrap="nowrap">
                    <code>{provider.callback_url}</code>
                    <CopyButton text={provider.callback_url} label="Copy the redirect URI" />
                  </Group>,
                ],
              ]}
            />
          )}
          <TextInput
            label="Button label"
            description="Continue with …"
            {...form.getInputProps('name')}
            maxLength={64}
            required
          />
          <TextInput
            label="Issuer"
            placeholder="https://login.example.com"
            {...form.getInputProps('issuer')}
            inputMode="url"
            required
          />
          <TextInput label="Client ID" {...form.getInputProps('client_id')} autoComplete="off" required />
          <PasswordInput
            label="Client secret"
            description={
              provider?.has_secret
                ? 'A secret is stored. Leave empty to keep it.'
                : 'Encrypted at rest. It can’t be viewed again.'
            }
            {...form.getInputProps('client_secret')}
            autoComplete="off"
          />
          {provider && (issuer.trim() !== provider.issuer || client_id.trim() !== provider.client_id) && (
            <Alert color="yellow" data-tone="yellow" title="You are changing the provider">
              Users of the previous provider are signed out, and their apps are disconnected.
              {provider.enforced && ' The requirement to use it is turned off until you enable it again.'}
            </Alert>
          )}
          <Submit error={form.refusal ?? test.error} title="The provider could not be used">
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
          </Submit>
        </Stack>
      </form>
      <Confirm
        title="Remove the provider?"
        word="Remove"
        opened={removing}
        close={() => setRemoving(false)}
        busy={remove.isPending}
        error={remove.error}
        failed="The provider was not removed"
        act={() =>
          remove.mutate(undefined, {
            onSuccess: () => {
              setRemoving(false);
              toastDone('Provider removed.');
            },
          })
        }
      >
        Its users are signed out and have to sign in another way. Those without a password can set one by
        email.
      </Confirm>
    </Panel>
  );
}

function Domains({ domains }: { domains: TenantDomain[] }) {
  const { workspace } = useSession();
  const add = useAddDomain(workspace.slug);
  const check = useCheckDomain(workspace.slug);
  const remove = useRemoveDomain(workspace.slug);
  const form = useFields({ initialValues: { domain: '' }, error: add.error });

  function send({ domain }: typeof form.values) {
    check.reset();
    remove.reset();
    add.mutate(domain, { onSuccess: () => form.restart() });
  }

  return (
    <Panel
      title="Mail domains"
      note="Users with a verified domain join on first sign-in. Records are re-checked weekly."
    >
      <Stack gap="lg">
        <Refused error={form.refusal ?? check.error ?? remove.error} title="The domain is not verified" />
        {domains.length === 0 && (
          <Empty icon={<IconAt size={24} />} title="No domains yet">
            Without a domain, invite members; they connect the provider to their account.
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
                    check.mutate(one.id, { onSuccess: () => toastDone(`${one.domain} is verified.`) });
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
              {one.verified_at ? `Verified since ${formatDate(one.verified_at)}.` : 'Not verified yet.'}
              {one.missing_since &&
                ` The record has been missing since ${formatDate(one.missing_since)}: after three days the domain is no longer verified.`}
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
        <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
          <Group align="flex-start" maw={560}>
            <TextInput
              aria-label="Domain"
              placeholder="example.com"
              flex={1}
              {...form.getInputProps('domain')}
            />
            <Button
              type="submit"
              variant="default"
              loading={add.isPending}
              disabled={form.values.domain.trim() === ''}
            >
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
      <code>{text}</code>
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
      title="Require single sign-on"
      note="Owners with a passkey can still sign in if the provider fails."
    >
      <Stack gap="md" maw={560}>
        {way ? (
          <Alert color="sea" role="alert" title="Set it up yourself first">
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
          label="Members must sign in with the provider"
          description="Apps connected without it are disconnected immediately. API keys and service accounts keep working."
          checked={provider.enforced}
          disabled={enforce.isPending}
          onChange={(event) =>
            enforce.mutate(event.currentTarget.checked, {
              onSuccess: () => toastDone('Sign-in requirement changed.'),
            })
          }
        />
        {!provider.enforced && !data.may_enforce && (
          <span>To turn this on, sign in with the provider yourself first: use “Test” above.</span>
        )}
      </Stack>
    </Panel>
  );
}
