import type { ReactNode } from 'react';
import classes from './bars.module.css';
import { variables } from './chart';

/** One bar: what stands at its foot, its parts from below, and what is said about it. */
export interface Bar {
  at: string;
  label: string;
  parts: { value: number; color: string }[];
  /** A triangle on top, in this colour. */
  mark?: string | undefined;
  tip: ReactNode;
}

/** Whole steps of 1, 2 or 5 times a power of ten, at most five of them up to `most`. */
export function scale(most: number): number[] {
  const wanted = Math.max(1, most) / 4;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = Math.max(1, [1, 2, 5, 10].map((one) => one * power).find((one) => one >= wanted) ?? wanted);
  const count = Math.max(1, Math.ceil(most / step));
  return Array.from({ length: count + 1 }, (_, place) => place * step);
}

/** Which bars have a label: the last one, and others at equal distances before it. */
export function labelled(count: number, most = 7): number[] {
  const step = Math.max(1, Math.ceil(count / most));
  const places: number[] = [];
  for (let place = count - 1; place >= 0; place -= step) places.unshift(place);
  return places;
}

/** Stacked bars over time. It is drawn for the eye; the caller puts a table beside it. */
export function Bars({ bars, limit }: { bars: Bar[]; limit?: number | null }) {
  const sum = (bar: Bar) => bar.parts.reduce((total, part) => total + part.value, 0);
  const ticks = scale(Math.max(limit ?? 0, ...bars.map(sum)));
  const top = ticks.at(-1) ?? 1;
  const percent = (value: number) => `${(value / top) * 100}%`;
  return (
    <div className={classes.chart} aria-hidden>
      <div className={classes.scale}>
        {ticks.map((tick) => (
          <span key={tick} style={variables({ '--at': percent(tick) })}>
            {tick.toLocaleString()}
          </span>
        ))}
      </div>
      <div className={classes.plot}>
        {ticks.map((tick) => (
          <i key={tick} className={classes.line} style={variables({ '--at': percent(tick) })} />
        ))}
        {limit !== null && limit !== undefined && (
          <i className={classes.limit} style={variables({ '--at': percent(limit) })} />
        )}
        {bars.map((bar, place) => (
          <div key={bar.at} className={classes.bar} data-end={place > bars.length / 2 || undefined}>
            <div className={classes.stack} style={variables({ '--size': percent(sum(bar)) })}>
              {bar.mark && <b style={variables({ '--color': bar.mark })} />}
              {bar.parts
                .filter((part) => part.value > 0)
                .map((part) => (
                  <span
                    key={part.color}
                    style={variables({ '--share': String(part.value), '--color': part.color })}
                  />
                ))}
            </div>
            <div className={classes.tip}>{bar.tip}</div>
          </div>
        ))}
      </div>
      <div className={classes.labels}>
        {labelled(bars.length).map((place) => (
          <span
            key={bars[place]?.at}
            style={variables({ '--at': `${((place + 0.5) / bars.length) * 100}%` })}
            data-last={place === bars.length - 1 || undefined}
          >
            {bars[place]?.label}
          </span>
        ))}
      </div>
    </div>
  );
}

/** The lines of a bar's note: a heading, then names with numbers. */
export function BarTip({
  title,
  lines,
}: {
  title: string;
  lines: { name: string; value: number; color?: string }[];
}) {
  return (
    <>
      <strong>{title}</strong>
      {lines.map(({ name, value, color }) => (
        <span key={name} style={variables({ '--color': color ?? 'transparent' })}>
          {name} <em>{value.toLocaleString()}</em>
        </span>
      ))}
    </>
  );
}
