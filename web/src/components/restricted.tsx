import { IconLock } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { type Action, useMay, useSession } from '../session';
import { Empty, Page, Panel } from './page';

const roles: Record<Action, string> = {
  call_tools: 'a member, developer, admin or owner',
  edit_registry: 'a developer, admin or owner',
  administer: 'an admin or owner',
};

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
          Your role in this workspace is {workspace.role}. Ask {roles[needs]} to do this, or ask an admin to
          change your role.
        </Empty>
      </Panel>
    </Page>
  );
}
