import { IconActivity } from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { callsQuery } from '../../api/workspaces';
import { CallsTable } from '../../components/calls';
import { Empty, Loaded, Page, Panel } from '../../components/page';
import { LoadMore } from '../../components/table';
import { useSession } from '../../session';

export const Route = createFileRoute('/w/$ws/calls')({
  component: CallsPage,
});

function CallsPage() {
  const { workspace } = useSession();
  const calls = useInfiniteQuery(callsQuery(workspace.slug));
  return (
    <Page title="Calls" lede="Tool calls on all servers. Arguments and results are not stored.">
      <Panel flush>
        <Loaded query={calls} lines={8}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            return items.length === 0 ? (
              <Empty icon={<IconActivity size={24} />} title="No calls yet">
                Publish a server and connect a client. Its calls appear here.
              </Empty>
            ) : (
              <>
                <CallsTable calls={items} label="Calls" />
                <LoadMore query={calls} />
              </>
            );
          }}
        </Loaded>
      </Panel>
    </Page>
  );
}
