import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, RouterProvider } from '@tanstack/react-router';
import { render } from '@testing-library/react';
import { consoleRouter } from '../src/router';
import { theme } from '../src/theme';

/** Opens an address of the console, with the router and the theme that people get. */
export function open(path: string) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const router = consoleRouter(createMemoryHistory({ initialEntries: [path] }));
  return render(
    <MantineProvider theme={theme} withCssVariables={false} withGlobalClasses={false} env="test">
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
        <Notifications />
      </QueryClientProvider>
    </MantineProvider>,
  );
}
