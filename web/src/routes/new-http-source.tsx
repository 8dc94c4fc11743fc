import { Button, Stack, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { useCreateSource } from '../api/sources';
import { Page, Panel } from '../components/page';
import { Restricted } from '../components/restricted';
import { Submit, useFaultFocus } from '../components/submit';
import { Unsaved, useChanged } from '../components/unsaved';
import { useSession } from '../session';

const title = 'Add an API manually';

export function NewHttpSourcePage() {
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
  const [name, setName] = useState('');
  const [baseUrl, setBaseUrl] = useState('');
  const [tries, setTries] = useState(0);
  const tried = tries > 0;
  const badUrl = !/^https?:\/\//i.test(baseUrl) || !URL.canParse(baseUrl);

  const changed = useChanged([name, baseUrl]);
  const form = useFaultFocus(create.error ?? tries);

  function submit(event: FormEvent) {
    event.preventDefault();
    setTries((old) => old + 1);
    if (badUrl || name.trim() === '') return;
    create.mutate(
      { kind: 'http', name: name.trim(), base_url: baseUrl.trim() },
      {
        onSuccess: (made) =>
          void navigate({
            to: '/w/$ws/sources/$id/tools/new',
            params: { ws: workspace.slug, id: made.id },
            ignoreBlocker: true,
          }),
      },
    );
  }

  return (
    <Page
      title={title}
      back={back}
      lede="For an API without an OpenAPI document. You describe each request yourself."
    >
      <Panel>
        <form ref={form} onSubmit={submit} noValidate>
          <Unsaved when={changed} />
          <Stack gap="md" maw={560}>
            <TextInput
              label="Name"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={tried && name.trim() === '' ? 'Enter a name for the source.' : null}
              maxLength={80}
              required
            />
            <TextInput
              label="Base URL"
              description="Prepended to every path."
              placeholder="https://api.example.com/v1"
              type="url"
              value={baseUrl}
              onChange={(event) => setBaseUrl(event.currentTarget.value)}
              error={tried && badUrl ? 'Enter a complete URL: https://host/path.' : null}
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
