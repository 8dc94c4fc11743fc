import { IconCircleCheck } from '@tabler/icons-react';
import type { UseQueryResult } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ErrorCause, ErrorCauses } from '../api/insights';
import type { CallFilter } from '../call-filter';
import { outcomes } from '../outcomes';
import { formatDateTime } from '../time';
import { Ago } from './ago';
import { Empty, Loaded, Panel } from './page';
import { cell, Table, useShown } from './table';

const nameOf = (cause: ErrorCause) =>
  cause.outcome in outcomes ? outcomes[cause.outcome as keyof typeof outcomes].name : cause.outcome;

/** The filter of the calls behind a cause, from its first to its last. */
export function behindCause(cause: ErrorCause, client: string | undefined): CallFilter {
  return {
    tool: cause.tool_name,
    ...(cause.server_slug && { server: cause.server_slug }),
    ...(client && { client }),
    outcome: cause.outcome,
    ...(cause.error && { error: cause.error }),
    from: new Date(cause.first_at).toISOString(),
    // The end is exclusive, and the service counts microseconds.
    to: new Date(Date.parse(cause.last_at) + 1).toISOString(),
  };
}

/** Failed calls by tool and reason, each with the calls behind it. */
export function ErrorsByCause({
  causes,
  ws,
  client,
}: {
  causes: UseQueryResult<ErrorCauses>;
  ws: string;
  /** The client to which the page is narrowed. */
  client: string | undefined;
}) {
  const since = causes.data?.since;
  const note = since
    ? `Failures since ${formatDateTime(since)}: the log has too many older ones.`
    : 'Failed and rejected calls of the last 30 days at most, by tool and reason.';
  return (
    <Panel title="Errors by cause" note={note} flush>
      <Loaded query={causes} lines={4}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={<IconCircleCheck size={24} />} title="No errors">
              No call of this period failed.
            </Empty>
          ) : (
            <Causes items={items} ws={ws} client={client} />
          )
        }
      </Loaded>
    </Panel>
  );
}

function Causes({ items, ws, client }: { items: ErrorCause[]; ws: string; client: string | undefined }) {
  const { shown, more } = useShown(items);
  return (
    <>
      <Table
        label="Errors by cause"
        head={
          <>
            <th>Reason</th>
            <th>Tool</th>
            <th data-align="right">Calls</th>
            <th data-align="right">First seen</th>
            <th data-align="right">Last seen</th>
          </>
        }
      >
        {shown.map((cause) => {
          const reason = cause.error ?? nameOf(cause);
          return (
            <tr
              key={[cause.tool_name, cause.server_slug, cause.outcome, cause.status, cause.error].join('\n')}
            >
              <td data-wide>
                <Link
                  className={cell.main}
                  to="/w/$ws/calls"
                  params={{ ws }}
                  search={behindCause(cause, client)}
                >
                  {reason}
                </Link>
                {cause.error && <div className={cell.sub}>{nameOf(cause)}</div>}
              </td>
              <td data-label="Tool">
                <code>{cause.tool_name}</code>
                <div className={cell.sub}>{cause.server_slug ?? 'Try page'}</div>
              </td>
              <td data-align="right" data-label="Calls">
                {cause.calls.toLocaleString()}
              </td>
              <td data-align="right" data-label="First seen">
                <Ago at={cause.first_at} />
              </td>
              <td data-align="right" data-label="Last seen">
                <Ago at={cause.last_at} />
              </td>
            </tr>
          );
        })}
      </Table>
      {more}
    </>
  );
}
