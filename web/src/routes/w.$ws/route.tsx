import { IconLock } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, Outlet } from '@tanstack/react-router';
import { lazy, Suspense, useEffect } from 'react';
import { meQuery } from '../../api/me';
import { LinkButton } from '../../components/link-button';
import { NotFoundPage } from '../../components/not-found';
import { Empty, Failed, Loading } from '../../components/page';
import { PlainShell, Shell } from '../../components/shell';
import { rememberWorkspace, SessionContext } from '../../session';
import { useOverlay } from '../../shortcuts';

const WorkspaceOverlay = lazy(() => import('./-palette'));

export const Route = createFileRoute('/w/$ws')({
  component: WorkspaceLayout,
  notFoundComponent: NotFoundPage,
});

/** Finds the workspace of the address among the person's own, and frames its pages. */
function WorkspaceLayout() {
  const { ws } = Route.useParams();
  const [overlay, setOverlay] = useOverlay();
  const me = useQuery(meQuery);
  const workspace = me.data?.workspaces.find((one) => one.slug === ws);
  useEffect(() => {
    if (workspace) rememberWorkspace(workspace.slug);
  }, [workspace]);
  useEffect(() => {
    if (me.data && !workspace) document.title = 'No such workspace · Portolan';
  }, [me.data, workspace]);
  if (me.error && !me.data) {
    return (
      <PlainShell>
        <Failed error={me.error} retry={() => void me.refetch()} />
      </PlainShell>
    );
  }
  if (!me.data) return <Loading lines={6} />;
  if (!workspace) {
    return (
      <PlainShell me={me.data}>
        <Empty
          page
          icon={<IconLock size={24} />}
          title="No such workspace"
          actions={
            <LinkButton to="/" variant="default">
              Go to your workspace
            </LinkButton>
          }
        >
          You are signed in as {me.data.user.email}. The workspace “{ws}” doesn’t exist, or this account is
          not a member of it.
        </Empty>
      </PlainShell>
    );
  }
  return (
    <SessionContext value={{ me: me.data, workspace }}>
      <Shell onSearch={() => setOverlay('search')}>
        <Outlet key={workspace.id} />
        {overlay && (
          <Suspense>
            <WorkspaceOverlay overlay={overlay} onClose={() => setOverlay(undefined)} />
          </Suspense>
        )}
      </Shell>
    </SessionContext>
  );
}
