import type { HourlyCalls } from '../api/workspaces';
import { formatClock } from '../time';
import { type Bar, Bars, BarTip } from './bars';

const ok = 'var(--chart-ok)';
const bad = 'var(--chart-error)';

/** Calls by the hour. The table behind it is for screen readers. */
export function CallsChart({ hours }: { hours: HourlyCalls[] }) {
  const bars = hours.map((one): Bar => {
    const succeeded = Math.max(0, one.calls - one.errors);
    return {
      at: one.hour,
      label: formatClock(one.hour),
      parts: [
        { value: succeeded, color: ok },
        { value: one.errors, color: bad },
      ],
      tip: (
        <BarTip
          title={formatClock(one.hour)}
          lines={[
            { name: 'Succeeded', value: succeeded, color: ok },
            { name: 'Failed or rejected', value: one.errors, color: bad },
          ]}
        />
      ),
    };
  });
  return (
    <>
      <Bars bars={bars} />
      <div className="visually-hidden">
        <table>
          <caption>Calls of the last 24 hours</caption>
          <thead>
            <tr>
              <th>Hour</th>
              <th>Calls</th>
              <th>Failed or rejected</th>
            </tr>
          </thead>
          <tbody>
            {hours.map((one) => (
              <tr key={one.hour}>
                <td>{formatClock(one.hour)}</td>
                <td>{one.calls}</td>
                <td>{one.errors}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
