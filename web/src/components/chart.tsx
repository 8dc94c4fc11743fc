import type { CSSProperties, ReactNode } from 'react';
import classes from './chart.module.css';

/** Numbers and colours of data for a style sheet; what is drawn with them stands there. */
export const variables = (values: Record<`--${string}`, string>) => values as CSSProperties;

/** Where a chart stands: its colours, and its height before it has loaded. */
export function ChartFrame({ children }: { children: ReactNode }) {
  return <div className={classes.frame}>{children}</div>;
}

/** Explains the colours and marks of a chart, each with its number. */
export function Legend({
  items,
}: {
  items: { name: string; value: number; color: string; mark?: 'line' | 'triangle' }[];
}) {
  return (
    <div className={classes.legend}>
      {items.map(({ name, value, color, mark }) => (
        <span key={name} data-mark={mark} style={variables({ '--swatch': color })}>
          {name} {value.toLocaleString()}
        </span>
      ))}
    </div>
  );
}

/** Whether the line of a limit can be drawn on the scale of the bars. One far above would press them flat. */
export const limitFits = (highest: number, limit: number) => limit <= Math.max(highest, 1) * 8;
