import '@mantine/charts/styles.css';
import { BarChart, ChartTooltip } from '@mantine/charts';
import type { LimitUsage } from '../api/limits';
import { formatClock } from '../time';
import { limitFits } from './chart';

/** Calls a minute beside their limit; a triangle marks where calls were refused. The table behind it is for screen readers. */
export default function UsageChart({ usage, limit }: { usage: LimitUsage; limit: number | null }) {
  const end = (at: string) => new Date(Date.parse(at) + usage.bucket_minutes * 60_000).toISOString();
  const span = (at: string) => `${formatClock(at)}–${formatClock(end(at))}`;
  const busiest = Math.max(0, ...usage.buckets.map((one) => one.busiest_minute));
  const eventful = usage.buckets.filter((one) => one.calls > 0 || one.refused > 0);
  return (
    <>
      <div aria-hidden>
        <BarChart
          h={240}
          data={usage.buckets}
          dataKey="at"
          series={[
            { name: 'busiest_minute', label: 'Calls in the busiest minute', color: 'var(--chart-ok)' },
          ]}
          referenceLines={
            limit !== null && limitFits(busiest, limit)
              ? [
                  {
                    y: limit,
                    color: 'var(--chart-limit)',
                    strokeWidth: 1.5,
                    strokeDasharray: '6 4',
                    ifOverflow: 'extendDomain',
                  },
                ]
              : []
          }
          referenceDots={usage.buckets
            .filter((one) => one.refused > 0)
            .map((one) => ({
              x: one.at,
              y: one.busiest_minute,
              color: 'var(--chart-error)',
              shape: Triangle,
            }))}
          tickLine="none"
          gridAxis="x"
          strokeDasharray="2 5"
          withYAxis
          barChartProps={{ accessibilityLayer: false, margin: { top: 14, right: 5, bottom: 5, left: 5 } }}
          yAxisProps={{
            width: 40,
            allowDecimals: false,
            tickFormatter: (value: number) => value.toLocaleString(),
          }}
          xAxisProps={{ interval: 'preserveStartEnd', minTickGap: 40, tickFormatter: formatClock }}
          barProps={{ radius: 2, isAnimationActive: false }}
          maxBarWidth={22}
          tooltipProps={{
            content: ({ payload }) => {
              const one = payload?.[0]?.payload as LimitUsage['buckets'][number] | undefined;
              return one ? (
                <ChartTooltip
                  label={span(one.at)}
                  payload={[
                    {
                      name: 'Calls in the busiest minute',
                      value: one.busiest_minute,
                      color: 'var(--chart-ok)',
                    },
                    {
                      name: `Calls in ${usage.bucket_minutes} minutes`,
                      value: one.calls,
                      color: 'transparent',
                    },
                    { name: 'Refused', value: one.refused, color: 'var(--chart-error)' },
                  ]}
                />
              ) : null;
            },
          }}
        />
      </div>
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

/** Stands on top of the bar, so that colour alone does not say it. */
function Triangle({ cx = 0, cy = 0 }: { cx?: number; cy?: number }) {
  return <path d={`M${cx - 5} ${cy - 11}h10l-5 8z`} fill="var(--chart-error)" />;
}
