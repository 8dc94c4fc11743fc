import { Button, Stack, Textarea, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { type ServerDetail, useDeleteServer, useUpdateServer } from '../../../../api/servers';
import { Ago } from '../../../../components/ago';
import { DeletePanel } from '../../../../components/delete-panel';
import { useFields } from '../../../../components/form';
import { Facts, Panel } from '../../../../components/page';
import { Submit } from '../../../../components/submit';
import { toastDone } from '../../../../components/toast';
import { Unsaved } from '../../../../components/unsaved';
import { blank } from '../../../../rules';
import { useMay, useSession } from '../../../../session';
import { ServerCaptureSettings } from './-capture';

/** What clients see of the server, when it came to be, and its deletion. */
export function ServerSettings({ server }: { server: ServerDetail }) {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const edits = useMay('edit_registry');
  const update = useUpdateServer(workspace.slug, server.id);
  const remove = useDeleteServer(workspace.slug);
  const form = useFields({
    initialValues: {
      name: server.name,
      description: server.description ?? '',
      instructions: server.instructions ?? '',
    },
    validate: ({ name }) => ({ name: blank(name, 'Enter a name for the server.') }),
    eager: true,
    error: update.error,
  });

  const send = ({ name, description, instructions }: typeof form.values) =>
    update.mutate(
      { name: name.trim(), description: description.trim(), instructions: instructions.trim() },
      { onSuccess: () => toastDone('Settings saved.') },
    );

  return (
    <Stack gap="lg">
      <Panel title="What clients see">
        <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
          <Unsaved when={form.isChanged() && !update.isPending && !remove.isPending} />
          <fieldset disabled={!edits} className="bare">
            <Stack gap="md" maw={640}>
              <TextInput label="Name" {...form.getInputProps('name')} />
              <TextInput label="Description" {...form.getInputProps('description')} />
              <Textarea
                label="Instructions"
                description="Clients pass them to the model with the tools."
                rows={4}
                {...form.getInputProps('instructions')}
              />
              {edits && (
                <Submit error={update.error} title="The settings were not saved">
                  <Button type="submit" loading={update.isPending}>
                    Save settings
                  </Button>
                </Submit>
              )}
            </Stack>
          </fieldset>
        </form>
      </Panel>
      <ServerCaptureSettings server={server.id} />
      <Panel title="About">
        <Facts
          items={[
            ['Address', <code key="slug">{server.slug}</code>],
            ['Created', <Ago key="created" at={server.created_at} />],
            ['Published', server.published_at ? <Ago key="published" at={server.published_at} /> : 'Never'],
          ]}
        />
      </Panel>
      {edits && (
        <DeletePanel
          noun="server"
          name={server.name}
          note="Clients lose access immediately. You can restore it from the trash for 30 days."
          busy={remove.isPending}
          error={remove.error}
          act={() =>
            remove.mutate(server.id, {
              onSuccess: () => {
                void navigate({
                  to: '/w/$ws/servers',
                  params: { ws: workspace.slug },
                  ignoreBlocker: true,
                });
              },
            })
          }
        >
          {server.status === 'published'
            ? 'This server is published: connected clients lose access immediately.'
            : 'This server is not published.'}{' '}
          You can restore it from the trash for 30 days.
        </DeletePanel>
      )}
    </Stack>
  );
}
