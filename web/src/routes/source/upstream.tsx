import { Alert, Button, Checkbox, Group, Stack, Switch, TextInput } from '@mantine/core';
import { IconRefresh } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import {
  type Upstream,
  type UpstreamChange,
  type UpstreamPreview,
  upstreamQuery,
  useChangeUpstream,
  useSyncUpstream,
} from '../../api/upstreams';
import { Ago } from '../../components/ago';
import { useFields } from '../../components/form';
import { InlineCode } from '../../components/inline-code';
import { LinkButton } from '../../components/link-button';
import { Facts, Loaded, Panel } from '../../components/page';
import { Submit } from '../../components/submit';
import { cell, Table } from '../../components/table';
import { toastDone, toastFailed } from '../../components/toast';
import { Unsaved } from '../../components/unsaved';
import { sentence } from '../../sentence';
import { useMay, useSession } from '../../session';

/** Shows what a server reports about itself. */
export function ServerFacts({
  server,
}: {
  server: Pick<UpstreamPreview, 'revision' | 'server_name' | 'server_version' | 'instructions'> | Upstream;
}) {
  const facts: [string, ReactNode][] = [];
  if (server.server_name) facts.push(['Name', `${server.server_name} ${server.server_version ?? ''}`.trim()]);
  facts.push(['Protocol', <code key="revision">{server.revision ?? 'unknown'}</code>]);
  if (server.instructions) facts.push(['Instructions', server.instructions]);
  return <Facts items={facts} />;
}

const plural = (count: number, one: string) => (count === 1 ? `1 ${one}` : `${count} ${one}s`);

/** Lists what a server offers; tools can be selected. */
export function Offered({
  offer,
  chosen,
  onChoose,
}: {
  offer: UpstreamPreview;
  chosen: Set<string>;
  onChoose: (chosen: Set<string>) => void;
}) {
  const all = chosen.size === offer.tools.length;
  const toggle = (name: string) => {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    onChoose(next);
  };
  return (
    <>
      <Panel
        flush
        title={`${plural(offer.tools.length, 'tool')}, ${chosen.size} selected`}
        note="Tools you don’t select are added disabled."
      >
        {offer.tools.length > 0 && (
          <Table
            label="Tools"
            head={
              <>
                <th data-shrink>
                  <Checkbox
                    aria-label="All tools"
                    checked={all}
                    indeterminate={!all && chosen.size > 0}
                    onChange={() => onChoose(new Set(all ? [] : offer.tools.map((tool) => tool.name)))}
                  />
                </th>
                <th>Tool</th>
              </>
            }
          >
            {offer.tools.map((tool) => (
              <tr key={tool.name}>
                <td data-shrink>
                  <Checkbox
                    aria-label={tool.name}
                    checked={chosen.has(tool.name)}
                    onChange={() => toggle(tool.name)}
                  />
                </td>
                <td data-wide>
                  <code className={cell.main}>{tool.name}</code>
                  <div className={cell.sub}>{tool.title || tool.description}</div>
                  {tool.warnings.map((warning) => (
                    <div key={warning} className={cell.sub}>
                      <InlineCode text={sentence(warning)} />
                    </div>
                  ))}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Panel>
      <Lists
        prompts={offer.prompts.map((prompt) => prompt.name)}
        resources={offer.resources.map((resource) => resource.uri)}
        skipped={offer.skipped}
      />
    </>
  );
}

function Lists({
  prompts,
  resources,
  skipped,
}: {
  prompts: string[];
  resources: string[];
  skipped: string[];
}) {
  const list = (label: string, items: string[]) =>
    items.length > 0 && (
      <Panel title={plural(items.length, label)}>
        <ul className="short">
          {items.map((item) => (
            <li key={item}>
              <code>{item}</code>
            </li>
          ))}
        </ul>
      </Panel>
    );
  return (
    <>
      {list('prompt', prompts)}
      {list('resource', resources)}
      {skipped.length > 0 && (
        <Alert color="yellow" data-tone="yellow" title="Some items can’t be used">
          <ul className="short">
            {skipped.map((one) => (
              <li key={one}>
                <InlineCode text={sentence(one)} />
              </li>
            ))}
          </ul>
        </Alert>
      )}
    </>
  );
}

/** Says on the other tabs that changes wait. */
export function PendingNotice({ id }: { id: string }) {
  const { workspace } = useSession();
  const upstream = useQuery(upstreamQuery(workspace.slug, id));
  const { pending, last_error } = upstream.data ?? {};
  if (!pending && !last_error) return null;
  return (
    <Alert
      color="yellow"
      data-tone="yellow"
      title={
        pending
          ? plural(pending.changes.length, 'pending upstream change')
          : 'Could not connect to the server'
      }
    >
      <Group justify="space-between">
        <span>
          {pending
            ? 'They are published after approval.'
            : `The last sync failed: ${sentence(last_error ?? '')}`}
        </span>
        <LinkButton
          to="/w/$ws/sources/$id"
          params={{ ws: workspace.slug, id }}
          search={{ tab: 'server' }}
          variant="default"
          size="compact-sm"
        >
          Review
        </LinkButton>
      </Group>
    </Alert>
  );
}

/** Looks at the server now. */
export function LookNow({ id }: { id: string }) {
  const { workspace } = useSession();
  const sync = useSyncUpstream(workspace.slug, id);
  return (
    <Button
      variant="default"
      leftSection={<IconRefresh size={17} aria-hidden />}
      loading={sync.isPending}
      onClick={() =>
        sync.mutate(undefined, {
          onSuccess: ({ held, changes }) =>
            toastDone(
              changes.length === 0
                ? 'No changes.'
                : `${plural(changes.length, 'change')} ${held ? 'found. Approve them to publish.' : 'applied.'}`,
            ),
          onError: toastFailed,
        })
      }
    >
      Sync now
    </Button>
  );
}

const words: Record<string, string> = { added: 'New', changed: 'Changed', removed: 'Removed' };

function Changes({ changes }: { changes: UpstreamChange[] }) {
  return (
    <Table
      label="Changes"
      head={
        <>
          <th>Item</th> <th>Change</th>
          <th>Published by</th>
        </>
      }
    >
      {changes.map((change) => (
        <tr key={`${change.kind} ${change.name}`}>
          <td data-wide>
            <code className={cell.main}>{change.name}</code>
            <div className={cell.sub}>{change.kind}</div>
          </td>
          <td data-label="Change">
            {words[change.change] ?? change.change}
            {change.what.length > 0 && `: ${change.what.join(', ')}`}
          </td>
          <td data-label="Published by">{change.used_by_servers.join(', ') || '—'}</td>
        </tr>
      ))}
    </Table>
  );
}

/** The tab of a source that is an MCP server. */
export function UpstreamPanel({ id }: { id: string }) {
  const { workspace } = useSession();
  const upstream = useQuery(upstreamQuery(workspace.slug, id));
  return (
    <Loaded query={upstream} lines={6}>
      {(known) => <Known id={id} upstream={known} />}
    </Loaded>
  );
}

function Known({ id, upstream }: { id: string; upstream: Upstream }) {
  const { workspace } = useSession();
  const edits = useMay('edit_registry');
  const sync = useSyncUpstream(workspace.slug, id);
  const change = useChangeUpstream(workspace.slug, id);
  const form = useFields({
    initialValues: { prefix: upstream.prefix, hold_changes: upstream.hold_changes },
    error: change.error,
  });
  const { prefix, hold_changes } = form.values;
  const { pending } = upstream;

  const changed = prefix !== upstream.prefix || hold_changes !== upstream.hold_changes;
  const save = () =>
    change.mutate({ prefix: prefix.trim(), hold_changes }, { onSuccess: () => toastDone('Settings saved.') });

  return (
    <Stack gap="lg">
      {upstream.last_error && (
        <Alert color="red" data-tone="red" role="alert" title="The last sync failed">
          {sentence(upstream.last_error)} The previous tools stay published.
        </Alert>
      )}
      {pending && (
        <Panel
          flush
          title={plural(pending.changes.length, 'pending change')}
          note={
            <>
              Found <Ago at={pending.found_at} />. Published after approval.
            </>
          }
          aside={
            edits && (
              <Button
                loading={sync.isPending}
                onClick={() =>
                  sync.mutate(pending.digest, {
                    onSuccess: () => toastDone('Changes published.'),
                    onError: toastFailed,
                  })
                }
              >
                Approve changes
              </Button>
            )
          }
        >
          <Changes changes={pending.changes} />
        </Panel>
      )}
      <Panel title="Server details">
        <ServerFacts server={upstream} />
        <Facts
          items={[
            ['Capabilities', upstream.capabilities.join(', ') || 'none announced'],
            ['Last checked', upstream.checked_at ? <Ago key="at" at={upstream.checked_at} /> : 'never'],
            ['Last synced', upstream.synced_at ? <Ago key="at" at={upstream.synced_at} /> : 'never'],
          ]}
        />
      </Panel>
      <Lists prompts={upstream.prompts} resources={upstream.resources} skipped={upstream.skipped} />
      <Panel title="Names and changes">
        <form ref={form.ref} onSubmit={form.onSubmit(save)} noValidate>
          <Unsaved when={changed && !change.isPending} tabs />
          <fieldset disabled={!edits} className="bare">
            <Stack gap="md" maw={560}>
              <TextInput
                label="Prefix"
                description="Added before the names of its tools and prompts, also on servers that publish them."
                maxLength={32}
                {...form.getInputProps('prefix')}
              />
              <Switch
                label="Require approval for upstream changes"
                description="Recommended. Without approval, changes are published within minutes."
                {...form.getInputProps('hold_changes', { type: 'checkbox' })}
              />
              {edits && (
                <Submit error={change.error} title="The settings were not saved">
                  <Button type="submit" loading={change.isPending}>
                    Save
                  </Button>
                </Submit>
              )}
            </Stack>
          </fieldset>
        </form>
      </Panel>
    </Stack>
  );
}
