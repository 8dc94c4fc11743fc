import { Alert, Button, Radio, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import {
  factorPath,
  type SecondFactorRule,
  type Security,
  securityQuery,
  useChangeSecurity,
} from '../api/security';
import { Loaded, Page, Panel } from '../components/page';
import { Refused } from '../components/refused';
import { toastDone } from '../components/toast';
import { useSession } from '../session';

export function SecurityPage() {
  const { workspace } = useSession();
  const query = useQuery(securityQuery(workspace.slug));
  return (
    <Page title="Security" lede="What this workspace asks of how its members sign in." narrow>
      <Loaded query={query}>{(data) => <SecondFactor key={data.second_factor} security={data} />}</Loaded>
    </Page>
  );
}

function SecondFactor({ security }: { security: Security }) {
  const { workspace } = useSession();
  const change = useChangeSecurity(workspace.slug);
  const [rule, setRule] = useState<SecondFactorRule>(security.second_factor);
  const way = factorPath(change.error);
  const { members, members_with_factor: withFactor, members_with_passkey: withPasskey } = security;
  const lacking = rule === 'off' ? 0 : members - (rule === 'passkey' ? withPasskey : withFactor);

  function submit(event: FormEvent) {
    event.preventDefault();
    change.mutate({ second_factor: rule }, { onSuccess: () => toastDone('The rule is changed.') });
  }

  return (
    <Panel
      title="Second factor"
      note={`${withFactor} of ${members} ${members === 1 ? 'member has' : 'members have'} a second factor, ${withPasskey} a passkey.`}
    >
      <form onSubmit={submit} noValidate>
        <Stack gap="md" maw={520}>
          {way ? (
            <Alert color="sea" role="alert" title="Use it yourself first">
              <Stack gap="sm" align="flex-start">
                {change.error?.message}
                <Button component="a" href={way} size="compact-md">
                  Continue
                </Button>
              </Stack>
            </Alert>
          ) : (
            <Refused error={change.error} title="The rule was not changed" />
          )}
          <Radio.Group
            label="Members sign in with"
            value={rule}
            onChange={(value) => {
              change.reset();
              setRule(value as SecondFactorRule);
            }}
          >
            <Stack gap="sm" mt="xs">
              <Radio value="off" label="Whatever they like" description="A password alone is enough." />
              <Radio
                value="required"
                label="A second factor"
                description="A code of an authenticator app beside the password, or a passkey."
              />
              <Radio
                value="passkey"
                label="A passkey"
                description={
                  security.passkeys_possible
                    ? 'Nothing else: passkeys cannot be phished.'
                    : 'Not possible here: this service is reached by an address, and passkeys are bound to a name.'
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
              They are led to set one up when they come back. Apps that they connected without it have to be
              connected again; API keys and service accounts go on.
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
