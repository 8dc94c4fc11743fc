import { Button, Stack, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, useEffect, useState } from 'react';
import { ApiError } from '../api/http';
import { type PromptSummary, promptsQuery, useSetServerPrompts } from '../api/prompts';
import { useCreateServer, useSetPublished, useSetServerTools } from '../api/servers';
import { type ToolSummary, toolsQuery } from '../api/tools';
import { OfferList } from '../components/offer-picker';
import classes from '../components/operations.module.css';
import { Loaded, Page, Panel } from '../components/page';
import { Restricted } from '../components/restricted';
import { Submit, useFaultFocus } from '../components/submit';
import { toastDone, toastFailed } from '../components/toast';
import { clashingNames, ToolPicker } from '../components/tool-picker';
import { Unsaved, useChanged } from '../components/unsaved';
import { useSession } from '../session';
import { slugFault, suggestSlug } from '../slug';

export function NewServerPage() {
  const { workspace } = useSession();
  const back = { label: 'Servers', to: '/w/$ws/servers', params: { ws: workspace.slug } } as const;
  return (
    <Restricted needs="edit_registry" title="New server" back={back}>
      <NewServerChoice back={back} />
    </Restricted>
  );
}

function NewServerChoice({ back }: { back: Parameters<typeof Page>[0]['back'] }) {
  const { workspace } = useSession();
  const tools = useQuery(toolsQuery(workspace.slug));
  const prompts = useQuery(promptsQuery(workspace.slug));
  return (
    <Page
      title="New server"
      back={back}
      lede="Few tools with clear names work best: models find the right one sooner."
    >
      <Loaded query={tools} lines={8}>
        {(items) => (
          <Loaded query={prompts} lines={4}>
            {(written) => (
              <NewServer
                tools={items.filter((tool) => tool.enabled && tool.state === 'active')}
                prompts={written.items.filter((one) => one.enabled && one.state === 'active')}
              />
            )}
          </Loaded>
        )}
      </Loaded>
    </Page>
  );
}

function NewServer({ tools, prompts }: { tools: ToolSummary[]; prompts: PromptSummary[] }) {
  const { workspace } = useSession();
  const { source } = useSearch({ from: '/w/$ws/servers/new' });
  const navigate = useNavigate();
  const create = useCreateServer(workspace.slug);
  const publish = useSetPublished(workspace.slug);
  const publishNames = useSetServerTools(workspace.slug);
  const publishPrompts = useSetServerPrompts(workspace.slug);
  const [name, setName] = useState('');
  const [ownSlug, setOwnSlug] = useState<string | null>(null);
  const [description, setDescription] = useState('');
  const [instructions, setInstructions] = useState('');
  const [tries, setTries] = useState(0);
  const tried = tries > 0;
  // Nothing to publish is a fault of publishing only: a draft may be empty.
  const [wanted, setWanted] = useState<'publish' | 'draft'>('publish');
  const [promptNames, setPromptNames] = useState<ReadonlyMap<string, string>>(new Map());
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
  const promptClashes = clashingNames(promptNames);
  const badNames =
    clashes.size > 0 ||
    promptClashes.size > 0 ||
    [...names.values(), ...promptNames.values()].some((one) => !/^[A-Za-z0-9_-]{1,64}$/.test(one));
  const isEmpty = names.size === 0 && promptNames.size === 0;
  const changed = useChanged([name, ownSlug, description, instructions, [...names], [...promptNames]]);
  const form = useFaultFocus(create.error ?? tries);
  const faultText =
    tried &&
    (clashes.size > 0 || promptClashes.size > 0
      ? `Two items have the name ${[...clashes, ...promptClashes].join(', ')}. Change one of them.`
      : fault || name.trim() === '' || badNames
        ? 'Fix the highlighted fields.'
        : wanted === 'publish' && isEmpty
          ? 'Select at least one tool or prompt to publish, or save a draft.'
          : null);

  async function submit(event: FormEvent, andPublish: boolean) {
    event.preventDefault();
    setTries((old) => old + 1);
    setWanted(andPublish ? 'publish' : 'draft');
    if (fault || name.trim() === '' || badNames || (andPublish && isEmpty)) return;
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
      // It stands beside the button, or at its field.
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
      if (promptNames.size > 0) {
        await publishPrompts.mutateAsync({
          id: made.id,
          prompts: [...promptNames].map(([prompt_id, published_name]) => ({ prompt_id, published_name })),
        });
      }
    } catch (error) {
      toastFailed(error);
      void navigate({
        to: '/w/$ws/servers/$id',
        params: { ws: workspace.slug, id: made.id },
        search: { tab: 'tools' },
        ignoreBlocker: true,
      });
      return;
    }
    if (andPublish) {
      try {
        await publish.mutateAsync({ id: made.id, published: true });
        toastDone('Server published.');
      } catch (error) {
        toastFailed(error);
      }
    }
    void navigate({
      to: '/w/$ws/servers/$id',
      params: { ws: workspace.slug, id: made.id },
      search: { tab: andPublish ? 'connect' : 'tools' },
      ignoreBlocker: true,
    });
  }

  const busy = create.isPending || publishNames.isPending || publishPrompts.isPending || publish.isPending;
  return (
    <form ref={form} onSubmit={(event) => void submit(event, true)} noValidate>
      <Unsaved when={changed && !create.isSuccess} />
      <Stack gap="lg">
        <Panel title="What clients see">
          <Stack gap="md" maw={640}>
            <TextInput
              label="Name"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={tried && name.trim() === '' ? 'Enter a name for the server.' : null}
              maxLength={80}
              required
            />
            <TextInput
              label="Address"
              description={`${window.location.origin}/t/${workspace.slug}/${slug || '…'}/mcp. It can’t be changed later.`}
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
              description="Optional. Clients pass them to the model with the tools."
              rows={3}
              value={instructions}
              onChange={(event) => setInstructions(event.currentTarget.value)}
            />
          </Stack>
        </Panel>
        <Panel
          title="Tools"
          note="Only enabled tools are listed. The field beside a selected tool is its published name (what clients see)."
          flush
        >
          {tools.length === 0 ? (
            <p className={classes.none}>This workspace has no enabled tools.</p>
          ) : (
            <ToolPicker tools={tools} names={names} onChange={setNames} editable clashes={clashes} />
          )}
        </Panel>
        {prompts.length > 0 && (
          <Panel title="Prompts" note="Users pick prompts in their client." flush>
            <OfferList
              word="prompts"
              offers={prompts.map((one) => ({
                id: one.id,
                key: one.name,
                title: one.title,
                note: one.source_name ?? null,
                awake: true,
              }))}
              names={promptNames}
              onChange={setPromptNames}
              clashes={promptClashes}
            />
          </Panel>
        )}
        <Submit
          sticky
          error={slugRefused ? null : create.error}
          title="The server was not created"
          fault={faultText}
        >
          <Button type="submit" loading={busy}>
            Create and publish
          </Button>
          <Button variant="default" disabled={busy} onClick={(event) => void submit(event, false)}>
            Save as draft
          </Button>
        </Submit>
      </Stack>
    </form>
  );
}
