import { IconActivity, IconCheck } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { serversQuery } from '../../api/servers';
import { sourcesQuery } from '../../api/sources';
import { type Overview, overviewQuery } from '../../api/workspaces';
import { CallsTable } from '../../components/calls';
import { CallsChart } from '../../components/calls-chart';
import { ChartFrame, Legend } from '../../components/chart';
import { RefusedCredential } from '../../components/credential-state';
import { LinkButton, TextLink } from '../../components/link-button';
import { Empty, Loaded, Page, Panel } from '../../components/page';
import { counted } from '../../outcomes';
import { useMay, useSession } from '../../session';
import classes from './overview.module.css';

export const Route = createFileRoute('/w/$ws/')({
  component: OverviewPage,
});

function OverviewPage() {
  const { workspace } = useSession();
  const overview = useQuery(overviewQuery(workspace.slug));
  return (
    <Page title="Overview" documentTitle={`Overview · ${workspace.name}`}>
      <Loaded query={overview} lines={8}>
        {(data) => <Chart overview={data} />}
      </Loaded>
    </Page>
  );
}

function Chart({ overview }: { overview: Overview }) {
  const { workspace } = useSession();
  const params = { ws: workspace.slug };
  const { calls_24h: calls, setup } = overview;
  const ready = setup.has_source && setup.has_credential && setup.has_server && setup.has_call;
  return (
    <>
      {overview.refused_credentials.map((refused) => (
        <RefusedCredential key={refused.source_id} ws={workspace.slug} refused={refused} />
      ))}
      {!ready && <Setup setup={setup} />}
      <div className={classes.numbers}>
        <Link className={classes.number} to="/w/$ws/sources" params={params}>
          <span className={classes.value}>{overview.sources}</span>
          <span className={classes.name}>{overview.sources === 1 ? 'Source' : 'Sources'}</span>
        </Link>
        <Link className={classes.number} to="/w/$ws/tools" params={params}>
          <span className={classes.value}>{overview.tools_enabled}</span>
          <span className={classes.name}>Tools enabled</span>
        </Link>
        <Link className={classes.number} to="/w/$ws/servers" params={params}>
          <span className={classes.value}>{overview.servers_published}</span>
          <span className={classes.name}>Servers published</span>
        </Link>
        <Link className={classes.number} to="/w/$ws/calls" params={params}>
          <span className={classes.value}>{calls.total.toLocaleString()}</span>
          <span className={classes.name}>Calls in 24 hours</span>
        </Link>
      </div>
      <Panel
        title="Calls, last 24 hours"
        aside={<Legend items={counted({ ...calls, calls: calls.total })} />}
      >
        {calls.total === 0 ? (
          <Empty icon={<IconActivity size={24} />} title="No calls yet">
            Calls from AI clients appear here within seconds.
          </Empty>
        ) : (
          <ChartFrame>
            <CallsChart hours={calls.by_hour} />
          </ChartFrame>
        )}
      </Panel>
      {overview.recent_calls.length > 0 && (
        <Panel
          title="Recent calls"
          flush
          aside={
            <TextLink to="/w/$ws/calls" params={params}>
              All calls
            </TextLink>
          }
        >
          <CallsTable calls={overview.recent_calls} label="Recent calls" ws={workspace.slug} />
        </Panel>
      )}
    </>
  );
}

function Setup({ setup }: { setup: Overview['setup'] }) {
  const { workspace } = useSession();
  const edits = useMay('edit_registry');
  const params = { ws: workspace.slug };
  const sources = useQuery(sourcesQuery(workspace.slug));
  const servers = useQuery(serversQuery(workspace.slug));
  const source = sources.data?.items.find((one) => !one.credential && !one.sign_in) ?? sources.data?.items[0];
  const server = servers.data?.items[0];
  const steps: { done: boolean; title: string; text: string; action: ReactNode }[] = [
    {
      done: setup.has_source,
      title: 'Import an API',
      text: 'Turn an OpenAPI document into tools: paste it, upload it, or enter its URL.',
      action: (
        <LinkButton to="/w/$ws/sources/import" params={params}>
          Import an API
        </LinkButton>
      ),
    },
    {
      done: setup.has_credential,
      title: 'Set the credential',
      text: 'Portolan calls the API with it. It is encrypted, and clients never see it.',
      action: source ? (
        <LinkButton
          to="/w/$ws/sources/$id"
          params={{ ...params, id: source.id }}
          search={{ tab: 'credential' }}
        >
          Set the credential
        </LinkButton>
      ) : null,
    },
    {
      done: setup.has_server,
      title: 'Publish a server',
      text: 'Select the tools for AI clients. They get one URL.',
      action: (
        <LinkButton to="/w/$ws/servers/new" params={params}>
          Publish a server
        </LinkButton>
      ),
    },
    {
      done: setup.has_call,
      title: 'Make the first call',
      text: 'Connect Claude, ChatGPT, Cursor or VS Code and ask a question.',
      action: server ? (
        <LinkButton to="/w/$ws/servers/$id" params={{ ...params, id: server.id }} search={{ tab: 'connect' }}>
          Connect a client
        </LinkButton>
      ) : null,
    },
  ];
  const current = steps.findIndex((step) => !step.done);
  const done = steps.filter((step) => step.done).length;
  return (
    <Panel title="Get started" aside={<span className={classes.name}>{done} of 4 done</span>}>
      <ol className={classes.steps}>
        {steps.map((step, index) => (
          <li
            key={step.title}
            className={classes.step}
            data-done={step.done || undefined}
            data-current={index === current || undefined}
            aria-current={index === current ? 'step' : undefined}
          >
            <span className={classes.mark} aria-hidden>
              {step.done ? <IconCheck size={18} /> : index + 1}
            </span>
            <div>
              <div className={classes.stepTitle}>
                {step.title}
                {step.done && <span className="visually-hidden"> (done)</span>}
              </div>
              {!step.done && <div className={classes.stepText}>{step.text}</div>}
            </div>
            {index === current && edits && <div className={classes.stepAction}>{step.action}</div>}
          </li>
        ))}
      </ol>
    </Panel>
  );
}
