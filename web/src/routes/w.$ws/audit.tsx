import { Button } from '@mantine/core';
import { IconDownload, IconHistory } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { type AuditEntry, auditQuery } from '../../api/audit';
import { type Member, membersQuery } from '../../api/workspaces';
import { actionWords, detailWords, nounWords } from '../../audit-words';
import { Status } from '../../components/badges';
import { Empty, Loaded, Page, Panel } from '../../components/page';
import { Restricted } from '../../components/restricted';
import { cell, LoadMore, Table } from '../../components/table';
import { useSession } from '../../session';
import { formatDateTime } from '../../time';

export const Route = createFileRoute('/w/$ws/audit')({
  component: AuditPage,
});

/** `src_01a1fe80f4…fd82`: enough to tell two apart; the whole id is in the title. */
const shortId = (id: string) => (id.length > 20 ? `${id.slice(0, 12)}…${id.slice(-4)}` : id);

const outcomes: Record<string, string> = { ok: 'Succeeded', success: 'Succeeded', allowed: 'Allowed' };

/** A detail; a long one is opened by a click. */
function Detail({ text }: { text: string }) {
  if (text === '') return null;
  if (text.length <= 140) return <div className={cell.sub}>{text}</div>;
  return (
    <details className={cell.sub}>
      <summary>{text.slice(0, 120)}…</summary>
      {text}
    </details>
  );
}

/** Entries name people by id; those who are members still have a name. */
function actorName(actor: AuditEntry['actor'], members: Member[]): string {
  if (actor.kind === 'system') return 'Portolan';
  if (actor.kind === 'operator') return 'Operator of Portolan';
  if (actor.kind === 'anonymous') return 'Not signed in';
  if (actor.kind === 'access_token') return 'Access token';
  if (actor.kind === 'service_account') return 'Service account';
  const member = members.find((one) => one.user_id === actor.user_id);
  return member ? member.display_name || member.email : (actor.user_id ?? actor.kind);
}

function AuditPage() {
  return (
    <Restricted needs="administer" title="Audit log">
      <Audit />
    </Restricted>
  );
}

function Audit() {
  const { workspace } = useSession();
  const audit = useInfiniteQuery(auditQuery(workspace.slug));
  const members = useQuery(membersQuery(workspace.slug));
  return (
    <Page
      title="Audit log"
      lede="Every change in this workspace. Entries can’t be edited or deleted."
      actions={
        <Button
          component="a"
          href={`/api/v1/workspaces/${workspace.slug}/audit/export`}
          download
          variant="default"
          leftSection={<IconDownload size={17} />}
        >
          Export
        </Button>
      }
    >
      <Panel flush>
        <Loaded query={audit} lines={8}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            return items.length === 0 ? (
              <Empty icon={<IconHistory size={24} />} title="No entries yet" />
            ) : (
              <>
                <Table
                  label="Audit log"
                  head={
                    <>
                      <th>Action</th>
                      <th>Actor</th>
                      <th>Target</th>
                      <th>Outcome</th>
                      <th data-align="right">When</th>
                    </>
                  }
                >
                  {items.map((entry) => (
                    <tr key={entry.id}>
                      <td data-wide>
                        <span className={cell.main} title={entry.action}>
                          {actionWords(entry.action)}
                        </span>
                        <Detail text={detailWords(entry.detail)} />
                      </td>
                      <td data-wide>{actorName(entry.actor, members.data?.items ?? [])}</td>
                      <td data-wide>
                        {nounWords(entry.target_kind)}
                        <div className={cell.sub}>
                          <code title={entry.target_id}>{shortId(entry.target_id)}</code>
                        </div>
                      </td>
                      <td>
                        <Status
                          tone={
                            entry.outcome === 'ok' ||
                            entry.outcome === 'success' ||
                            entry.outcome === 'allowed'
                              ? 'good'
                              : 'bad'
                          }
                        >
                          {outcomes[entry.outcome] ?? entry.outcome}
                        </Status>
                      </td>
                      <td data-align="right" data-shrink>
                        {formatDateTime(entry.at)}
                      </td>
                    </tr>
                  ))}
                </Table>
                <LoadMore query={audit} />
              </>
            );
          }}
        </Loaded>
      </Panel>
    </Page>
  );
}
