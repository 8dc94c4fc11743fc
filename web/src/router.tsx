import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  type RouterHistory,
} from '@tanstack/react-router';
import { NotFoundPage } from './components/not-found';
import { Failed, Loading } from './components/page';
import { PlainShell } from './components/shell';
import { HomePage } from './routes/index';
import { WorkspaceLayout } from './routes/w.$ws/route';

// A search parameter that looks like a number arrives as one.
const text = (value: unknown) =>
  typeof value === 'number' ? String(value) : typeof value === 'string' && value !== '' ? value : undefined;

/** The search parameters that filter a list of tools. */
const narrowed = (search: Record<string, unknown>): { q?: string; show?: string } => ({
  q: text(search.q),
  show: text(search.show),
});

const root = createRootRoute({ component: Outlet, notFoundComponent: Astray });

/** An address outside of every workspace. */
function Astray() {
  return (
    <PlainShell>
      <NotFoundPage />
    </PlainShell>
  );
}

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: HomePage,
  validateSearch: (search: Record<string, unknown>): { create?: boolean } =>
    search.create ? { create: true } : {},
});

const workspace = createRoute({
  getParentRoute: () => root,
  path: '/w/$ws',
  component: WorkspaceLayout,
  notFoundComponent: NotFoundPage,
});

const under = <const Path extends string>(path: Path) => ({ getParentRoute: () => workspace, path });

const overview = createRoute({
  ...under('/'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/index'), 'OverviewPage'),
});
const sources = createRoute({
  ...under('/sources'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/sources/index'), 'SourcesPage'),
});
const importWizard = createRoute({
  ...under('/sources/import'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/sources/import'), 'ImportPage'),
  validateSearch: (search: Record<string, unknown>): { step?: string } => ({ step: text(search.step) }),
});
const newHttpSource = createRoute({
  ...under('/sources/new'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/sources/new'), 'NewHttpSourcePage'),
});
const newAttachment = createRoute({
  ...under('/sources/attach'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/sources/attach'), 'NewAttachmentPage'),
});
const newUpstream = createRoute({
  ...under('/sources/upstream'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/sources/upstream'), 'NewUpstreamPage'),
});
const source = createRoute({
  ...under('/sources/$id'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/sources/$id/index'), 'SourcePage'),
  validateSearch: (search: Record<string, unknown>): { tab?: string; q?: string; show?: string } => ({
    tab: text(search.tab),
    ...narrowed(search),
  }),
});
const reimport = createRoute({
  ...under('/sources/$id/reimport'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/sources/$id/reimport'), 'ReimportPage'),
});
const newTool = createRoute({
  ...under('/sources/$id/tools/new'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/sources/$id/tools.new'), 'NewToolPage'),
});
const tools = createRoute({
  ...under('/tools'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/tools/index'), 'ToolsPage'),
  validateSearch: narrowed,
});
const tool = createRoute({
  ...under('/tools/$id'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/tools/$id/index'), 'ToolPage'),
  validateSearch: (search: Record<string, unknown>): { tab?: string } => ({ tab: text(search.tab) }),
});
const editTool = createRoute({
  ...under('/tools/$id/edit'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/tools/$id/edit'), 'EditToolPage'),
});
const prompts = createRoute({
  ...under('/prompts'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/prompts/index'), 'PromptsPage'),
});
const trash = createRoute({
  ...under('/trash'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/trash'), 'TrashPage'),
});
const newPrompt = createRoute({
  ...under('/prompts/new'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/prompts/$id'), 'NewPromptPage'),
});
const prompt = createRoute({
  ...under('/prompts/$id'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/prompts/$id'), 'PromptPage'),
});
const resources = createRoute({
  ...under('/resources'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/resources/index'), 'ResourcesPage'),
});
const newResource = createRoute({
  ...under('/resources/new'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/resources/$id'), 'NewResourcePage'),
});
const resource = createRoute({
  ...under('/resources/$id'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/resources/$id'), 'ResourcePage'),
});
const servers = createRoute({
  ...under('/servers'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/servers/index'), 'ServersPage'),
});
const newServer = createRoute({
  ...under('/servers/new'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/servers/new'), 'NewServerPage'),
  validateSearch: (search: Record<string, unknown>): { source?: string } => ({ source: text(search.source) }),
});
const server = createRoute({
  ...under('/servers/$id'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/servers/$id/index'), 'ServerPage'),
  validateSearch: (search: Record<string, unknown>): { tab?: string } => ({ tab: text(search.tab) }),
});
const calls = createRoute({
  ...under('/calls'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/calls'), 'CallsPage'),
});
const members = createRoute({
  ...under('/members'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/members'), 'MembersPage'),
});
const apps = createRoute({
  ...under('/apps'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/apps'), 'AppsPage'),
});
const clients = createRoute({
  ...under('/clients'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/clients/index'), 'ClientsPage'),
});
const connects = createRoute({
  ...under('/connects'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/connects'), 'ConnectsPage'),
  validateSearch: (search: Record<string, unknown>): { request?: string; outcome?: string } => ({
    request: text(search.request),
    outcome: text(search.outcome),
  }),
});
const keys = createRoute({
  ...under('/keys'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/keys/index'), 'KeysPage'),
});
const limits = createRoute({
  ...under('/limits'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/limits'), 'LimitsPage'),
});
const security = createRoute({
  ...under('/security'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/security'), 'SecurityPage'),
});
const singleSignOn = createRoute({
  ...under('/single-sign-on'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/single-sign-on'), 'SingleSignOnPage'),
});
const audit = createRoute({
  ...under('/audit'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/audit'), 'AuditPage'),
});
const settings = createRoute({
  ...under('/settings'),
  component: lazyRouteComponent(() => import('./routes/w.$ws/settings'), 'SettingsPage'),
});

const routeTree = root.addChildren([
  home,
  workspace.addChildren([
    overview,
    sources,
    importWizard,
    newHttpSource,
    newAttachment,
    newUpstream,
    source,
    reimport,
    newTool,
    tools,
    tool,
    editTool,
    prompts,
    trash,
    newPrompt,
    prompt,
    resources,
    newResource,
    resource,
    servers,
    newServer,
    server,
    calls,
    members,
    apps,
    clients,
    connects,
    keys,
    limits,
    security,
    singleSignOn,
    audit,
    settings,
  ]),
]);

/** The router of one visit. Tests give their own history, so that none sees another's. */
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
