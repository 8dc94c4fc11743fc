import { IconActivity } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { type Limits, type LimitsChange, limitsQuery, useChangeLimits } from '../../api/limits';
import { ChartFrame, Legend, limitFits } from '../../components/chart';
import { amount, LimitsForm, limitTexts } from '../../components/limits-form';
import { Empty, Loaded, Page, Panel } from '../../components/page';
import { toastUndo } from '../../components/toast';
import { UsageChart } from '../../components/usage-chart';
import { useMay, useSession } from '../../session';

export const Route = createFileRoute('/w/$ws/limits')({
  component: LimitsPage,
});

function LimitsPage() {
  const { workspace } = useSession();
  const query = useQuery(limitsQuery(workspace.slug));
  return (
    <Page
      title="Limits"
      help="console#limits"
      lede="What this workspace can use and what it used. Calls over a limit are refused, and the client is told when to retry."
    >
      <Loaded query={query} lines={8}>
        {(data) => (
          <>
            <Usage limits={data} />
            <Change limits={data} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

const hoursOf = ({ usage }: Limits) => Math.round((usage.buckets.length * usage.bucket_minutes) / 60);

function Usage({ limits }: { limits: Limits }) {
  const { usage } = limits;
  const hours = hoursOf(limits);
  const limit = limits.limits.find((one) => one.name === 'tenant_calls')?.value ?? null;
  const busiest = Math.max(0, ...usage.buckets.map((one) => one.busiest_minute));
  const refused = usage.buckets.reduce((sum, one) => sum + one.refused, 0);
  const drawn = limit === null || limitFits(busiest, limit);
  const still = refused === 0 && usage.buckets.every((one) => one.calls === 0);
  return (
    <Panel
      title={`Calls a minute, last ${hours} hours`}
      note={
        still
          ? undefined
          : `Each bar is the busiest minute of ${usage.bucket_minutes}.${drawn ? '' : ` Limit (${limit.toLocaleString()}) not shown at this scale.`}`
      }
      aside={
        still ? undefined : (
          <Legend
            items={[
              { name: 'Busiest minute', value: busiest, color: 'var(--outcome-succeeded)' },
              { name: 'Refused', value: refused, color: 'var(--outcome-failed)', mark: 'triangle' },
              ...(limit === null
                ? []
                : [{ name: 'Limit', value: limit, color: 'var(--chart-limit)', mark: 'line' as const }]),
            ]}
          />
        )
      }
    >
      {still ? (
        <Empty icon={<IconActivity size={24} />} title={`No calls in the last ${hours} hours`}>
          Calls from AI clients appear here within a minute.
        </Empty>
      ) : (
        <ChartFrame>
          <UsageChart usage={usage} limit={limit} />
        </ChartFrame>
      )}
    </Panel>
  );
}

function Change({ limits }: { limits: Limits }) {
  const { workspace } = useSession();
  const administers = useMay('administer');
  const change = useChangeLimits(workspace.slug);

  async function apply(wanted: LimitsChange) {
    const before = limits.limits.filter(({ name }) => name in wanted);
    const after = await change.mutateAsync(wanted);
    const changed = after.limits.filter(({ name }) => name in wanted);
    const [one] = changed;
    toastUndo(
      one && changed.length === 1
        ? `${limitTexts[one.name].name}: ${amount(one.value, one.unit)} from now on.`
        : `${changed.length} limits changed.`,
      () => change.mutateAsync(Object.fromEntries(before.map(({ name, own }) => [name, own]))),
      'Change undone.',
    );
  }

  return (
    <Panel
      title="Limits on calls"
      note={
        administers
          ? 'Changes apply immediately; running calls finish.'
          : 'Only an owner or admin can change these.'
      }
      flush
    >
      <LimitsForm
        limits={limits.limits}
        hours={hoursOf(limits)}
        readOnly={!administers}
        pending={change.isPending}
        error={change.error}
        onChange={apply}
      />
    </Panel>
  );
}
