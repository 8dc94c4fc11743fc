import { Link } from '@tanstack/react-router';
import type { ObjectKind } from '../api/configuration';
import { Panel } from './page';
import { cell, Table, useShown } from './table';

/** An object that a file owns. */
export interface OwnedObject {
  kind: ObjectKind;
  id: string;
  name: string;
  owner: string;
}

const kinds = {
  source: { word: 'Source', page: '/w/$ws/sources/$id' },
  prompt: { word: 'Prompt', page: '/w/$ws/prompts/$id' },
  resource: { word: 'Resource', page: '/w/$ws/resources/$id' },
  server: { word: 'Server', page: '/w/$ws/servers/$id' },
  webhook: { word: 'Webhook', page: '/w/$ws/webhooks/$id' },
} as const;

const all = new Intl.ListFormat('en-GB', { type: 'conjunction' });

/** "acme-prod owns 4 objects and tools owns 1 object." */
export function ownersNote(objects: OwnedObject[]): string {
  const counts = new Map<string, number>();
  for (const { owner } of objects) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  const parts = [...counts]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([owner, count]) => `${owner} owns ${count} ${count === 1 ? 'object' : 'objects'}`);
  return `${all.format(parts)}.`;
}

/** The objects of a workspace that files own, by file. */
export function OwnedObjects({ ws, objects }: { ws: string; objects: OwnedObject[] }) {
  const sorted = objects.toSorted(
    (a, b) => a.owner.localeCompare(b.owner) || a.kind.localeCompare(b.kind) || a.name.localeCompare(b.name),
  );
  const { shown, more } = useShown(sorted);
  const title = 'Objects that files own';
  if (shown.length === 0) {
    return (
      <Panel title={title}>
        No file owns an object of this workspace. <code>portolan apply</code> makes the file the owner of its
        objects.
      </Panel>
    );
  }
  return (
    <Panel title={title} note={ownersNote(objects)} flush>
      <Table
        label={title}
        head={
          <>
            <th>Object</th>
            <th>Kind</th>
            <th>Managed by</th>
          </>
        }
      >
        {shown.map(({ kind, id, name, owner }) => (
          <tr key={id}>
            <td data-wide>
              <Link to={kinds[kind].page} params={{ ws, id }} className={`plain ${cell.main}`}>
                {name}
              </Link>
            </td>
            <td data-label="Kind">{kinds[kind].word}</td>
            <td data-label="Managed by">
              <code>{owner}</code>
            </td>
          </tr>
        ))}
      </Table>
      {more}
    </Panel>
  );
}
