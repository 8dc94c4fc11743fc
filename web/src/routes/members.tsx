import { IconUsers } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { membersQuery } from '../api/workspaces';
import { Tag } from '../components/badges';
import { Empty, Loaded, Page, Panel } from '../components/page';
import { cell, Table } from '../components/table';
import { useSession } from '../session';
import { formatDate } from '../time';

const roles = { owner: 'Owner', admin: 'Admin', developer: 'Developer', member: 'Member', viewer: 'Viewer' };

export function MembersPage() {
  const { me, workspace } = useSession();
  const members = useQuery(membersQuery(workspace.slug));
  return (
    <Page
      title="Members"
      lede="Who may see and change this workspace, and use its servers through AI clients."
    >
      <Panel flush>
        <Loaded query={members}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty icon={<IconUsers size={24} />} title="Nobody here" />
            ) : (
              <Table
                label="Members"
                head={
                  <>
                    <th>Name</th>
                    <th>Role</th>
                    <th data-align="right">Since</th>
                  </>
                }
              >
                {items.map((member) => (
                  <tr key={member.user_id}>
                    <td data-wide>
                      <span className={cell.main}>{member.display_name || member.email}</span>{' '}
                      {member.user_id === me.user.id && <Tag>you</Tag>}
                      <div className={cell.sub}>{member.email}</div>
                    </td>
                    <td>{roles[member.role]}</td>
                    <td data-align="right" data-label="Since">
                      {formatDate(member.since)}
                    </td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Loaded>
      </Panel>
    </Page>
  );
}
