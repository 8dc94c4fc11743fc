import { Link } from '@tanstack/react-router';
import type { InsightsFilter, InsightsRow, Period } from '../api/insights';
import { outcomes } from '../outcomes';
import { formatBytes, formatDuration, formatTokens } from '../time';
import { changeOf } from './insights-tiles';
import { TextLink } from './link-button';
import { Panel } from './page';
import { cell, Table, useShown } from './table';

type Dimension = keyof InsightsFilter;

const nameless: Record<Dimension, string> = {
  tool: 'Unnamed',
  server: 'Try page',
  client: 'Unnamed',
  outcome: 'Unknown',
};

function nameOf(dimension: Dimension, row: InsightsRow): string {
  if (dimension === 'outcome' && row.name in outcomes)
    return outcomes[row.name as keyof typeof outcomes].name;
  return row.name || nameless[dimension];
}

/** One dimension of a period: a name narrows the page to it, the number of calls opens them. */
export function InsightsTable({
  title,
  dimension,
  rows,
  ws,
  period,
  filter,
  from,
  to,
}: {
  title: string;
  dimension: Dimension;
  rows: InsightsRow[];
  ws: string;
  period: Period;
  filter: InsightsFilter;
  from: string;
  to: string;
}) {
  const { shown, more } = useShown(rows);
  const millis = (value: number | undefined) => (value === undefined ? '–' : formatDuration(value));
  return (
    <Panel title={title} flush>
      <Table
        label={title}
        head={
          <>
            <th>{title}</th>
            <th data-align="right">Calls</th>
            <th data-align="right">Errors</th>
            <th data-align="right">50 %</th>
            <th data-align="right">95 %</th>
            <th data-align="right">99 %</th>
            <th data-align="right">Answers</th>
          </>
        }
      >
        {shown.map((row) => (
          <tr key={row.name}>
            <td data-wide>
              {row.name === '' ? (
                nameOf(dimension, row)
              ) : (
                <Link
                  className={cell.main}
                  to="/w/$ws/insights"
                  params={{ ws }}
                  search={{ ...filter, [dimension]: row.name, period }}
                >
                  {nameOf(dimension, row)}
                </Link>
              )}
            </td>
            <td data-align="right" data-label="Calls">
              {row.name === '' ? (
                row.calls.toLocaleString()
              ) : (
                <TextLink
                  underline="always"
                  to="/w/$ws/calls"
                  params={{ ws }}
                  search={{ ...filter, [dimension]: row.name, from, to }}
                  aria-label={`${row.calls.toLocaleString()} calls of ${nameOf(dimension, row)}`}
                >
                  {row.calls.toLocaleString()}
                </TextLink>
              )}
              <div className={cell.sub}>{changeOf(row.calls, row.calls_before) ?? 'new'}</div>
            </td>
            <td data-align="right" data-label="Errors">
              {row.errors.toLocaleString()}
            </td>
            <td data-align="right" data-label="50 %">
              {millis(row.p50_ms)}
            </td>
            <td data-align="right" data-label="95 %">
              {millis(row.p95_ms)}
            </td>
            <td data-align="right" data-label="99 %">
              {millis(row.p99_ms)}
            </td>
            <td data-align="right" data-label="Answers">
              {formatBytes(row.bytes_out)}
              <div className={cell.sub}>about {formatTokens(row.tokens_out)} tokens</div>
            </td>
          </tr>
        ))}
      </Table>
      {more}
    </Panel>
  );
}
