import { Alert, Button, Stack, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { useCreateSource } from '../api/sources';
import { Page, Panel } from '../components/page';
import { useSession } from '../session';

export function NewHttpSourcePage() {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const create = useCreateSource(workspace.slug);
  const [name, setName] = useState('');
  const [baseUrl, setBaseUrl] = useState('');
  const [tried, setTried] = useState(false);
  const badUrl = !/^https?:\/\//i.test(baseUrl) || !URL.canParse(baseUrl);

  function submit(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (badUrl || name.trim() === '') return;
    create.mutate(
      { kind: 'http', name: name.trim(), base_url: baseUrl.trim() },
      {
        onSuccess: (made) =>
          void navigate({ to: '/w/$ws/sources/$id/tools/new', params: { ws: workspace.slug, id: made.id } }),
      },
    );
  }

  return (
    <Page
      narrow
      title="Describe an API by hand"
      back={{ label: 'Sources', to: '/w/$ws/sources', params: { ws: workspace.slug } }}
      lede="For an API without an OpenAPI document. You describe each call; the same engine makes it."
    >
      <Panel>
        <form onSubmit={submit} noValidate>
          <Stack gap="md" maw={560}>
            {create.error && (
              <Alert color="red" data-tone="red" role="alert" title="The source was not created">
                {create.error.message}
              </Alert>
            )}
            <TextInput
              label="Name"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={tried && name.trim() === '' ? 'Give the source a name.' : null}
              maxLength={120}
              required
            />
            <TextInput
              label="Base URL"
              description="The path of every tool is added to it."
              placeholder="https://api.example.com/v1"
              type="url"
              value={baseUrl}
              onChange={(event) => setBaseUrl(event.currentTarget.value)}
              error={tried && badUrl ? 'Give a complete URL: https://host/path.' : null}
              required
            />
            <div>
              <Button type="submit" loading={create.isPending}>
                Create and add a tool
              </Button>
            </div>
          </Stack>
        </form>
      </Panel>
    </Page>
  );
}
