import { Button, Group } from '@mantine/core';
import { IconPlus, IconRobot, IconTerminal2 } from '@tabler/icons-react';
import { createFileRoute } from '@tanstack/react-router';
import { useState } from 'react';
import { Page } from '../../../components/page';
import { SecretDialog, type Shown } from '../../../components/secret';
import { useMay, useSession } from '../../../session';
import { NewWorkspaceTokenDialog, WorkspaceTokens } from './-access-tokens';
import { ApiKeys, NewKeyDialog } from './-api-keys';
import { NewAccountDialog, ServiceAccounts } from './-service-accounts';
import { TrustedPipelines } from './-trusted-pipelines';

export const Route = createFileRoute('/w/$ws/keys/')({
  component: KeysPage,
});

function KeysPage() {
  const { workspace } = useSession();
  const administers = useMay('administer');
  const calls = useMay('call_tools');
  const [making, setMaking] = useState<'key' | 'account' | 'token'>();
  const [shown, setShown] = useState<Shown>();
  return (
    <Page
      title="Keys"
      help="console#keys"
      lede="For programs: API keys for clients without OAuth, service accounts that act without a user, and access tokens for Portolan’s own API."
      actions={
        calls && (
          <Group gap="sm">
            {administers && (
              <>
                <Button
                  variant="default"
                  leftSection={<IconTerminal2 size={17} />}
                  onClick={() => setMaking('token')}
                >
                  New access token
                </Button>
                <Button
                  variant="default"
                  leftSection={<IconRobot size={17} />}
                  onClick={() => setMaking('account')}
                >
                  New service account
                </Button>
              </>
            )}
            <Button leftSection={<IconPlus size={17} />} onClick={() => setMaking('key')}>
              New API key
            </Button>
          </Group>
        )
      }
    >
      <ApiKeys ws={workspace.slug} />
      {administers && <ServiceAccounts ws={workspace.slug} show={setShown} />}
      {administers && <WorkspaceTokens ws={workspace.slug} />}
      {administers && <TrustedPipelines ws={workspace.slug} />}
      <NewKeyDialog
        ws={workspace.slug}
        opened={making === 'key'}
        close={() => setMaking(undefined)}
        show={setShown}
      />
      <NewWorkspaceTokenDialog
        ws={workspace.slug}
        opened={making === 'token'}
        close={() => setMaking(undefined)}
        show={setShown}
      />
      <NewAccountDialog
        ws={workspace.slug}
        opened={making === 'account'}
        close={() => setMaking(undefined)}
        show={setShown}
      />
      <SecretDialog shown={shown} close={() => setShown(undefined)} />
    </Page>
  );
}
