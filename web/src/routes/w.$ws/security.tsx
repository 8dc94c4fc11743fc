import { Alert, Button, Radio, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { factorPath, type Security, securityQuery, useChangeSecurity } from '../../api/security';
import { useFields } from '../../components/form';
import { Loaded, Page, Panel } from '../../components/page';
import { Refused } from '../../components/refused';
import { Restricted } from '../../components/restricted';
import { toastDone } from '../../components/toast';
import { useSession } from '../../session';

export const Route = createFileRoute('/w/$ws/security')({
  component: SecurityPage,
});

function SecurityPage() {
  return (
    <Restricted needs="administer" title="Security">
      <SecuritySettings />
    </Restricted>
  );
}

function SecuritySettings() {
  const { workspace } = useSession();
  const query = useQuery(securityQuery(workspace.slug));
  return (
    <Page title="Security" help="console#sign-in-rules" lede="Sign-in requirements for members.">
      <Loaded query={query}>{(data) => <SecondFactor key={data.second_factor} security={data} />}</Loaded>
    </Page>
  );
}

function SecondFactor({ security }: { security: Security }) {
  const { workspace } = useSession();
  const change = useChangeSecurity(workspace.slug);
  const form = useFields({ initialValues: { rule: security.second_factor } });
  const { rule } = form.values;
  const way = factorPath(change.error);
  const { members, members_with_factor: withFactor, members_with_passkey: withPasskey } = security;
  const lacking = rule === 'off' ? 0 : members - (rule === 'passkey' ? withPasskey : withFactor);

  const send = () =>
    change.mutate({ second_factor: rule }, { onSuccess: () => toastDone('Sign-in requirement changed.') });

  return (
    <Panel
      title="Second factor"
      note={`${withFactor} of ${members} ${members === 1 ? 'member has' : 'members have'} a second factor, ${withPasskey} a passkey.`}
    >
      <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
        <Stack gap="md" maw={520}>
          {way ? (
            <Alert color="sea" role="alert" title="Set it up yourself first">
              <Stack gap="sm" align="flex-start">
                {change.error?.message}
                <Button component="a" href={way} size="compact-md">
                  Continue
                </Button>
              </Stack>
            </Alert>
          ) : (
            <Refused error={change.error} title="The policy was not changed" />
          )}
          <Radio.Group
            label="Members must sign in with"
            {...form.getInputProps('rule')}
            onChange={(value) => {
              change.reset();
              form.setFieldValue('rule', value as typeof rule);
            }}
          >
            <Stack gap="sm" mt="xs">
              <Radio value="off" label="No requirement" description="A password alone is enough." />
              <Radio
                value="required"
                label="A second factor"
                description="A password and a code from an authenticator app, or a passkey."
              />
              <Radio
                value="passkey"
                label="A passkey"
                description={
                  security.passkeys_possible
                    ? 'Passkey only. Passkeys can’t be phished.'
                    : 'Passkeys need a host name; this server is opened by IP address.'
                }
                disabled={!security.passkeys_possible}
              />
            </Stack>
          </Radio.Group>
          {rule !== security.second_factor && lacking > 0 && (
            <Alert
              color="yellow"
              data-tone="yellow"
              title={`${lacking} of ${members} ${lacking === 1 ? 'has' : 'have'} none yet`}
            >
              They set one up on their next visit. Apps connected without it have to be reconnected. API keys
              and service accounts keep working.
            </Alert>
          )}
          <div>
            <Button type="submit" loading={change.isPending} disabled={rule === security.second_factor}>
              Save
            </Button>
          </div>
        </Stack>
      </form>
    </Panel>
  );
}
