import type { HourlyCalls } from '../api/workspaces';
import { counted } from '../outcomes';
import { formatClock } from '../time';
import { Bars, BarTip } from './bars';

/** Calls by the hour. The table behind it is for screen readers. */
export function CallsChart({ hours }: { hours: HourlyCalls[] }) {
  return (
    <>
      <Bars
        bars={hours.map((one) => ({
          at: one.hour,
          label: formatClock(one.hour),
          parts: counted(one),
          tip: <BarTip title={formatClock(one.hour)} lines={counted(one)} />,
        }))}
      />
      <div className="visually-hidden">
        <table>
          <caption>Calls of the last 24 hours</caption>
          <thead>
            <tr>
              <th>Hour</th>
              <th>Calls</th>
              <th>Failed</th>
              <th>Rejected</th>
            </tr>
          </thead>
          <tbody>
            {hours.map((one) => (
              <tr key={one.hour}>
                <td>{formatClock(one.hour)}</td>
                <td>{one.calls}</td>
                <td>{one.errors}</td>
                <td>{one.rejected}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
