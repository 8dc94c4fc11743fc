import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { type KeyboardEvent, useRef, useState } from 'react';
import type { Insights, InsightsFilter } from '../api/insights';
import type { CallFilter } from '../call-filter';
import { formatClock, formatDate, formatDateTime, formatMicros } from '../time';
import { labelled } from './bars';
import { variables } from './chart';
import classes from './latency-heat-map.module.css';
import { Panel } from './page';
import { cell, Table, useShown } from './table';

/** The upper bound of the last band, which holds everything longer too. */
const LAST = 2 ** 36;

/** Calls of one step whose duration is in one band. */
export interface HeatCell {
  at: string;
  upto: number;
  calls: number;
}

/** Upper bounds of the bands in microseconds, longest first, without empty ones at both ends. */
export function bandsOf(steps: Insights['steps']): number[] {
  const seen = steps.flatMap((step) => step.durations.map((bucket) => bucket.upto_us));
  if (seen.length === 0) return [];
  const bands: number[] = [];
  for (let upto = Math.max(...seen); upto >= Math.min(...seen); upto /= 2) bands.push(upto);
  return bands;
}

/** `8.2 ms to 16 ms`. */
export function bandName(upto: number): string {
  if (upto >= LAST) return `over ${formatMicros(upto / 2)}`;
  return `${formatMicros(upto / 2)} to ${formatMicros(upto)}`;
}

/** The filter of the calls behind a cell. A call is counted when it ends, and listed when it came. */
export function behind({ at, upto }: HeatCell, step: number, filter: InsightsFilter): CallFilter {
  const begin = Date.parse(at);
  const came = begin - (upto >= LAST ? 86_400_000 : upto / 1000);
  const [low, high] = [upto / 2000, upto / 1000];
  const dur = upto >= LAST ? `>${low}ms` : upto === 1 ? '<0.002ms' : `${low}ms..${high}ms`;
  const { tool, server, client, outcome } = filter;
  return {
    ...(tool && { tool }),
    ...(server && { server }),
    ...(client && { client }),
    ...(outcome && { outcome }),
    dur,
    from: new Date(Math.floor(came)).toISOString(),
    to: new Date(begin + step * 1000).toISOString(),
  };
}

/** The cells that have calls, by column and from the longest band down. */
function cellsOf(steps: Insights['steps']): HeatCell[][] {
  return steps.map((step) =>
    step.durations
      .map((bucket) => ({ at: step.at, upto: bucket.upto_us, calls: bucket.calls }))
      .sort((a, b) => b.upto - a.upto),
  );
}

/**
 * The cell to which an arrow key leads: the next one of the column, or the nearest one of the next column that has
 * calls.
 */
export function reached(columns: HeatCell[][], from: HeatCell, key: string): HeatCell | undefined {
  const column = columns.findIndex((cells) => cells.some((one) => one.at === from.at));
  const place = columns[column]?.findIndex((one) => one.upto === from.upto) ?? -1;
  if (key === 'ArrowUp') return columns[column]?.[place - 1];
  if (key === 'ArrowDown') return columns[column]?.[place + 1];
  const filled = columns.filter((cells) => cells.length > 0);
  const here = filled.findIndex((cells) => cells[0]?.at === from.at);
  const aims: Record<string, HeatCell[] | undefined> = {
    ArrowLeft: filled[here - 1],
    ArrowRight: filled[here + 1],
    Home: filled[0],
    End: filled.at(-1),
  };
  const next = aims[key];
  const distance = (one: HeatCell) => Math.abs(Math.log2(one.upto / from.upto));
  return next?.toSorted((a, b) => distance(a) - distance(b))[0];
}

/** Durations over time: darker cells have more calls, and each leads to them. */
export function LatencyHeatMap({
  insights,
  ws,
  filter,
}: {
  insights: Insights;
  ws: string;
  filter: InsightsFilter;
}) {
  const [asTable, setAsTable] = useState(false);
  const columns = cellsOf(insights.steps);
  const shared = { insights, ws, filter, columns };
  return (
    <Panel
      title="Durations over time"
      note="Calls by step and duration, from the longest to the shortest. A darker cell has more calls."
      aside={
        <Button variant="subtle" size="compact-sm" onClick={() => setAsTable(!asTable)}>
          {asTable ? 'Show as a map' : 'Show as a table'}
        </Button>
      }
      flush={asTable}
    >
      {asTable ? <HeatTable {...shared} /> : <HeatMap {...shared} />}
    </Panel>
  );
}

interface Shared {
  insights: Insights;
  ws: string;
  filter: InsightsFilter;
  columns: HeatCell[][];
}

const sentence = (one: HeatCell) =>
  `${one.calls.toLocaleString()} ${one.calls === 1 ? 'call' : 'calls'} of ${bandName(one.upto)}, ${formatDateTime(one.at)}`;

const keyOf = (one: HeatCell) => `${one.at} ${one.upto}`;

function HeatMap({ insights, ws, filter, columns }: Shared) {
  const { steps, step_seconds: step } = insights;
  const bands = bandsOf(steps);
  const all = columns.flat();
  const most = Math.max(1, ...all.map((one) => one.calls));
  const [focused, setFocused] = useState<string>();
  const [read, setRead] = useState<HeatCell>();
  const links = useRef(new Map<string, HTMLAnchorElement>());
  // One stop of the Tab key; arrows move within.
  const stop = all.find((one) => keyOf(one) === focused) ?? all[0];
  const move = (event: KeyboardEvent, from: HeatCell) => {
    const next = reached(columns, from, event.key);
    if (!next) return;
    event.preventDefault();
    setFocused(keyOf(next));
    links.current.get(keyOf(next))?.focus();
  };
  const named = new Set(labelled(steps.length));
  return (
    <>
      <div className={classes.scroll}>
        <table
          className={classes.map}
          aria-label="Calls by step and duration. Arrow keys move between cells with calls."
        >
          <colgroup>
            <col className={classes.names} />
          </colgroup>
          <tbody>
            {bands.map((upto) => (
              <tr key={upto}>
                <th scope="row">
                  <span aria-hidden>{formatMicros(upto)}</span>
                  <span className="visually-hidden">{bandName(upto)}</span>
                </th>
                {columns.map((cells, place) => {
                  const one = cells.find((cell) => cell.upto === upto);
                  return (
                    <td key={steps[place]?.at}>
                      {one && (
                        <Link
                          ref={(link) => {
                            if (link) links.current.set(keyOf(one), link);
                            else links.current.delete(keyOf(one));
                          }}
                          to="/w/$ws/calls"
                          params={{ ws }}
                          search={behind(one, step, filter)}
                          className={classes.cell}
                          // The root: a few slow calls are seen beside thousands of quick ones.
                          style={variables({ '--heat': `${15 + 85 * Math.sqrt(one.calls / most)}%` })}
                          tabIndex={one === stop ? 0 : -1}
                          aria-label={sentence(one)}
                          onKeyDown={(event) => move(event, one)}
                          onFocus={() => {
                            setFocused(keyOf(one));
                            setRead(one);
                          }}
                          onMouseEnter={() => setRead(one)}
                        />
                      )}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <td />
              {steps.map(({ at }, place) => (
                <th key={at} scope="col" data-last={place === steps.length - 1 || undefined}>
                  <span className={named.has(place) ? classes.time : 'visually-hidden'}>
                    {step >= 86_400 ? formatDate(at) : formatClock(at)}
                  </span>
                </th>
              ))}
            </tr>
          </tfoot>
        </table>
      </div>
      <p className={classes.read} aria-hidden>
        {read ? sentence(read) : 'Point at a cell, or move with the arrow keys. Open one to see its calls.'}
      </p>
    </>
  );
}

/** The same as rows, newest step first. */
function HeatTable({ insights, ws, filter, columns }: Shared) {
  const { shown, more } = useShown(columns.toReversed().flat());
  return (
    <>
      <Table
        label="Durations over time"
        head={
          <>
            <th>From</th>
            <th>Duration</th>
            <th data-align="right">Calls</th>
          </>
        }
      >
        {shown.map((one) => (
          <tr key={keyOf(one)}>
            <td data-wide>
              <span className={cell.main}>{formatDateTime(one.at)}</span>
            </td>
            <td data-label="Duration">{bandName(one.upto)}</td>
            <td data-align="right" data-label="Calls">
              <Link
                to="/w/$ws/calls"
                params={{ ws }}
                search={behind(one, insights.step_seconds, filter)}
                aria-label={sentence(one)}
              >
                {one.calls.toLocaleString()}
              </Link>
            </td>
          </tr>
        ))}
      </Table>
      {more}
    </>
  );
}
