import { IconLock } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { rolesOf } from '../api/client.gen';
import { type Action, useMay, useSession } from '../session';
import { Empty, Page, Panel } from './page';

const anyOf = new Intl.ListFormat('en-GB', { type: 'disjunction' });

/** The roles that may do it: "a developer, admin, or owner". */
function holders(action: Action): string {
  const roles = rolesOf[action];
  return `${/^[aeiou]/.test(roles[0]) ? 'an' : 'a'} ${anyOf.format(roles)}`;
}

/** A page whose form the person may not send: it says so first, instead of after everything is filled in. */
export function Restricted({
  needs,
  title,
  back,
  children,
}: {
  needs: Action;
  title: string;
  back?: Parameters<typeof Page>[0]['back'];
  children: ReactNode;
}) {
  const { workspace } = useSession();
  if (useMay(needs)) return children;
  return (
    <Page title={title} back={back}>
      <Panel>
        <Empty icon={<IconLock size={24} />} title="You don’t have access">
          Your role in this workspace is {workspace.role}. Ask {holders(needs)} to do this, or ask an admin to
          change your role.
        </Empty>
      </Panel>
    </Page>
  );
}
