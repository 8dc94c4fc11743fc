import { ActionIcon, Button, Group, Menu, Stack, Switch, TextInput } from '@mantine/core';
import { IconBookmark, IconPencil, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type CallView, callViewsQuery, useDeleteCallView, useSaveCallView } from '../../../api/call-views';
import { type CallFilter, readFilter } from '../../../call-filter';
import { Tag } from '../../../components/badges';
import { Dialog } from '../../../components/dialog';
import { useFields } from '../../../components/form';
import { Loaded } from '../../../components/page';
import { Submit } from '../../../components/submit';
import { toastDone, toastFailed, toastUndo } from '../../../components/toast';
import { blank } from '../../../rules';
import { useMay, useSession } from '../../../session';

/** Filters that are kept by name: opened, saved and managed. */
export function CallViews({ filter, onOpen }: { filter: CallFilter; onOpen: (filter: CallFilter) => void }) {
  const { workspace } = useSession();
  const views = useQuery(callViewsQuery(workspace.slug));
  const [saving, setSaving] = useState(false);
  const [managing, setManaging] = useState(false);
  const items = views.data?.items ?? [];
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" leftSection={<IconBookmark size={17} />}>
            Views
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {items.length === 0 && <Menu.Label>No saved views</Menu.Label>}
          {items.map((view) => (
            <Menu.Item key={view.id} onClick={() => onOpen(readFilter(view.filter))}>
              {view.name} {view.is_shared && <Tag>shared</Tag>}
            </Menu.Item>
          ))}
          <Menu.Divider />
          <Menu.Item disabled={Object.keys(filter).length === 0} onClick={() => setSaving(true)}>
            Save view
          </Menu.Item>
          {items.length > 0 && <Menu.Item onClick={() => setManaging(true)}>Manage views</Menu.Item>}
        </Menu.Dropdown>
      </Menu>
      {saving && <ViewDialog filter={filter} onClose={() => setSaving(false)} />}
      <Dialog title="Saved views" opened={managing} onClose={() => setManaging(false)}>
        <Loaded query={views}>{(data) => <ViewList items={data.items} />}</Loaded>
      </Dialog>
    </>
  );
}

const bodyOf = ({ name, filter, is_shared }: CallView) => ({ name, filter, is_shared });

function ViewList({ items }: { items: CallView[] }) {
  const { workspace } = useSession();
  const administers = useMay('administer');
  const remove = useDeleteCallView(workspace.slug);
  const save = useSaveCallView(workspace.slug);
  const [editing, setEditing] = useState<CallView>();

  const drop = (view: CallView) =>
    remove.mutate(view.id, {
      onSuccess: () =>
        view.is_own
          ? toastUndo(
              `“${view.name}” was deleted.`,
              () => save.mutateAsync({ body: bodyOf(view) }),
              'Restored.',
            )
          : toastDone(`“${view.name}” was deleted.`),
      onError: toastFailed,
    });

  if (items.length === 0) return <p>No saved views.</p>;
  return (
    <>
      <Stack component="ul" gap="xs" m={0} p={0} aria-label="Saved views">
        {items.map((view) => (
          <Group component="li" key={view.id} justify="space-between" wrap="nowrap" gap="sm">
            <span>
              {view.name} {view.is_shared && <Tag>shared</Tag>}
            </span>
            <Group gap="xs" wrap="nowrap">
              {view.is_own && (
                <ActionIcon
                  variant="subtle"
                  color="gray"
                  size="lg"
                  aria-label={`Change ${view.name}`}
                  onClick={() => setEditing(view)}
                >
                  <IconPencil size={17} />
                </ActionIcon>
              )}
              {(view.is_own || administers) && (
                <ActionIcon
                  variant="subtle"
                  color="gray"
                  size="lg"
                  aria-label={`Delete ${view.name}`}
                  onClick={() => drop(view)}
                >
                  <IconTrash size={17} />
                </ActionIcon>
              )}
            </Group>
          </Group>
        ))}
      </Stack>
      {editing && (
        <ViewDialog
          filter={readFilter(editing.filter)}
          view={editing}
          onClose={() => setEditing(undefined)}
        />
      )}
    </>
  );
}

/** Names a view. With `view` it changes that one. */
function ViewDialog({ filter, view, onClose }: { filter: CallFilter; view?: CallView; onClose: () => void }) {
  const { workspace } = useSession();
  const edits = useMay('edit_registry');
  const save = useSaveCallView(workspace.slug);
  const form = useFields({
    initialValues: { name: view?.name ?? '', shared: view?.is_shared ?? false },
    validate: ({ name }) => ({ name: blank(name, 'Enter a name for the view.') }),
    error: save.error,
  });
  const send = ({ name, shared }: typeof form.values) =>
    save.mutate(
      {
        ...(view && { id: view.id }),
        body: { name: name.trim(), filter: { ...filter } as Record<string, string>, is_shared: shared },
      },
      {
        onSuccess: () => {
          toastDone(view ? 'View changed.' : 'View saved.');
          onClose();
        },
      },
    );
  return (
    <Dialog title={view ? 'Change view' : 'Save view'} opened onClose={onClose}>
      <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
        <Stack gap="md">
          <TextInput label="Name" maxLength={100} data-autofocus {...form.getInputProps('name')} />
          <Switch
            label="Shared with the workspace"
            description={edits ? undefined : 'Developers, admins and owners can share views.'}
            disabled={!edits}
            {...form.getInputProps('shared', { type: 'checkbox' })}
          />
          <Submit error={form.refusal} title="The view was not saved" fault={form.fault}>
            <Button type="submit" loading={save.isPending}>
              Save
            </Button>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
          </Submit>
        </Stack>
      </form>
    </Dialog>
  );
}
