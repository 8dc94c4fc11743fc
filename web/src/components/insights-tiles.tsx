import type { Insights } from '../api/insights';
import { formatBytes, formatDuration, formatTokens } from '../time';
import classes from './insights-tiles.module.css';

/** `+12 %` against the period before; nothing where there was none. */
export function changeOf(now: number, before: number): string | undefined {
  if (before === 0) return undefined;
  const change = Math.round(((now - before) / before) * 100);
  return `${change > 0 ? '+' : ''}${change.toLocaleString()} %`;
}

const share = (part: number, all: number) => (all === 0 ? 0 : (part / all) * 100);

/** The numbers of a period, each with that of the period before. */
export function InsightsTiles({ insights: { total, before } }: { insights: Insights }) {
  const millis = (value: number | undefined) => (value === undefined ? '–' : formatDuration(value));
  const tiles = [
    {
      name: 'Calls',
      value: total.calls.toLocaleString(),
      was: before.calls.toLocaleString(),
      change: changeOf(total.calls, before.calls),
    },
    {
      name: 'Errors',
      value: `${share(total.errors, total.calls).toFixed(1)} %`,
      was: `${share(before.errors, before.calls).toFixed(1)} %`,
    },
    { name: '50 % within', value: millis(total.p50_ms), was: millis(before.p50_ms) },
    { name: '95 % within', value: millis(total.p95_ms), was: millis(before.p95_ms) },
    { name: '99 % within', value: millis(total.p99_ms), was: millis(before.p99_ms) },
    {
      name: 'Answers',
      value: formatBytes(total.bytes_out),
      was: formatBytes(before.bytes_out),
      change: changeOf(total.bytes_out, before.bytes_out),
      note: `about ${formatTokens(total.tokens_out)} tokens`,
    },
  ];
  return (
    <dl className={classes.tiles}>
      {tiles.map(({ name, value, was, change, note }) => (
        <div key={name} className={classes.tile}>
          <dt>{name}</dt>
          <dd className={classes.value}>{value}</dd>
          <dd className={classes.before}>
            {change && (
              <>
                <strong>{change}</strong>{' '}
              </>
            )}
            <span>before: {was}</span>
          </dd>
          {note && <dd className={classes.before}>{note}</dd>}
        </div>
      ))}
    </dl>
  );
}
