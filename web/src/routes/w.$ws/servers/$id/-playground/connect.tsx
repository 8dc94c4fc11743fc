import { Alert, Button, Group, SegmentedControl } from '@mantine/core';
import { IconPlugConnected, IconPlugConnectedX, IconUserPlus } from '@tabler/icons-react';
import { Status } from '../../../../../components/badges';
import { Facts, Panel } from '../../../../../components/page';
import type { Era } from '../../../../../mcp/messages';
import { useSession } from '../../../../../session';
import { formatClock } from '../../../../../time';
import classes from './playground.module.css';
import type { Playground } from './use-playground';

const eras: { value: Era; label: string }[] = [
  { value: '2025-11-25', label: '2025-11-25' },
  { value: '2026-07-28', label: '2026-07-28' },
];

const about: Record<Era, string> = {
  '2025-11-25': 'A session over Streamable HTTP, as most clients open one today.',
  '2026-07-28': 'Without a session: each request carries the client’s version and capabilities.',
};

/** Chooses the era and the person, and shows the connection. */
export function ConnectPanel({ play, published }: { play: Playground; published: boolean }) {
  const { phase, fault, era, connection } = play;
  return (
    <Panel
      title="Connection"
      aside={
        <SegmentedControl
          size="xs"
          aria-label="Protocol version"
          data={eras}
          value={era}
          onChange={(next) => play.setEra(next as Era)}
          disabled={phase !== 'idle'}
        />
      }
    >
      {connection ? <Connected play={play} /> : <Choose play={play} published={published} />}
      <div aria-live="polite">
        {fault && (
          <Alert
            mt="md"
            color="red"
            data-tone="red"
            title={connection ? 'The connection has a fault' : 'Not connected'}
          >
            {fault}
          </Alert>
        )}
      </div>
    </Panel>
  );
}

function Choose({ play, published }: { play: Playground; published: boolean }) {
  const { phase, era } = play;
  return (
    <>
      <p className={classes.text}>{about[era]}</p>
      <Group gap="sm">
        <Button
          leftSection={<IconPlugConnected size={16} aria-hidden />}
          disabled={!published}
          loading={phase !== 'idle'}
          onClick={() => void play.connect(false)}
        >
          Connect as me
        </Button>
        <Button
          variant="default"
          leftSection={<IconUserPlus size={16} aria-hidden />}
          disabled={!published || phase !== 'idle'}
          onClick={() => void play.connect(true)}
        >
          Connect as another person
        </Button>
        {phase === 'authorizing' && (
          <Button variant="subtle" color="gray" onClick={play.cancel}>
            Cancel
          </Button>
        )}
      </Group>
      {phase === 'authorizing' ? (
        <p className={classes.note} role="status">
          Waiting for the sign-in window. Allow access there.
        </p>
      ) : (
        <p className={classes.note}>
          The playground is an ordinary MCP client: it signs in by OAuth in a window of its own, and its calls
          count as calls. Another person signs in there; afterwards this browser is signed in as that person.
        </p>
      )}
    </>
  );
}

function Connected({ play }: { play: Playground }) {
  const { me } = useSession();
  const { connection, person, endsAt } = play;
  if (!connection) return null;
  const { server, session, era } = connection;
  const other = person && person.id !== me.user.id;
  return (
    <>
      <Group justify="space-between" align="flex-start" gap="md">
        <Group gap="sm">
          <Status tone="good">Connected</Status>
          <span>
            as <strong>{person?.email}</strong>
          </span>
        </Group>
        <Button
          variant="default"
          size="xs"
          leftSection={<IconPlugConnectedX size={15} aria-hidden />}
          onClick={() => void play.disconnect()}
        >
          Disconnect
        </Button>
      </Group>
      {other && (
        <Alert mt="md" color="yellow" data-tone="yellow">
          This browser is now signed in as {person.email}. Other pages of the console open as that person.
        </Alert>
      )}
      <div className={classes.facts}>
        <Facts
          items={[
            ['Server', `${server.title ?? server.name} ${server.version}`],
            ['Protocol', era],
            ...(session
              ? [['Session', <code key="id">{`${session.slice(0, 20)}…`}</code>] as [string, React.ReactNode]]
              : []),
            ['Token', `In this page’s memory only, until ${formatClock(new Date(endsAt).toISOString())}`],
          ]}
        />
      </div>
      {server.instructions && (
        <details className={classes.details}>
          <summary>Instructions for models</summary>
          <p className={classes.instructions}>{server.instructions}</p>
        </details>
      )}
    </>
  );
}
