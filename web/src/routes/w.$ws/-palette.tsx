import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { type SearchResult, searchQuery } from '../../api/search';
import { type Entry, type EntryGroup, matches, Palette, ShortcutHelp } from '../../components/palette';
import { docEntries } from '../../docs-search';
import { makes, pages } from '../../pages';
import { may, useSession } from '../../session';
import type { Overlay } from '../../shortcuts';

const kinds: Record<SearchResult['kind'], string> = {
  server: 'Servers',
  source: 'Sources',
  credential: 'Credentials',
  tool: 'Tools',
  prompt: 'Prompts',
  resource: 'Resources',
  member: 'Members',
  api_key: 'API keys',
  service_account: 'Service accounts',
  client: 'AI clients',
};

/** The palette over everything in a workspace, or the help with its keys. */
export default function WorkspaceOverlay({ overlay, onClose }: { overlay: Overlay; onClose: () => void }) {
  return overlay === 'help' ? <ShortcutHelp onClose={onClose} /> : <WorkspacePalette onClose={onClose} />;
}

function WorkspacePalette({ onClose }: { onClose: () => void }) {
  const { workspace } = useSession();
  const ws = workspace.slug;
  const navigate = useNavigate();
  const [query, setQuery] = useState('');
  const [settled] = useDebouncedValue(query.trim(), 150);
  const search = useQuery(searchQuery(ws, settled));
  const asked = query.trim() !== '';
  const params = { ws };

  const listed = (items: readonly { to: (typeof pages | typeof makes)[number]['to']; label: string }[]) =>
    items
      .filter(({ label }) => !asked || matches(query, label))
      .map(({ to, label }) => ({ id: `page:${to}`, label, open: () => void navigate({ to, params }) }));
  const visible = pages.filter((page) => !('needs' in page) || may(workspace.role, page.needs));
  const makeable = makes.filter(({ needs }) => may(workspace.role, needs));

  const found = asked ? (search.data?.items ?? []) : [];
  const groups: EntryGroup[] = [
    { label: 'Pages', entries: listed(visible) },
    { label: 'Create', entries: asked ? listed(makeable) : [] },
    ...Object.entries(kinds).map(([kind, label]) => ({
      label,
      entries: found.filter((one) => one.kind === kind).map(entryOf),
    })),
    docEntries(query, (_splat, hash) => void navigate({ to: '/docs/$', params: { _splat }, hash })),
  ];

  function entryOf({ kind, id, name, detail }: SearchResult): Entry {
    const at = { ws, id };
    const open: Record<SearchResult['kind'], () => unknown> = {
      server: () => navigate({ to: '/w/$ws/servers/$id', params: at }),
      source: () => navigate({ to: '/w/$ws/sources/$id', params: at }),
      credential: () => navigate({ to: '/w/$ws/sources/$id', params: at, search: { tab: 'credential' } }),
      tool: () => navigate({ to: '/w/$ws/tools/$id', params: at }),
      prompt: () => navigate({ to: '/w/$ws/prompts/$id', params: at }),
      resource: () => navigate({ to: '/w/$ws/resources/$id', params: at }),
      member: () => navigate({ to: '/w/$ws/members', params }),
      api_key: () => navigate({ to: '/w/$ws/keys', params }),
      service_account: () => navigate({ to: '/w/$ws/keys', params }),
      client: () => navigate({ to: '/w/$ws/clients', params }),
    };
    return { id: `${kind}:${id}`, label: name, detail, open: () => void open[kind]() };
  }

  return (
    <Palette
      query={query}
      onQuery={setQuery}
      groups={groups}
      pending={asked && (search.isFetching || settled !== query.trim())}
      failed={search.error ? `The search failed: ${search.error.message}` : undefined}
      onClose={onClose}
    />
  );
}
