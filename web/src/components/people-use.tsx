import type { UseQueryResult } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { InsightsFilter, PeopleUse, PersonUse } from '../api/insights';
import type { CallFilter } from '../call-filter';
import { formatDateTime, formatTokens } from '../time';
import { Ago } from './ago';
import { Loaded, Panel } from './page';
import { cell, Table, useShown } from './table';

const kinds: Record<string, string> = {
  service: 'Service accounts',
  api_key: 'API keys of service accounts',
  console: 'Try page',
};

/** The time that was summed. */
interface Span {
  from: string;
  to: string;
}

/** The filter of the calls of a person. */
function behindPerson(
  user: string,
  { tool, server, client, outcome }: InsightsFilter,
  { from, to }: Span,
): CallFilter {
  return {
    ...(tool && { tool }),
    ...(server && { server }),
    ...(client && { client }),
    user,
    ...(outcome && { outcome }),
    from,
    to,
  };
}

/** Calls of each person, from the log of calls. */
export function CallsByPerson({
  people,
  ws,
  filter,
  from,
  to,
}: {
  people: UseQueryResult<PeopleUse>;
  ws: string;
  filter: InsightsFilter;
} & Span) {
  const since = people.data?.since;
  const read = since
    ? `Calls since ${formatDateTime(since)}: the log has too many older ones.`
    : 'From the log of calls, which has 30 days.';
  return (
    <Panel title="People" note={`${read} A name opens the calls of this person.`} flush>
      <Loaded query={people} lines={4}>
        {({ items }) => <People items={items} ws={ws} filter={filter} span={{ from: since ?? from, to }} />}
      </Loaded>
    </Panel>
  );
}

function People({
  items,
  ws,
  filter,
  span,
}: {
  items: PersonUse[];
  ws: string;
  filter: InsightsFilter;
  span: Span;
}) {
  const { shown, more } = useShown(items);
  const nameOf = (person: PersonUse) =>
    person.user_id
      ? (person.user_name ?? 'A former member')
      : (kinds[person.caller ?? ''] ?? 'Unknown callers');
  return (
    <>
      <Table
        label="People"
        head={
          <>
            <th>Person</th>
            <th data-align="right">Calls</th>
            <th data-align="right">Errors</th>
            <th data-align="right">Tokens, about</th>
            <th data-align="right">Last call</th>
          </>
        }
      >
        {shown.map((person) => (
          <tr key={person.user_id ?? person.caller}>
            <td data-wide>
              {person.user_id ? (
                <Link
                  className={cell.main}
                  to="/w/$ws/calls"
                  params={{ ws }}
                  search={behindPerson(person.user_id, filter, span)}
                >
                  {nameOf(person)}
                </Link>
              ) : (
                nameOf(person)
              )}
            </td>
            <td data-align="right" data-label="Calls">
              {person.calls.toLocaleString()}
            </td>
            <td data-align="right" data-label="Errors">
              {person.errors.toLocaleString()}
            </td>
            <td data-align="right" data-label="Tokens, about">
              {formatTokens(person.tokens_out)}
            </td>
            <td data-align="right" data-label="Last call">
              <Ago at={person.last_at} />
            </td>
          </tr>
        ))}
      </Table>
      {more}
    </>
  );
}
