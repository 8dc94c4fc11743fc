import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { type CallDetail, callQuery } from '../../../api/calls';
import type { CallLog } from '../../../api/workspaces';
import { Outcome } from '../../../components/badges';
import { CopyLine } from '../../../components/copy';
import { Facts, Loaded, Page, Panel } from '../../../components/page';
import { useSession } from '../../../session';
import { formatDateTime, formatDuration } from '../../../time';
import { CallContent } from './-content';

export const Route = createFileRoute('/w/$ws/calls/$id')({
  component: CallPage,
});

const callers: Record<string, string> = {
  person: 'Person',
  service: 'Service account',
  api_key: 'API key',
  console: 'Try page',
  unknown: 'Not recorded',
};

const eras: Record<string, string> = {
  session: 'Session',
  stateless: 'Without a session',
  console: 'Console',
  unknown: 'Not recorded',
};

const bytes = new Intl.NumberFormat(undefined, { style: 'unit', unit: 'byte', unitDisplay: 'narrow' });

/** Pairs whose value is known. */
const known = (items: [string, ReactNode][]) => items.filter(([, value]) => value !== undefined);

const took = (micros: number) =>
  micros > 0 && micros < 1000 ? `${micros} µs` : formatDuration(micros / 1000);

function CallPage() {
  const { id } = Route.useParams();
  const { workspace } = useSession();
  const call = useQuery(callQuery(workspace.slug, id));
  return (
    <Page
      title={call.data?.tool_name ?? 'Call'}
      documentTitle="Call"
      lede="One call: how it ended, who made it, and where its time went."
      back={{ label: 'Calls', to: '/w/$ws/calls', params: { ws: workspace.slug } }}
    >
      <Loaded query={call} lines={8}>
        {(one) => <Detail call={one} />}
      </Loaded>
    </Page>
  );
}

function Detail({ call }: { call: CallDetail }) {
  const { timing, status } = call;
  const ended: Pick<CallLog, 'outcome' | 'status'> = {
    outcome: call.outcome as CallLog['outcome'],
    ...(status !== undefined && { status }),
  };
  return (
    <>
      <Panel title="Outcome">
        <Facts
          items={known([
            ['Outcome', <Outcome key="outcome" call={ended} />],
            ['Reason', call.error],
            ['When', formatDateTime(call.at)],
            ['Server', call.server_slug],
            ['Call ID', <CopyLine key="id" text={call.id} label="Call ID" />],
            ['Stands for', call.weight > 1 ? `${call.weight} calls, as a sample` : undefined],
          ])}
        />
      </Panel>
      <Panel title="Caller">
        <Facts
          items={known([
            ['Kind', callers[call.caller] ?? call.caller],
            ['User', call.user_name ?? call.user_id],
            ['Client', [call.client_name, call.client_version].filter(Boolean).join(' ') || undefined],
            ['OAuth client', call.client_id],
            ['MCP revision', call.revision],
            ['Era', eras[call.era] ?? call.era],
            ['Session', call.session],
          ])}
        />
      </Panel>
      <Panel title="Time and size">
        <Facts
          items={known([
            ['Before the work', took(timing.wait_us)],
            ['API or MCP server', took(timing.backend_us)],
            ['Portolan', took(timing.own_us)],
            ['Work in all', took(timing.took_us)],
            ['Arguments', bytes.format(call.bytes_in)],
            ['Answer', bytes.format(call.bytes_out)],
            ['Trace', call.trace_id],
            ['Node', call.node],
          ])}
        />
      </Panel>
      <CallContent call={call} />
    </>
  );
}
