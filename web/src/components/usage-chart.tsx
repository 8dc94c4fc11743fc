import type { LimitUsage } from '../api/limits';
import { formatClock } from '../time';
import { Bars, BarTip } from './bars';
import { limitFits } from './chart';

/** Calls a minute beside their limit; a triangle marks where calls were refused. The table behind it is for screen readers. */
export function UsageChart({ usage, limit }: { usage: LimitUsage; limit: number | null }) {
  const end = (at: string) => new Date(Date.parse(at) + usage.bucket_minutes * 60_000).toISOString();
  const span = (at: string) => `${formatClock(at)}–${formatClock(end(at))}`;
  const busiest = Math.max(0, ...usage.buckets.map((one) => one.busiest_minute));
  const eventful = usage.buckets.filter((one) => one.calls > 0 || one.refused > 0);
  return (
    <>
      <Bars
        limit={limit !== null && limitFits(busiest, limit) ? limit : null}
        bars={usage.buckets.map((one) => ({
          at: one.at,
          label: formatClock(one.at),
          parts: [{ value: one.busiest_minute, color: 'var(--outcome-succeeded)' }],
          mark: one.refused > 0 ? 'var(--outcome-failed)' : undefined,
          tip: (
            <BarTip
              title={span(one.at)}
              lines={[
                {
                  name: 'Calls in the busiest minute',
                  value: one.busiest_minute,
                  color: 'var(--outcome-succeeded)',
                },
                { name: `Calls in ${usage.bucket_minutes} minutes`, value: one.calls },
                { name: 'Refused', value: one.refused, color: 'var(--outcome-failed)' },
              ]}
            />
          ),
        }))}
      />
      <div className="visually-hidden">
        <table>
          <caption>Calls and refusals; times without any are left out</caption>
          <thead>
            <tr>
              <th>Time</th>
              <th>Calls in the busiest minute</th>
              <th>Calls</th>
              <th>Refused</th>
            </tr>
          </thead>
          <tbody>
            {eventful.map((one) => (
              <tr key={one.at}>
                <td>{span(one.at)}</td>
                <td>{one.busiest_minute}</td>
                <td>{one.calls}</td>
                <td>{one.refused}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
