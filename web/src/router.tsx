import { createRouter, type RouterHistory } from '@tanstack/react-router';
import { Failed, Loading } from './components/page';
import { routeTree } from './routes.gen';

/** The router of one visit. Tests pass their own history, so that they stay independent. */
export function consoleRouter(history?: RouterHistory) {
  return createRouter({
    history,
    routeTree,
    scrollRestoration: true,
    defaultPreload: 'intent',
    defaultPendingComponent: () => <Loading />,
    defaultErrorComponent: ({ error, reset }) => <Failed error={error} retry={reset} />,
  });
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof consoleRouter>;
  }
}
