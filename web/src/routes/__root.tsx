import { createRootRoute, Outlet } from '@tanstack/react-router';
import { NotFoundPage } from '../components/not-found';
import { PlainShell } from '../components/shell';

export const Route = createRootRoute({
  component: Outlet,
  notFoundComponent: OutsideWorkspaces,
});

function OutsideWorkspaces() {
  return (
    <PlainShell>
      <NotFoundPage />
    </PlainShell>
  );
}
