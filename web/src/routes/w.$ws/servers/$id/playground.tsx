import { Alert, Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { useState } from 'react';
import { type ServerDetail, serverQuery } from '../../../../api/servers';
import { handedOver } from '../../../../captured-call';
import { ServerStatus } from '../../../../components/badges';
import { Loaded, Page } from '../../../../components/page';
import { text } from '../../../../search';
import { useMay, useSession } from '../../../../session';
import { ConnectPanel } from './-playground/connect';
import { Prompts } from './-playground/prompts';
import { Questions } from './-playground/questions';
import { ReplayGone, ReplayNote } from './-playground/replay';
import { Resources } from './-playground/resources';
import { SaveDialog } from './-playground/save-dialog';
import { Saved } from './-playground/saved';
import { ClientPanel, Notifications } from './-playground/settings';
import { Tasks, useTasks } from './-playground/tasks';
import { TimelinePanel } from './-playground/timeline-panel';
import { type Call, Tools } from './-playground/tools';
import { usePlayground } from './-playground/use-playground';

export const Route = createFileRoute('/w/$ws/servers/$id/playground')({
  component: PlaygroundPage,
  validateSearch: (search: Record<string, unknown>): { call?: string } => ({ call: text(search.call) }),
});

function PlaygroundPage() {
  const { workspace } = useSession();
  const { id } = Route.useParams();
  const server = useQuery(serverQuery(workspace.slug, id));
  if (!server.data) {
    return (
      <Page
        title="Playground"
        back={{ label: 'Servers', to: '/w/$ws/servers', params: { ws: workspace.slug } }}
      >
        <Loaded query={server}>{() => null}</Loaded>
      </Page>
    );
  }
  return <PlaygroundView key={server.data.id} server={server.data} />;
}

function PlaygroundView({ server }: { server: ServerDetail }) {
  const { workspace } = useSession();
  const calls = useMay('call_tools');
  const published = server.status === 'published';
  const play = usePlayground(server.url);
  const { connection, offer, tasks, notices } = play;
  const [tab, setTab] = useState<string | null>('tools');
  const edits = useMay('edit_registry');
  const [saving, setSaving] = useState<Call>();
  const onSave = edits ? setSaving : undefined;
  const { call } = Route.useSearch();
  const captured = handedOver(call);
  useTasks(play, connection);
  return (
    <Page
      title={`Playground: ${server.name}`}
      help="playground"
      lede="Use this server as an AI client does, and see every message."
      back={{ label: server.name, to: '/w/$ws/servers/$id', params: { ws: workspace.slug, id: server.id } }}
      beside={<ServerStatus status={server.status} />}
    >
      {!published && (
        <Alert color="yellow" data-tone="yellow">
          {server.status === 'paused' ? 'This server is paused.' : 'This server is a draft.'} Publish it to
          connect.
        </Alert>
      )}
      {!calls && (
        <Alert color="yellow" data-tone="yellow">
          Your role can view tools but not call them. You can connect as another person.
        </Alert>
      )}
      {captured && <ReplayNote call={captured} />}
      {call && !captured && <ReplayGone call={call} />}
      <ConnectPanel play={play} published={published} />
      <Questions questions={play.questions} />
      {connection && (
        <Tabs value={tab} onChange={setTab}>
          <Tabs.List mb="lg">
            <Tabs.Tab value="tools">Tools {offer.tools.length}</Tabs.Tab>
            <Tabs.Tab value="prompts">Prompts {offer.prompts.length}</Tabs.Tab>
            <Tabs.Tab value="resources">Resources {offer.resources.length + offer.templates.length}</Tabs.Tab>
            <Tabs.Tab value="saved">Saved calls</Tabs.Tab>
            <Tabs.Tab value="tasks">Tasks {tasks.length}</Tabs.Tab>
            <Tabs.Tab value="notifications">Notifications {notices.length}</Tabs.Tab>
            <Tabs.Tab value="client">Client</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="tools">
            <Tools play={play} connection={connection} captured={captured} onSave={onSave} />
          </Tabs.Panel>
          <Tabs.Panel value="prompts">
            <Prompts play={play} connection={connection} onSave={onSave} />
          </Tabs.Panel>
          <Tabs.Panel value="resources">
            <Resources play={play} connection={connection} onSave={onSave} />
          </Tabs.Panel>
          <Tabs.Panel value="saved">
            <Saved play={play} connection={connection} server={server} />
          </Tabs.Panel>
          <Tabs.Panel value="tasks">
            <Tasks play={play} connection={connection} />
          </Tabs.Panel>
          <Tabs.Panel value="notifications">
            <Notifications play={play} />
          </Tabs.Panel>
          <Tabs.Panel value="client">
            <ClientPanel play={play} />
          </Tabs.Panel>
        </Tabs>
      )}
      {!connection && <ClientPanel play={play} />}
      {saving && <SaveDialog server={server.id} call={saving} onClose={() => setSaving(undefined)} />}
      <TimelinePanel play={play} />
    </Page>
  );
}
