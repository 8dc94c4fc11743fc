import { Button, Group, Select, Stack } from '@mantine/core';
import type { ApiScope } from '../../../api/access-tokens';
import type { Schemas } from '../../../api/http';
import { type ServiceAccount, useGiveApiAccess, useTakeApiAccess } from '../../../api/keys';
import { ScopeChoice } from '../../../components/access-tokens';
import { Tag } from '../../../components/badges';
import { Confirm } from '../../../components/confirm';
import { CodeBlock } from '../../../components/copy';
import { Dialog } from '../../../components/dialog';
import { useFields } from '../../../components/form';
import { HelpLink } from '../../../components/help-link';
import { Submit } from '../../../components/submit';
import { cell } from '../../../components/table';
import { toastDone } from '../../../components/toast';

/** Whether a service account opens the management API, and with what. */
export function ApiAccessState({ access }: { access: ServiceAccount['api_access'] }) {
  return (
    <div className={cell.sub}>
      Management API: {access ? access.scopes.join(', ') : 'no access'} {access && <Tag>{access.role}</Tag>}
    </div>
  );
}

interface Asked {
  ws: string;
  /** Undefined while nothing is asked. */
  account: ServiceAccount | undefined;
  close: () => void;
}

/** The form of an account's access to the management API, and the request by which it gets a token. */
export function ApiAccessDialog({ account, take, ...rest }: Asked & { take: () => void }) {
  return (
    <Dialog
      opened={account !== undefined}
      onClose={rest.close}
      title={`Management API access${account ? ` of ${account.name}` : ''}`}
    >
      {account && <ApiAccessForm key={account.id} account={account} take={take} {...rest} />}
    </Dialog>
  );
}

function ApiAccessForm({
  ws,
  account,
  close,
  take,
}: Omit<Asked, 'account'> & { account: ServiceAccount; take: () => void }) {
  const { api_access: access, id, name } = account;
  const give = useGiveApiAccess(ws);
  const form = useFields({
    initialValues: {
      role: access?.role ?? ('viewer' as string),
      scopes: (access?.scopes ?? []) as string[],
    },
    validate: ({ scopes }) => ({ ...(scopes.length === 0 && { scopes: 'Choose at least one scope.' }) }),
    error: give.error,
  });

  function send({ role, scopes }: typeof form.values) {
    give.mutate(
      { id, role: role as Schemas['Role'], scopes: scopes as ApiScope[] },
      {
        onSuccess: () =>
          toastDone(
            access ? `The access of ${name} was changed.` : `${name} has access to the management API.`,
          ),
      },
    );
  }

  return (
    <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
      <Stack gap="md">
        <span>
          With access, the account requests access tokens of this workspace for 15 minutes, by its client
          credentials. They open Portolan’s own API and no published server.{' '}
          <HelpLink to="api#tokens-of-a-service-account">Learn more</HelpLink>
        </span>
        <Select
          label="Role"
          description="Its tokens act as the workspace, with this role."
          data={['viewer', 'member', 'developer', 'admin']}
          allowDeselect={false}
          {...form.getInputProps('role')}
        />
        <ScopeChoice {...form.getInputProps('scopes')} />
        {access && <span>A change ends the tokens that the account has for the management API.</span>}
        <Submit error={form.refusal} title="The access was not changed" fault={form.fault}>
          <Group>
            <Button type="submit" loading={give.isPending}>
              {access ? 'Save' : 'Give access'}
            </Button>
            {access && (
              <Button variant="subtle" color="red" onClick={take}>
                Remove access
              </Button>
            )}
            <Button variant="default" onClick={close}>
              Close
            </Button>
          </Group>
        </Submit>
        {access && (
          <div>
            <span>The request for a token:</span>
            <CodeBlock code={tokenRequest(ws, account)} label="the request for a token" />
          </div>
        )}
      </Stack>
    </form>
  );
}

/** The request by which the account gets a token, for a shell. */
function tokenRequest(ws: string, { id, auth }: ServiceAccount): string {
  const { origin } = window.location;
  const proof =
    auth === 'client_secret'
      ? [`-u "${id}:$CLIENT_SECRET"`]
      : [
          '--data-urlencode client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
          '--data-urlencode "client_assertion=$CLIENT_ASSERTION"',
        ];
  return [
    `curl -sSf ${origin}/oauth/token`,
    ...proof,
    '--data-urlencode grant_type=client_credentials',
    `--data-urlencode resource=${origin}/api/v1/workspaces/${ws}`,
  ].join(' \\\n  ');
}

/** Asks before the access is removed. */
export function ApiAccessRemoval({ ws, account, close }: Asked) {
  const take = useTakeApiAccess(ws);
  const leave = () => {
    take.reset();
    close();
  };
  return (
    <Confirm
      title="Remove the access to the management API?"
      word="Remove access"
      opened={account !== undefined}
      close={leave}
      busy={take.isPending}
      error={take.error}
      failed="The access was not removed"
      act={() => {
        if (!account) return;
        take.mutate(account.id, {
          onSuccess: () => {
            toastDone(`${account.name} has no access to the management API.`);
            leave();
          },
        });
      }}
    >
      {account?.name} gets no more tokens for the management API, and the tokens that it has are refused from
      their next request on. Its access to MCP servers stays.
    </Confirm>
  );
}
