import '@mantine/charts/styles.css';
import { BarChart } from '@mantine/charts';
import type { HourlyCalls } from '../api/workspaces';
import { formatClock } from '../time';

/** Calls and errors by the hour. The table behind it is for screen readers. */
export default function CallsChart({ hours }: { hours: HourlyCalls[] }) {
  const data = hours.map((one) => ({
    hour: formatClock(one.hour),
    OK: Math.max(0, one.calls - one.errors),
    Errors: one.errors,
  }));
  return (
    <>
      <div aria-hidden>
        <BarChart
          h={220}
          data={data}
          dataKey="hour"
          type="stacked"
          series={[
            { name: 'OK', color: 'var(--chart-ok)' },
            { name: 'Errors', color: 'var(--chart-error)' },
          ]}
          tickLine="none"
          gridAxis="x"
          strokeDasharray="2 5"
          withYAxis
          barChartProps={{ accessibilityLayer: false }}
          yAxisProps={{ width: 36, allowDecimals: false }}
          xAxisProps={{ interval: 'preserveStartEnd', minTickGap: 40 }}
          barProps={{ radius: 2, isAnimationActive: false }}
          maxBarWidth={22}
        />
      </div>
      <div className="visually-hidden">
        <table>
          <caption>Calls of the last 24 hours</caption>
          <thead>
            <tr>
              <th>Hour</th>
              <th>Calls</th>
              <th>Errors</th>
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
