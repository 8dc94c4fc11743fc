import {
  IconActivity,
  IconAnchor,
  IconBell,
  IconBroadcast,
  IconBuilding,
  IconChartBar,
  IconCompass,
  IconFileCode,
  IconFileImport,
  IconFileText,
  IconGauge,
  IconHistory,
  IconKey,
  IconMessage2,
  IconPlugConnected,
  IconRoute,
  IconSettings,
  IconShieldCheck,
  IconShieldLock,
  IconTool,
  IconTrash,
  IconUsers,
  IconWebhook,
} from '@tabler/icons-react';
import type { Action } from './session';

/** The pages of a workspace, as the menu and the palette list them. `needs` is the action that shows one. */
export const pages = [
  { to: '/w/$ws', label: 'Overview', icon: IconCompass, group: undefined },
  { to: '/w/$ws/sources', label: 'Sources', icon: IconFileImport, group: undefined },
  { to: '/w/$ws/tools', label: 'Tools', icon: IconTool, group: undefined },
  { to: '/w/$ws/prompts', label: 'Prompts', icon: IconMessage2, group: undefined },
  { to: '/w/$ws/resources', label: 'Resources', icon: IconFileText, group: undefined },
  { to: '/w/$ws/servers', label: 'Servers', icon: IconAnchor, group: undefined },
  { to: '/w/$ws/calls', label: 'Calls', icon: IconActivity, group: undefined },
  { to: '/w/$ws/sessions', label: 'Sessions', icon: IconBroadcast, group: undefined },
  { to: '/w/$ws/insights', label: 'Insights', icon: IconChartBar, group: undefined },
  { to: '/w/$ws/members', label: 'Members', icon: IconUsers, group: 'Access' },
  { to: '/w/$ws/apps', label: 'Connected apps', icon: IconPlugConnected, group: 'Access' },
  { to: '/w/$ws/clients', label: 'AI clients', icon: IconShieldCheck, group: 'Access', needs: 'administer' },
  { to: '/w/$ws/connects', label: 'Connections', icon: IconRoute, group: 'Access', needs: 'administer' },
  { to: '/w/$ws/keys', label: 'Keys', icon: IconKey, group: 'Access' },
  { to: '/w/$ws/limits', label: 'Limits', icon: IconGauge, group: 'Workspace' },
  { to: '/w/$ws/security', label: 'Security', icon: IconShieldLock, group: 'Workspace', needs: 'administer' },
  {
    to: '/w/$ws/single-sign-on',
    label: 'Single sign-on',
    icon: IconBuilding,
    group: 'Workspace',
    needs: 'administer',
  },
  { to: '/w/$ws/alerts', label: 'Alerts', icon: IconBell, group: 'Workspace', needs: 'administer' },
  { to: '/w/$ws/webhooks', label: 'Webhooks', icon: IconWebhook, group: 'Workspace', needs: 'administer' },
  { to: '/w/$ws/audit', label: 'Audit log', icon: IconHistory, group: 'Workspace', needs: 'administer' },
  {
    to: '/w/$ws/configuration',
    label: 'Configuration',
    icon: IconFileCode,
    group: 'Workspace',
    needs: 'edit_registry',
  },
  { to: '/w/$ws/trash', label: 'Trash', icon: IconTrash, group: 'Workspace' },
  { to: '/w/$ws/settings', label: 'Settings', icon: IconSettings, group: 'Workspace' },
] as const satisfies readonly { to: string; label: string; icon: unknown; group?: string; needs?: Action }[];

export type PageEntry = (typeof pages)[number];

/** The forms that create things, as the palette lists them. */
export const makes = [
  { to: '/w/$ws/sources/import', label: 'Import an API', needs: 'edit_registry' },
  { to: '/w/$ws/sources/new', label: 'Add an API manually', needs: 'edit_registry' },
  { to: '/w/$ws/sources/upstream', label: 'Add an MCP server', needs: 'edit_registry' },
  { to: '/w/$ws/sources/attach', label: 'Attach a private server', needs: 'edit_registry' },
  { to: '/w/$ws/servers/new', label: 'New server', needs: 'edit_registry' },
  { to: '/w/$ws/prompts/new', label: 'New prompt', needs: 'edit_registry' },
  { to: '/w/$ws/resources/new', label: 'New resource', needs: 'edit_registry' },
] as const satisfies readonly { to: string; label: string; needs: Action }[];
