import { Alert, Button, Group } from '@mantine/core';
import { IconBroadcast } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { useState } from 'react';
import {
  type OpenSession,
  type SessionEvent,
  sessionsQuery,
  timelineQuery,
  useEndSession,
} from '../../api/sessions';
import { Ago } from '../../components/ago';
import { Status, Tag } from '../../components/badges';
import { Confirm } from '../../components/confirm';
import { TextLink } from '../../components/link-button';
import { Empty, Loaded, Page, Panel } from '../../components/page';
import { cell, Table } from '../../components/table';
import { toastDone } from '../../components/toast';
import { useMay, useSession } from '../../session';
import classes from './sessions.module.css';

export const Route = createFileRoute('/w/$ws/sessions')({ component: SessionsPage });

const active = 60_000;

const title = (session: OpenSession) => session.client_name ?? session.client_id;

function SessionsPage() {
  const { workspace } = useSession();
  const administers = useMay('administer');
  const sessions = useQuery(sessionsQuery(workspace.slug));
  const [opened, setOpened] = useState<string>();
  const [ending, setEnding] = useState<OpenSession>();
  const end = useEndSession(workspace.slug);
  return (
    <Page
      title="Sessions"
      help="playground#sessions"
      lede={
        administers
          ? 'Clients that used a server in the last 24 hours. Updates automatically.'
          : 'Your clients that used a server in the last 24 hours. Updates automatically.'
      }
    >
      <Panel flush>
        <Loaded query={sessions} lines={6}>
          {({ items, silent_nodes }) => (
            <>
              {silent_nodes > 0 && (
                <Alert color="yellow" data-tone="yellow">
                  {silent_nodes === 1 ? 'One node' : `${silent_nodes} nodes`} did not reply. Sessions may be
                  missing.
                </Alert>
              )}
              {items.length === 0 ? (
                <Empty icon={<IconBroadcast size={24} />} title="No sessions">
                  A session appears here when a client connects to a server.
                </Empty>
              ) : (
                <Table
                  label="Sessions"
                  head={
                    <>
                      <th>Client</th>
                      <th>User</th>
                      <th>Server</th>
                      <th>Protocol</th>
                      <th>Last activity</th>
                      <th data-align="right">Calls</th>
                      <th>
                        <span className="visually-hidden">Actions</span>
                      </th>
                    </>
                  }
                >
                  {items.map((session) => (
                    <Row
                      key={session.id}
                      session={session}
                      opened={opened === session.id}
                      toggle={() => setOpened(opened === session.id ? undefined : session.id)}
                      end={() => setEnding(session)}
                    />
                  ))}
                </Table>
              )}
            </>
          )}
        </Loaded>
      </Panel>
      <Confirm
        title="End this session?"
        word="End session"
        opened={ending !== undefined}
        close={() => {
          setEnding(undefined);
          end.reset();
        }}
        busy={end.isPending}
        error={end.error}
        failed="The session was not ended"
        act={() => {
          if (!ending) return;
          end.mutate(ending.id, {
            onSuccess: () => {
              setEnding(undefined);
              toastDone('Session ended.');
            },
          });
        }}
      >
        {ending && (
          <>
            Calls and streams of <strong>{title(ending)}</strong> end. The client may open a new session. To
            keep it out, disconnect it under Connected apps.
          </>
        )}
      </Confirm>
    </Page>
  );
}

function Row({
  session,
  opened,
  toggle,
  end,
}: {
  session: OpenSession;
  opened: boolean;
  toggle: () => void;
  end: () => void;
}) {
  const { me, workspace } = useSession();
  const busy = Date.now() - Date.parse(session.last_at) < active;
  return (
    <>
      <tr>
        <td data-wide>
          <span className={cell.main}>
            {title(session)} {session.client_version}
          </span>
          <div className={cell.sub}>{session.client_name ? session.client_id : 'Unnamed client'}</div>
        </td>
        <td data-wide>
          {session.user_name ?? session.subject} {session.subject === me.user.id && <Tag>you</Tag>}
          <div className={cell.sub}>{session.user_email ?? 'Service account'}</div>
        </td>
        <td data-label="Server">
          {session.server_name ? (
            <TextLink to="/w/$ws/servers/$id" params={{ ws: workspace.slug, id: session.server_id }}>
              {session.server_name}
            </TextLink>
          ) : (
            'Deleted server'
          )}
        </td>
        <td data-label="Protocol">
          {session.revision}
          <div className={cell.sub}>{session.is_session ? 'session' : 'without session'}</div>
        </td>
        <td data-label="Last activity">
          <Status tone={busy ? 'good' : 'quiet'}>
            <Ago at={session.last_at} />
          </Status>
          <div className={cell.sub}>
            since <Ago at={session.began_at} />
          </div>
        </td>
        <td data-label="Calls" data-align="right">
          {session.calls.toLocaleString()}
          <div className={cell.sub}>
            {session.streams === 0
              ? 'no stream'
              : session.streams === 1
                ? '1 stream'
                : `${session.streams} streams`}
          </div>
        </td>
        <td data-align="right">
          <Group gap="xs" justify="flex-end" wrap="nowrap">
            <Button
              variant="subtle"
              size="compact-sm"
              aria-expanded={opened}
              aria-label={`${opened ? 'Hide' : 'Show'} the timeline of ${title(session)}`}
              onClick={toggle}
            >
              {opened ? 'Hide' : 'Timeline'}
            </Button>
            {session.is_session && (
              <Button
                variant="subtle"
                color="red"
                size="compact-sm"
                aria-label={`End the session of ${title(session)}`}
                onClick={end}
              >
                End
              </Button>
            )}
          </Group>
        </td>
      </tr>
      {opened && (
        <tr>
          <td colSpan={7} data-wide>
            <Timeline session={session} />
          </td>
        </tr>
      )}
    </>
  );
}

const words: Record<SessionEvent['kind'], string> = {
  opened: 'Session opened',
  request: 'Request',
  notification: 'Notification',
  question: 'Question to the client',
  answer: 'Answer of the client',
  stream: 'Stream opened',
  resumed: 'Stream resumed',
  ended: 'Session ended',
};

const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
});

function Timeline({ session }: { session: OpenSession }) {
  const { workspace } = useSession();
  const timeline = useQuery(timelineQuery(workspace.slug, session.id));
  return (
    <Loaded query={timeline}>
      {({ items }) =>
        items.length === 0 ? (
          <p className={classes.note}>The nodes remember nothing of this session.</p>
        ) : (
          <>
            <ol className={classes.moments} aria-label={`Timeline of ${title(session)}`}>
              {items.map(({ at, node, kind, method }, place) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: moments have only their order
                <li key={place} className={classes.moment} data-kind={kind}>
                  <time dateTime={at} className={classes.at}>
                    {clock.format(new Date(at))}
                  </time>
                  <span>{words[kind]}</span>
                  {method && <code>{method}</code>}
                  {/* A change of the node is what a person looks for. */}
                  <span className={classes.node} data-changed={node !== items[place - 1]?.node || undefined}>
                    node {node.slice(0, 6)}
                  </span>
                </li>
              ))}
            </ol>
            <p className={classes.note}>Each node remembers the last 48 moments of a session, in memory.</p>
          </>
        )
      }
    </Loaded>
  );
}
