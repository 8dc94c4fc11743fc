import { Button, Stack, TextInput } from '@mantine/core';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import { useAddAttachment } from '../../../api/attachments';
import { useFields } from '../../../components/form';
import { Page, Panel } from '../../../components/page';
import { Restricted } from '../../../components/restricted';
import { SecretDialog } from '../../../components/secret';
import { Submit } from '../../../components/submit';
import { Unsaved } from '../../../components/unsaved';
import { useSession } from '../../../session';
import { shownKey } from './$id/-attachment';

export const Route = createFileRoute('/w/$ws/sources/attach')({
  component: NewAttachmentPage,
});

const NAME = /^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/;

/** The form for a server without a public address: it gets a name and a key, and a program offers it. */
function NewAttachmentPage() {
  const { workspace } = useSession();
  const back = { label: 'Sources', to: '/w/$ws/sources', params: { ws: workspace.slug } } as const;
  return (
    <Restricted needs="edit_registry" title="Attach a private server" back={back}>
      <NewAttachmentForm back={back} />
    </Restricted>
  );
}

function NewAttachmentForm({ back }: { back: Parameters<typeof Page>[0]['back'] }) {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const add = useAddAttachment(workspace.slug);
  const form = useFields({
    initialValues: { name: '' },
    validate: ({ name }) => ({
      name: NAME.test(name.trim()) ? null : 'Use lower-case letters, digits and hyphens: office-files.',
    }),
    error: add.error,
  });
  return (
    <Page
      title="Attach a private server"
      help="attach"
      back={back}
      lede="An MCP server on a laptop or in a private network. A program beside it opens the connection; no port is opened."
    >
      <Unsaved when={form.values.name !== '' && !add.data} />
      <Panel>
        <form
          ref={form.ref}
          onSubmit={form.onSubmit(({ name }) => add.mutate({ name: name.trim(), hold_changes: true }))}
          noValidate
        >
          <Stack gap="md" maw={560}>
            <TextInput
              label="Name"
              description="Callers see it in error messages. It can’t be changed."
              placeholder="office-files"
              required
              {...form.getInputProps('name')}
            />
            <Submit error={add.error} title="Could not add the server">
              <Button type="submit" loading={add.isPending}>
                Create key
              </Button>
            </Submit>
          </Stack>
        </form>
      </Panel>
      <SecretDialog
        shown={add.data && shownKey(add.data.key)}
        close={() => {
          if (!add.data) return;
          void navigate({
            to: '/w/$ws/sources/$id',
            params: { ws: workspace.slug, id: add.data.source.id },
            search: { tab: 'server' },
            ignoreBlocker: true,
          });
        }}
      />
    </Page>
  );
}
