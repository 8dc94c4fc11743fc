import type { CallLog } from '../api/workspaces';
import { formatDuration } from '../time';
import { Ago } from './ago';
import { Outcome } from './badges';
import { cell, Table } from './table';

export function CallsTable({
  calls,
  label,
  server = true,
}: {
  calls: CallLog[];
  label: string;
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
      {calls.map((call, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: calls have no id; the list only grows at its ends
        <tr key={`${call.at}${row}`}>
          <td data-wide>
            <div className={cell.main}>
              <code>{call.tool_name}</code>
            </div>
            {server && call.server_slug && <div className={cell.sub}>{call.server_slug}</div>}
          </td>
          <td data-wide>
            {call.client_name ?? 'Try page'}
            <div className={cell.sub}>{call.user_name}</div>
          </td>
          <td>
            <Outcome call={call} />
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
