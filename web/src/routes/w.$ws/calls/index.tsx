import { Button, Menu, Switch } from '@mantine/core';
import { IconActivity, IconDownload } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { callsQuery } from '../../../api/calls';
import { ApiError } from '../../../api/http';
import { type CallLog, membersQuery } from '../../../api/workspaces';
import { asSearch, type CallFilter, readFilter } from '../../../call-filter';
import { CallFilterBar } from '../../../components/call-filter-bar';
import { CallsTable } from '../../../components/calls';
import { LinkButton } from '../../../components/link-button';
import { Empty, Loaded, Page, Panel } from '../../../components/page';
import { LoadMore, TableBar } from '../../../components/table';
import { toastFailed } from '../../../components/toast';
import { useSession } from '../../../session';
import { CallViews } from './-views';

export const Route = createFileRoute('/w/$ws/calls/')({
  component: CallsPage,
  validateSearch: readFilter,
});

/** Calls that the service sends while `on`; `opened` when it begins to, and after each pause; `refused` when it ends. */
function useLive(path: string, on: boolean, opened: () => void, refused: () => void): CallLog[] {
  const [calls, setCalls] = useState<CallLog[]>([]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `opened` reads the list again; both functions are new at each render
  useEffect(() => {
    setCalls([]);
    if (!on) return undefined;
    const events = new EventSource(path);
    events.addEventListener('open', opened);
    events.addEventListener('calls', (event) => {
      const fresh = JSON.parse(event.data) as CallLog[];
      setCalls((before) => [...fresh, ...before].slice(0, 500));
    });
    // A browser opens a broken stream again by itself, and not one that was refused.
    events.addEventListener('error', () => {
      if (events.readyState === EventSource.CLOSED) refused();
    });
    return () => events.close();
  }, [path, on]);
  return calls;
}

function nothing(filtered: boolean, more: boolean): string {
  if (more) return 'None of the newest calls fits these filters. Older ones are not searched yet.';
  if (filtered) return 'No call of the kept days fits these filters.';
  return 'Publish a server and connect a client. Its calls appear here.';
}

/** The newest first, each once: the list and what came since. */
function merged(live: CallLog[], listed: CallLog[]): CallLog[] {
  const known = new Map([...live, ...listed].map((call) => [call.id, call]));
  return [...known.values()].sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

/** Names of the members by id, if a filter has an id. */
function usePeople(ws: string, user: string | undefined): Map<string, string> {
  const members = useQuery({ ...membersQuery(ws), enabled: user?.startsWith('usr_') ?? false });
  return new Map(members.data?.items.map((one) => [one.user_id, one.display_name || one.email]));
}

function CallsPage() {
  const { workspace } = useSession();
  const filter: CallFilter = Route.useSearch();
  const navigate = Route.useNavigate();
  const [live, setLive] = useState(false);
  const calls = useInfiniteQuery(callsQuery(workspace.slug, filter));
  const base = `/api/v1/workspaces/${workspace.slug}/calls`;
  const refused = async () => {
    setLive(false);
    const { error } = await calls.refetch();
    // The page says by itself that the session ended.
    if (error instanceof ApiError && error.status === 401) return;
    toastFailed(new Error('The live view was refused. Close other live views, then switch it on again.'));
  };
  const again = () => void calls.refetch();
  const fresh = useLive(`${base}/live?${asSearch(filter)}`, live, again, () => void refused());
  const people = usePeople(workspace.slug, filter.user);
  const filtered = Object.keys(filter).length > 0;
  const change = (next: CallFilter) => void navigate({ search: next, replace: true, resetScroll: false });
  return (
    <Page
      title="Calls"
      help="console#calls"
      lede="Tool calls on all servers. Arguments and answers are kept where a server’s settings say so."
      actions={
        <>
          <CallViews filter={filter} onOpen={change} />
          <Menu position="bottom-end">
            <Menu.Target>
              <Button variant="default" leftSection={<IconDownload size={17} />}>
                Export
              </Button>
            </Menu.Target>
            <Menu.Dropdown>
              {(['csv', 'jsonl'] as const).map((format) => (
                <Menu.Item
                  key={format}
                  component="a"
                  href={`${base}/export?${asSearch(filter, { format })}`}
                  download
                >
                  {format === 'csv' ? 'CSV' : 'JSON Lines'}
                </Menu.Item>
              ))}
            </Menu.Dropdown>
          </Menu>
        </>
      }
    >
      <Panel flush>
        <TableBar>
          <CallFilterBar filter={filter} people={people} onChange={change} />
          <Switch
            label="Live"
            description="New calls as they end."
            checked={live}
            onChange={(event) => setLive(event.currentTarget.checked)}
          />
        </TableBar>
        <Loaded query={calls} lines={8}>
          {(data) => {
            const items = merged(
              fresh,
              data.pages.flatMap((page) => page.items),
            );
            if (items.length === 0) {
              return (
                <>
                  <Empty
                    icon={<IconActivity size={24} />}
                    title={filtered ? 'No matches' : 'No calls yet'}
                    actions={
                      filtered ? (
                        <Button variant="default" onClick={() => change({})}>
                          Clear filters
                        </Button>
                      ) : (
                        <LinkButton to="/w/$ws/servers" params={{ ws: workspace.slug }} variant="default">
                          Servers
                        </LinkButton>
                      )
                    }
                  >
                    {nothing(filtered, calls.hasNextPage)}
                  </Empty>
                  <LoadMore query={calls} label="Search older calls" />
                </>
              );
            }
            return (
              <>
                <CallsTable calls={items} label="Calls" ws={workspace.slug} />
                <LoadMore query={calls} />
              </>
            );
          }}
        </Loaded>
      </Panel>
    </Page>
  );
}
