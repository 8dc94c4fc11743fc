import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { render } from '@testing-library/react';
import type { ReactNode } from 'react';
import { SignedOut } from '../src/components/signed-out';
import { consoleRouter } from '../src/router';
import { theme } from '../src/theme';

/** Opens an address of the console, with the router and the theme that people get. */
export function open(path: string) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const router = consoleRouter(createMemoryHistory({ initialEntries: [path] }));
  const page = render(
    <MantineProvider theme={theme} withCssVariables={false} withGlobalClasses={false} env="test">
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
        <SignedOut />
        <Notifications />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return { ...page, router };
}

/** A part of a page alone, with a router around it that knows no other page. */
export function alone(element: ReactNode) {
  const router = createRouter({
    routeTree: createRootRoute({ component: () => element }),
    history: createMemoryHistory(),
  });
  return render(
    <MantineProvider theme={theme} withCssVariables={false} withGlobalClasses={false} env="test">
      <RouterProvider router={router as never} />
    </MantineProvider>,
  );
}
