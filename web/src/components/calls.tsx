import { Link } from '@tanstack/react-router';
import type { CallLog } from '../api/workspaces';
import { formatDuration } from '../time';
import { Ago } from './ago';
import { Outcome } from './badges';
import { cell, Table } from './table';

export function CallsTable({
  calls,
  label,
  ws,
  server = true,
}: {
  calls: CallLog[];
  label: string;
  /** The workspace, for links to each call. */
  ws: string;
  server?: boolean;
}) {
  return (
    <Table
      label={label}
      head={
        <>
          <th>Tool</th>
          <th>Client and user</th>
          <th>Outcome</th>
          <th data-align="right">Duration</th>
          <th data-align="right">When</th>
        </>
      }
    >
      {calls.map((call) => (
        <tr key={call.id}>
          <td data-wide>
            <Link className={cell.main} to="/w/$ws/calls/$id" params={{ ws, id: call.id }}>
              <code>{call.tool_name}</code>
            </Link>
            {server && call.server_slug && <div className={cell.sub}>{call.server_slug}</div>}
          </td>
          <td data-wide>
            {call.client_name ?? 'Try page'}
            <div className={cell.sub}>{call.user_name}</div>
          </td>
          <td>
            <Outcome call={call} />
            {call.weight > 1 && <div className={cell.sub}>one of {call.weight}</div>}
          </td>
          <td data-align="right">{formatDuration(call.duration_ms)}</td>
          <td data-align="right" data-shrink>
            <Ago at={call.at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}
