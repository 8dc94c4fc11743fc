import { Button, Group, Select, Stack, TextInput } from '@mantine/core';
import { IconUserPlus, IconUsers } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { useState } from 'react';
import type { Role } from '../../api/me';
import {
  invitationsQuery,
  useInvite,
  useRemoveMember,
  useRevokeInvitation,
  useSetRole,
} from '../../api/people';
import { type Member, membersQuery } from '../../api/workspaces';
import { Tag } from '../../components/badges';
import { Dialog } from '../../components/dialog';
import { useFields } from '../../components/form';
import { Empty, Loaded, Page, Panel } from '../../components/page';
import { Refused } from '../../components/refused';
import { cell, Table } from '../../components/table';
import { toastDone } from '../../components/toast';
import { useMay, useSession } from '../../session';
import { formatDate } from '../../time';

export const Route = createFileRoute('/w/$ws/members')({
  component: MembersPage,
});

const roles: Record<Role, string> = {
  owner: 'Owner',
  admin: 'Admin',
  developer: 'Developer',
  member: 'Member',
  viewer: 'Viewer',
};
const power: Role[] = ['viewer', 'member', 'developer', 'admin', 'owner'];
const meanings: Record<Role, string> = {
  owner: 'Full access.',
  admin: 'Manages members and settings, plus everything a developer can do.',
  developer: 'Manages sources, tools, credentials and servers.',
  member: 'Uses the servers through AI apps. Can view the console.',
  viewer: 'Can view the console. Can’t call tools.',
};

/** Roles that a member may give: none above their own. */
export function givable(own: Role): { value: Role; label: string }[] {
  return power.slice(0, power.indexOf(own) + 1).map((value) => ({ value, label: roles[value] }));
}

function MembersPage() {
  const { me, workspace } = useSession();
  const administers = useMay('administer');
  const members = useQuery(membersQuery(workspace.slug));
  const setRole = useSetRole(workspace.slug);
  const remove = useRemoveMember(workspace.slug);
  const [inviting, setInviting] = useState(false);
  const [leaving, setLeaving] = useState<Member>();

  return (
    <Page
      title="Members"
      help="console#roles"
      lede="People with access to this workspace and its servers."
      actions={
        administers && (
          <Button leftSection={<IconUserPlus size={17} />} onClick={() => setInviting(true)}>
            Invite
          </Button>
        )
      }
    >
      <Refused error={setRole.error ?? remove.error} title="Nothing was changed" />
      <Panel flush>
        <Loaded query={members}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty icon={<IconUsers size={24} />} title="No members" />
            ) : (
              <Table
                label="Members"
                head={
                  <>
                    <th>Name</th>
                    <th>Role</th>
                    <th data-align="right">Since</th>
                    <th>
                      <span className="visually-hidden">Actions</span>
                    </th>
                  </>
                }
              >
                {items.map((member) => {
                  const isMe = member.user_id === me.user.id;
                  const governs = administers && power.indexOf(member.role) <= power.indexOf(workspace.role);
                  const name = member.display_name || member.email;
                  return (
                    <tr key={member.user_id}>
                      <td data-wide>
                        <span className={cell.main}>{name}</span> {isMe && <Tag>you</Tag>}
                        <div className={cell.sub}>{member.email}</div>
                      </td>
                      <td>
                        {governs ? (
                          <Select
                            aria-label={`Role of ${name}`}
                            data={givable(workspace.role)}
                            value={member.role}
                            allowDeselect={false}
                            disabled={setRole.isPending}
                            w={140}
                            onChange={(role) => {
                              if (role === null || role === member.role) return;
                              remove.reset();
                              setRole.mutate(
                                { id: member.user_id, role: role as Role },
                                { onSuccess: () => toastDone(`${name} is now ${roles[role as Role]}.`) },
                              );
                            }}
                          />
                        ) : (
                          roles[member.role]
                        )}
                      </td>
                      <td data-align="right" data-label="Since">
                        {formatDate(member.since)}
                      </td>
                      <td data-align="right">
                        {(isMe || governs) && (
                          <Button
                            variant="subtle"
                            color="red"
                            size="compact-sm"
                            aria-label={isMe ? 'Leave the workspace' : `Remove ${name}`}
                            onClick={() => setLeaving(member)}
                          >
                            {isMe ? 'Leave' : 'Remove'}
                          </Button>
                        )}
                      </td>
                    </tr>
                  );
                })}
              </Table>
            )
          }
        </Loaded>
      </Panel>
      {administers && <Invitations ws={workspace.slug} />}
      <InviteDialog
        ws={workspace.slug}
        own={workspace.role}
        opened={inviting}
        close={() => setInviting(false)}
      />
      <Dialog
        opened={leaving !== undefined}
        onClose={() => setLeaving(undefined)}
        title={leaving?.user_id === me.user.id ? 'Leave the workspace?' : 'Remove this member?'}
      >
        <Stack gap="md">
          <span>
            {leaving?.display_name || leaving?.email} will lose access to this workspace, and their AI apps
            are disconnected within a second. To come back they need a new invitation.
          </span>
          <Group justify="flex-end">
            <Button variant="default" onClick={() => setLeaving(undefined)}>
              Cancel
            </Button>
            <Button
              color="red"
              loading={remove.isPending}
              onClick={() => {
                const member = leaving;
                if (!member) return;
                setRole.reset();
                remove.mutate(member.user_id, {
                  onSuccess: () => {
                    if (member.user_id === me.user.id) window.location.assign('/');
                    else toastDone(`${member.display_name || member.email} was removed.`);
                  },
                  onSettled: () => setLeaving(undefined),
                });
              }}
            >
              {leaving?.user_id === me.user.id ? 'Leave' : 'Remove'}
            </Button>
          </Group>
        </Stack>
      </Dialog>
    </Page>
  );
}

function Invitations({ ws }: { ws: string }) {
  const invitations = useQuery(invitationsQuery(ws));
  const revoke = useRevokeInvitation(ws);
  if (invitations.data?.items.length === 0) return null;
  return (
    <Panel title="Pending invitations" flush>
      <Refused error={revoke.error} title="The invitation was not revoked" />
      <Loaded query={invitations} lines={2}>
        {({ items }) => (
          <Table
            label="Pending invitations"
            head={
              <>
                <th>To</th>
                <th>Role</th>
                <th data-align="right">Expires</th>
                <th>
                  <span className="visually-hidden">Actions</span>
                </th>
              </>
            }
          >
            {items.map((one) => (
              <tr key={one.id}>
                <td data-wide>
                  <span className={cell.main}>{one.email}</span>
                  <div className={cell.sub}>invited by {one.invited_by}</div>
                </td>
                <td>{roles[one.role]}</td>
                <td data-align="right" data-label="Expires">
                  {formatDate(one.expires_at)}
                </td>
                <td data-align="right">
                  <Button
                    variant="subtle"
                    color="red"
                    size="compact-sm"
                    aria-label={`Revoke the invitation to ${one.email}`}
                    loading={revoke.isPending && revoke.variables === one.id}
                    onClick={() =>
                      revoke.mutate(one.id, { onSuccess: () => toastDone('Invitation revoked.') })
                    }
                  >
                    Revoke
                  </Button>
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Loaded>
    </Panel>
  );
}

function InviteDialog({
  ws,
  own,
  opened,
  close,
}: {
  ws: string;
  own: Role;
  opened: boolean;
  close: () => void;
}) {
  const invite = useInvite(ws);
  const form = useFields({ initialValues: { email: '', role: 'member' as Role }, error: invite.error });
  const { role } = form.values;
  const email = form.values.email.trim();

  function leave() {
    invite.reset();
    form.restart({ role });
    close();
  }

  function send() {
    if (email === '') return;
    invite.mutate(
      { email, role },
      {
        onSuccess: (sent) => {
          toastDone(
            sent.sent_again
              ? `Invitation sent to ${email} again. The older link no longer works.`
              : `Invitation sent to ${email}.`,
          );
          leave();
        },
      },
    );
  }

  return (
    <Dialog opened={opened} onClose={leave} title="Invite a member">
      <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
        <Stack gap="md">
          <Refused error={form.refusal} title="The invitation was not sent" />
          <TextInput
            label="E-mail address"
            description="The invitation works for this address only and expires after 7 days."
            type="email"
            {...form.getInputProps('email')}
            maxLength={254}
            data-autofocus
          />
          <Select
            label="Role"
            description={meanings[role]}
            data={givable(own)}
            allowDeselect={false}
            {...form.getInputProps('role')}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={leave}>
              Cancel
            </Button>
            <Button type="submit" loading={invite.isPending} disabled={email === ''}>
              Send invitation
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
