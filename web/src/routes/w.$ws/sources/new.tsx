import { Button, Stack, TextInput } from '@mantine/core';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import { useCreateSource } from '../../../api/sources';
import { useFields } from '../../../components/form';
import { Page, Panel } from '../../../components/page';
import { Restricted } from '../../../components/restricted';
import { Submit } from '../../../components/submit';
import { Unsaved } from '../../../components/unsaved';
import { addressFault, blank } from '../../../rules';
import { useSession } from '../../../session';

export const Route = createFileRoute('/w/$ws/sources/new')({
  component: NewHttpSourcePage,
});

const title = 'Add an API manually';

function NewHttpSourcePage() {
  const { workspace } = useSession();
  const back = { label: 'Sources', to: '/w/$ws/sources', params: { ws: workspace.slug } } as const;
  return (
    <Restricted needs="edit_registry" title={title} back={back}>
      <NewHttpSource back={back} />
    </Restricted>
  );
}

function NewHttpSource({ back }: { back: Parameters<typeof Page>[0]['back'] }) {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const create = useCreateSource(workspace.slug);
  const form = useFields({
    initialValues: { name: '', base_url: '' },
    validate: ({ name, base_url }) => ({
      name: blank(name, 'Enter a name for the source.'),
      base_url: addressFault(base_url),
    }),
    error: create.error,
  });

  const send = ({ name, base_url }: typeof form.values) =>
    create.mutate(
      { kind: 'http', name: name.trim(), base_url: base_url.trim() },
      {
        onSuccess: (made) =>
          void navigate({
            to: '/w/$ws/sources/$id/tools/new',
            params: { ws: workspace.slug, id: made.id },
            ignoreBlocker: true,
          }),
      },
    );

  return (
    <Page
      title={title}
      back={back}
      lede="For an API without an OpenAPI document. You describe each request yourself."
    >
      <Panel>
        <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
          <Unsaved when={form.isChanged()} />
          <Stack gap="md" maw={560}>
            <TextInput label="Name" {...form.getInputProps('name')} maxLength={80} required />
            <TextInput
              label="Base URL"
              description="Prepended to every path."
              placeholder="https://api.example.com/v1"
              type="url"
              {...form.getInputProps('base_url')}
              required
            />
            <Submit error={create.error} title="The source was not created">
              <Button type="submit" loading={create.isPending}>
                Create and add a tool
              </Button>
            </Submit>
          </Stack>
        </form>
      </Panel>
    </Page>
  );
}
