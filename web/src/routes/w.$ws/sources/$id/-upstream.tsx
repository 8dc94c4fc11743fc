import { Alert, Button, Group, Stack, Switch, TextInput } from '@mantine/core';
import { IconRefresh } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import {
  type Upstream,
  type UpstreamChange,
  upstreamQuery,
  useChangeUpstream,
  useSyncUpstream,
} from '../../../../api/upstreams';
import { Ago } from '../../../../components/ago';
import { useFields } from '../../../../components/form';
import { LinkButton } from '../../../../components/link-button';
import { Facts, Loaded, Panel } from '../../../../components/page';
import { Submit } from '../../../../components/submit';
import { cell, Table } from '../../../../components/table';
import { toastDone, toastFailed } from '../../../../components/toast';
import { Unsaved } from '../../../../components/unsaved';
import { Lists, plural, ServerFacts } from '../../../../components/upstream-offer';
import { sentence } from '../../../../sentence';
import { useMay, useSession } from '../../../../session';

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
          <th>Item</th>
          <th>Change</th>
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
