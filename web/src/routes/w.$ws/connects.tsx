import { Button, Select, TextInput } from '@mantine/core';
import { IconRoute } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { useState } from 'react';
import { type ConnectAttempt, connectsQuery } from '../../api/clients';
import { Ago } from '../../components/ago';
import { Status } from '../../components/badges';
import { Timeline, words } from '../../components/connect-timeline';
import { Empty, Loaded, Page, Panel } from '../../components/page';
import { Restricted } from '../../components/restricted';
import { cell, LoadMore, Table, TableBar } from '../../components/table';
import { useFilter } from '../../filter';
import { text } from '../../search';
import { useSession } from '../../session';

export const Route = createFileRoute('/w/$ws/connects')({
  component: ConnectsPage,
  validateSearch: (search: Record<string, unknown>): { request?: string; outcome?: string } => ({
    request: text(search.request),
    outcome: text(search.outcome),
  }),
});

const states: Record<ConnectAttempt['state'], ['good' | 'bad' | 'warn' | 'quiet', string]> = {
  connected: ['good', 'Connected'],
  waiting: ['quiet', 'Waiting'],
  refused: ['bad', 'Refused'],
  failed: ['bad', 'Failed'],
  stopped: ['warn', 'Stopped'],
};

/** A name for the client of an attempt: its own name, else the program that sent the request. */
function title(attempt: ConnectAttempt): string {
  const agent = attempt.steps.find((step) => step.agent)?.agent;
  return attempt.client_name ?? attempt.client_id ?? agent ?? 'Unknown client';
}

function ConnectsPage() {
  return (
    <Restricted needs="administer" title="Connections">
      <Connects />
    </Restricted>
  );
}

function Connects() {
  const { workspace } = useSession();
  const [text, setText] = useFilter('request');
  const [state, setState] = useFilter('outcome');
  const [opened, setOpened] = useState<string>();
  const connects = useInfiniteQuery(connectsQuery(workspace.slug, text.trim()));
  return (
    <Page
      title="Connections"
      help="guides/debug-a-connection"
      lede="Connection attempts by AI clients, kept for 7 days. Updates automatically."
    >
      <Panel flush>
        <TableBar>
          <TextInput
            label="Request ID"
            description="As shown on an error page."
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
          <Select
            label="Outcome"
            description="Result of the attempt."
            placeholder="All"
            clearable
            clearButtonProps={{ 'aria-label': 'Show all outcomes' }}
            value={state || null}
            onChange={(next) => setState(next ?? '')}
            data={Object.entries(states).map(([value, [, label]]) => ({ value, label }))}
          />
        </TableBar>
        <Loaded query={connects} lines={6}>
          {(data) => {
            const all = data.pages.flatMap((page) => page.items);
            const items = all.filter((one) => !state || one.state === state);
            if (items.length === 0) {
              return (
                <Empty
                  icon={<IconRoute size={24} />}
                  title={text || state ? 'No matches' : 'No connection attempts yet'}
                >
                  {text || state
                    ? 'Try another request ID or outcome.'
                    : 'Add a server’s URL to an AI client and watch it connect here.'}
                </Empty>
              );
            }
            return (
              <>
                <Table
                  label="Connection attempts"
                  head={
                    <>
                      <th>Client</th>
                      <th>Outcome</th>
                      <th>Last step</th>
                      <th>Started</th>
                      <th>
                        <span className="visually-hidden">Actions</span>
                      </th>
                    </>
                  }
                >
                  {items.map((attempt) => (
                    <Row
                      key={attempt.id}
                      attempt={attempt}
                      opened={opened === attempt.id}
                      toggle={() => setOpened(opened === attempt.id ? undefined : attempt.id)}
                    />
                  ))}
                </Table>
                <LoadMore query={connects} />
              </>
            );
          }}
        </Loaded>
      </Panel>
    </Page>
  );
}

function Row({ attempt, opened, toggle }: { attempt: ConnectAttempt; opened: boolean; toggle: () => void }) {
  const [tone, word] = states[attempt.state];
  const fault = attempt.steps.findLast((step) => step.fault)?.fault;
  return (
    <>
      <tr>
        <td data-wide>
          <span className={cell.main}>{title(attempt)}</span>
          <div className={`${cell.sub} ${cell.clamp}`}>
            {attempt.server ? `Server ${attempt.server}` : 'Workspace'}
            {attempt.user_name && `, ${attempt.user_name}`}
          </div>
        </td>
        <td data-wide>
          <Status tone={tone}>{word}</Status>
          {attempt.state !== 'connected' && fault && <div className={cell.sub}>{fault}</div>}
        </td>
        <td data-label="Last step">{words[attempt.reached]}</td>
        <td data-label="Started">
          <Ago at={attempt.began_at} />
        </td>
        <td data-align="right">
          <Button
            variant="subtle"
            size="compact-sm"
            aria-expanded={opened}
            aria-label={`${opened ? 'Hide' : 'Show'} the steps of ${title(attempt)}`}
            onClick={toggle}
          >
            {opened ? 'Hide' : 'Steps'}
          </Button>
        </td>
      </tr>
      {opened && (
        <tr>
          <td colSpan={5} data-wide>
            <Timeline attempt={attempt} />
          </td>
        </tr>
      )}
    </>
  );
}
