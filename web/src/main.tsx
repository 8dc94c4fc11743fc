import '@fontsource-variable/inter/wght.css';
import './fonts.css';
import './mantine.css';
import '@mantine/notifications/styles.css';
import './theme.gen.css';
import './theme.css';
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { colorSchemeManager } from './color-scheme';
import { SignedOut } from './components/signed-out';
import { queryClient } from './query-client';
import { consoleRouter } from './router';
import { theme } from './theme';

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no #root');

const router = consoleRouter();

createRoot(root).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      colorSchemeManager={colorSchemeManager()}
      // The CSP admits no <style> element: theme.gen.css holds the variables.
      withCssVariables={false}
      withGlobalClasses={false}
    >
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
        <SignedOut />
        <section aria-label="Messages">
          <Notifications position="bottom-right" limit={4} withinPortal={false} />
        </section>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
