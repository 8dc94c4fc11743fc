import { Anchor, Button } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { useState } from 'react';
import { personalTokensQuery, useCreatePersonalToken, useRevokePersonalToken } from '../../api/access-tokens';
import { type Me, meQuery } from '../../api/me';
import { AccessTokens, NewTokenDialog } from '../../components/access-tokens';
import { Failed, Loading, Page } from '../../components/page';
import { SecretDialog, type Shown } from '../../components/secret';
import { PlainShell } from '../../components/shell';

export const Route = createFileRoute('/account/access-tokens')({
  component: AccessTokensPage,
});

/** The person's own tokens. The other pages of the account are made by the server. */
function AccessTokensPage() {
  const me = useQuery(meQuery);
  if (me.error && !me.data) {
    return (
      <PlainShell>
        <Failed error={me.error} retry={() => void me.refetch()} />
      </PlainShell>
    );
  }
  if (!me.data) return <Loading lines={5} />;
  return (
    <PlainShell me={me.data}>
      <PersonalTokens me={me.data} />
    </PlainShell>
  );
}

function PersonalTokens({ me }: { me: Me }) {
  const tokens = useQuery(personalTokensQuery);
  const revoke = useRevokePersonalToken();
  const create = useCreatePersonalToken();
  const [making, setMaking] = useState(false);
  const [shown, setShown] = useState<Shown>();
  return (
    <Page
      title="Access tokens"
      help="api#tokens"
      lede={
        <>
          For your own programs: they act as you in Portolan’s API. Back to{' '}
          <Anchor href="/account" fz="inherit" underline="always">
            your account
          </Anchor>
          .
        </>
      }
      actions={
        <Button leftSection={<IconPlus size={17} />} onClick={() => setMaking(true)}>
          New access token
        </Button>
      }
    >
      <AccessTokens
        tokens={tokens}
        revoke={revoke}
        empty="A token lets a program act as you, within the scopes that you choose. It ends when it expires, when you revoke it, and when your password changes."
      />
      <NewTokenDialog
        opened={making}
        close={() => setMaking(false)}
        show={setShown}
        create={create}
        workspaces={me.workspaces}
        send={({ name, scopes, days, workspace }, made) =>
          create.mutate({ name, scopes, days, ...(workspace && { workspace }) }, { onSuccess: made })
        }
      />
      <SecretDialog shown={shown} close={() => setShown(undefined)} />
    </Page>
  );
}
