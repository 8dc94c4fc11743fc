import { Alert, Button, Stack, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { useRenameWorkspace, type Workspace, workspaceQuery } from '../api/workspaces';
import { TextLink } from '../components/link-button';
import { Facts, Loaded, Page, Panel } from '../components/page';
import { toastDone } from '../components/toast';
import { useMay, useSession } from '../session';
import { formatDate } from '../time';

export function SettingsPage() {
  const { workspace } = useSession();
  const query = useQuery(workspaceQuery(workspace.slug));
  return (
    <Page title="Workspace settings" narrow>
      <Loaded query={query}>{(data) => <Settings key={data.name} workspace={data} />}</Loaded>
    </Page>
  );
}

function Settings({ workspace }: { workspace: Workspace }) {
  const administers = useMay('administer');
  const rename = useRenameWorkspace(workspace.slug);
  const [name, setName] = useState(workspace.name);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (name.trim() === '') return;
    rename.mutate({ name: name.trim() }, { onSuccess: () => toastDone('The workspace was renamed.') });
  }

  return (
    <>
      <Panel title="Name">
        <form onSubmit={submit} noValidate>
          <Stack gap="md" maw={460}>
            {rename.error && (
              <Alert color="red" data-tone="red" role="alert" title="The workspace was not renamed">
                {rename.error.message}
              </Alert>
            )}
            <TextInput
              label="Workspace name"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={name.trim() === '' ? 'Give the workspace a name.' : null}
              disabled={!administers}
              maxLength={80}
            />
            {administers ? (
              <div>
                <Button type="submit" loading={rename.isPending} disabled={name.trim() === workspace.name}>
                  Save
                </Button>
              </div>
            ) : (
              <span>An admin or owner can rename the workspace.</span>
            )}
          </Stack>
        </form>
      </Panel>
      <Panel title="About">
        <Facts
          items={[
            ['Address', <code key="slug">{workspace.slug}</code>],
            ['Servers live under', <code key="url">{`${window.location.origin}/t/${workspace.slug}/`}</code>],
            ['Created', formatDate(workspace.created_at)],
            [
              'Limits',
              <TextLink key="limits" to="/w/$ws/limits" params={{ ws: workspace.slug }}>
                Calls a minute and at once
              </TextLink>,
            ],
          ]}
        />
      </Panel>
    </>
  );
}
