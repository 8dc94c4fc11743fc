import { Alert, Button, Group, Stack, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, useEffect, useState } from 'react';
import { ApiError } from '../api/http';
import { useCreateServer, useSetPublished, useSetServerTools } from '../api/servers';
import { type ToolSummary, toolsQuery } from '../api/tools';
import { Loaded, Page, Panel } from '../components/page';
import { toastDone, toastFailed } from '../components/toast';
import { clashingNames, ToolPicker } from '../components/tool-picker';
import { useSession } from '../session';
import { slugFault, suggestSlug } from '../slug';

export function NewServerPage() {
  const { workspace } = useSession();
  const tools = useQuery(toolsQuery(workspace.slug));
  return (
    <Page
      title="New server"
      back={{ label: 'Servers', to: '/w/$ws/servers', params: { ws: workspace.slug } }}
      lede="Choose few tools with clear names: models find the right one sooner."
    >
      <Loaded query={tools} lines={8}>
        {(items) => <NewServer tools={items.filter((tool) => tool.enabled && tool.state === 'active')} />}
      </Loaded>
    </Page>
  );
}

function NewServer({ tools }: { tools: ToolSummary[] }) {
  const { workspace } = useSession();
  const { source } = useSearch({ from: '/w/$ws/servers/new' });
  const navigate = useNavigate();
  const create = useCreateServer(workspace.slug);
  const publish = useSetPublished(workspace.slug);
  const publishNames = useSetServerTools(workspace.slug);
  const [name, setName] = useState('');
  const [ownSlug, setOwnSlug] = useState<string | null>(null);
  const [description, setDescription] = useState('');
  const [instructions, setInstructions] = useState('');
  const [tried, setTried] = useState(false);
  const [names, setNames] = useState<Map<string, string>>(
    () => new Map(tools.filter((tool) => tool.source_id === source).map((tool) => [tool.id, tool.name])),
  );
  const fromSource = tools.find((tool) => tool.source_id === source)?.source_name;
  useEffect(() => {
    if (fromSource) setName((old) => old || fromSource);
  }, [fromSource]);
  const slug = ownSlug ?? suggestSlug(name);
  const fault = slugFault(slug);
  const refused = create.error instanceof ApiError ? create.error : null;
  const slugRefused =
    refused &&
    (refused.field === 'slug' || refused.code.startsWith('slug_')) &&
    create.variables?.slug === slug;
  const clashes = clashingNames(names);

  async function submit(event: FormEvent, andPublish: boolean) {
    event.preventDefault();
    setTried(true);
    if (fault || name.trim() === '' || clashes.size > 0 || (andPublish && names.size === 0)) {
      window.scrollTo({ top: 0, behavior: 'smooth' });
      return;
    }
    let made: { id: string };
    try {
      made = await create.mutateAsync({
        name: name.trim(),
        slug,
        ...(description.trim() ? { description: description.trim() } : {}),
        ...(instructions.trim() ? { instructions: instructions.trim() } : {}),
        tool_ids: [...names.keys()],
      });
    } catch {
      window.scrollTo({ top: 0, behavior: 'smooth' });
      return;
    }
    // Creating takes ids only; other names than the tools' own are set right after it.
    const renamed = tools.some((tool) => names.has(tool.id) && names.get(tool.id) !== tool.name);
    try {
      if (renamed) {
        await publishNames.mutateAsync({
          id: made.id,
          tools: [...names].map(([tool_id, published_name]) => ({ tool_id, published_name })),
        });
      }
    } catch (error) {
      toastFailed(error);
      void navigate({
        to: '/w/$ws/servers/$id',
        params: { ws: workspace.slug, id: made.id },
        search: { tab: 'tools' },
      });
      return;
    }
    if (andPublish) {
      try {
        await publish.mutateAsync({ id: made.id, published: true });
        toastDone('The server is published.');
      } catch (error) {
        toastFailed(error);
      }
    }
    void navigate({
      to: '/w/$ws/servers/$id',
      params: { ws: workspace.slug, id: made.id },
      search: { tab: andPublish ? 'connect' : 'tools' },
    });
  }

  const busy = create.isPending || publishNames.isPending || publish.isPending;
  return (
    <form onSubmit={(event) => void submit(event, true)} noValidate>
      <Stack gap="lg">
        {refused && !slugRefused && (
          <Alert color="red" data-tone="red" role="alert" title="The server was not created">
            {refused.message}
          </Alert>
        )}
        <Panel title="What clients see">
          <Stack gap="md" maw={640}>
            <TextInput
              label="Name"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={tried && name.trim() === '' ? 'Give the server a name.' : null}
              maxLength={80}
              required
            />
            <TextInput
              label="Address"
              description={`${window.location.origin}/t/${workspace.slug}/${slug || '…'}/mcp. It cannot be changed later.`}
              value={slug}
              onChange={(event) => setOwnSlug(event.currentTarget.value.toLowerCase())}
              error={slugRefused ? refused.message : tried || ownSlug !== null ? fault : null}
              spellCheck={false}
              autoCapitalize="none"
              required
            />
            <TextInput
              label="Description"
              value={description}
              onChange={(event) => setDescription(event.currentTarget.value)}
              maxLength={300}
            />
            <Textarea
              label="Instructions"
              description="Optional. Clients hand them to the model together with the tools."
              rows={3}
              value={instructions}
              onChange={(event) => setInstructions(event.currentTarget.value)}
            />
          </Stack>
        </Panel>
        <Panel
          title="Tools"
          note="Only enabled tools are here. The name after “as” is the one that clients see."
          flush
        >
          <ToolPicker tools={tools} names={names} onChange={setNames} editable clashes={clashes} />
        </Panel>
        {tried && names.size === 0 && (
          <Alert color="red" data-tone="red" role="alert">
            Choose at least one tool to publish, or save a draft.
          </Alert>
        )}
        <Group>
          <Button type="submit" loading={busy}>
            Create and publish
          </Button>
          <Button variant="default" disabled={busy} onClick={(event) => void submit(event, false)}>
            Save as a draft
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
