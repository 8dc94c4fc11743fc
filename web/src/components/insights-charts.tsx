import type { Insights } from '../api/insights';
import { counted } from '../outcomes';
import { formatClock, formatDate, formatDateTime, formatDuration } from '../time';
import { Bars, BarTip } from './bars';
import { ChartFrame, Legend } from './chart';

/** The foot of a bar: a time of day, or a date for steps of a day. */
const foot = (at: string, step: number) => (step >= 86_400 ? formatDate(at) : formatClock(at));

/** Calls of each step by how they ended. The table behind it is for screen readers. */
export function StepsChart({ insights }: { insights: Insights }) {
  const { steps, step_seconds: step, total } = insights;
  return (
    <>
      <ChartFrame>
        <Bars
          bars={steps.map((one) => ({
            at: one.at,
            label: foot(one.at, step),
            parts: counted(one),
            tip: <BarTip title={formatDateTime(one.at)} lines={counted(one)} />,
          }))}
        />
      </ChartFrame>
      <Legend items={counted(total)} />
      <div className="visually-hidden">
        <table>
          <caption>Calls by step</caption>
          <thead>
            <tr>
              <th>From</th>
              <th>Calls</th>
              <th>Failed</th>
              <th>Rejected</th>
              <th>95th percentile</th>
            </tr>
          </thead>
          <tbody>
            {steps.map((one) => (
              <tr key={one.at}>
                <td>{formatDateTime(one.at)}</td>
                <td>{one.calls}</td>
                <td>{one.errors}</td>
                <td>{one.rejected}</td>
                <td>{one.p95_ms === undefined ? 'none' : formatDuration(one.p95_ms)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** The 95th percentile of each step, in milliseconds. The table of calls has the same numbers. */
export function DurationsChart({ insights }: { insights: Insights }) {
  const { steps, step_seconds: step } = insights;
  return (
    <ChartFrame>
      <Bars
        bars={steps.map((one) => ({
          at: one.at,
          label: foot(one.at, step),
          parts: [{ value: Math.round(one.p95_ms ?? 0), color: 'var(--outcome-succeeded)' }],
          tip: (
            <BarTip
              title={formatDateTime(one.at)}
              lines={[
                { name: '50 %, ms', value: Math.round(one.p50_ms ?? 0) },
                { name: '95 %, ms', value: Math.round(one.p95_ms ?? 0) },
                { name: '99 %, ms', value: Math.round(one.p99_ms ?? 0) },
              ]}
            />
          ),
        }))}
      />
    </ChartFrame>
  );
}
