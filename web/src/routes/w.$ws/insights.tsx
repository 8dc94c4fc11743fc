import { Button, Pill, SegmentedControl } from '@mantine/core';
import { IconChartBar } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import {
  errorCausesQuery,
  type Insights,
  type InsightsFilter,
  insightsQuery,
  type Period,
  peopleUseQuery,
  periods,
} from '../../api/insights';
import { ErrorsByCause } from '../../components/error-causes';
import { DurationsChart, StepsChart } from '../../components/insights-charts';
import { InsightsTable } from '../../components/insights-table';
import { InsightsTiles } from '../../components/insights-tiles';
import { LatencyHeatMap } from '../../components/latency-heat-map';
import { Empty, Loaded, Page, Panel } from '../../components/page';
import { CallsByPerson } from '../../components/people-use';
import { TableBar } from '../../components/table';
import { text } from '../../search';
import { useSession } from '../../session';

type Search = InsightsFilter & { period?: Period };

const names = ['tool', 'server', 'client', 'outcome'] as const;

const isPeriod = (value: unknown): value is Period => typeof value === 'string' && value in periods;

export const Route = createFileRoute('/w/$ws/insights')({
  component: InsightsPage,
  validateSearch: (search: Record<string, unknown>): Search => {
    const read: Search = {};
    for (const name of names) {
      const value = text(search[name]);
      if (value) read[name] = value;
    }
    if (isPeriod(search.period)) read.period = search.period;
    return read;
  },
});

function InsightsPage() {
  const { workspace } = useSession();
  const { period = '24h', ...filter } = Route.useSearch();
  const navigate = Route.useNavigate();
  const insights = useQuery(insightsQuery(workspace.slug, period, filter));
  const go = (search: Search) => void navigate({ search, replace: true, resetScroll: false });
  const narrowed = names.filter((name) => filter[name]);
  return (
    <Page title="Insights" help="console#insights" lede="All calls of a period, with the period before.">
      <TableBar>
        <SegmentedControl
          aria-label="Period"
          data={Object.entries(periods).map(([value]) => ({ value, label: value }))}
          value={period}
          onChange={(next) => isPeriod(next) && go({ ...filter, period: next })}
        />
        {narrowed.length > 0 && (
          <Pill.Group>
            {narrowed.map((name) => (
              <Pill
                key={name}
                withRemoveButton
                onRemove={() => go({ ...filter, [name]: undefined, period })}
                removeButtonProps={{
                  'aria-label': `Remove the filter ${name}`,
                  tabIndex: 0,
                  'aria-hidden': false,
                }}
              >
                {name}: {filter[name]}
              </Pill>
            ))}
            <Button variant="subtle" size="compact-xs" onClick={() => go({ period })}>
              Clear all
            </Button>
          </Pill.Group>
        )}
      </TableBar>
      <Loaded query={insights} lines={10}>
        {(data) => <Shown insights={data} period={period} filter={filter} />}
      </Loaded>
    </Page>
  );
}

function Shown({ insights, period, filter }: { insights: Insights; period: Period; filter: InsightsFilter }) {
  const { workspace } = useSession();
  if (insights.total.calls === 0 && insights.before.calls === 0) {
    return (
      <Panel>
        <Empty icon={<IconChartBar size={24} />} title="No calls in this period">
          Choose a longer period, or connect a client and call a tool.
        </Empty>
      </Panel>
    );
  }
  const common = { ws: workspace.slug, period, filter, from: insights.from, to: insights.to };
  return (
    <>
      <InsightsTiles insights={insights} />
      <Panel title="Calls">
        <StepsChart insights={insights} />
      </Panel>
      <Panel
        title="Duration"
        note="Milliseconds of the slowest 5 % and more: the 95th percentile of each step."
      >
        <DurationsChart insights={insights} />
      </Panel>
      <LatencyHeatMap insights={insights} ws={workspace.slug} filter={filter} />
      <Errors ws={workspace.slug} period={period} filter={filter} />
      <InsightsTable {...common} title="Tools" dimension="tool" rows={insights.tools} />
      <InsightsTable {...common} title="Servers" dimension="server" rows={insights.servers} />
      <InsightsTable {...common} title="Clients" dimension="client" rows={insights.clients} />
      <InsightsTable {...common} title="Outcomes" dimension="outcome" rows={insights.outcomes} />
      <People ws={workspace.slug} period={period} filter={filter} from={insights.from} to={insights.to} />
    </>
  );
}

interface Asked {
  ws: string;
  period: Period;
  filter: InsightsFilter;
}

function Errors({ ws, period, filter }: Asked) {
  const causes = useQuery(errorCausesQuery(ws, period, filter));
  return <ErrorsByCause causes={causes} ws={ws} client={filter.client} />;
}

function People({ ws, period, filter, from, to }: Asked & { from: string; to: string }) {
  const people = useQuery(peopleUseQuery(ws, period, filter));
  return <CallsByPerson people={people} ws={ws} filter={filter} from={from} to={to} />;
}
