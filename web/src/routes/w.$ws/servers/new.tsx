import { Button, Stack, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import { useRef } from 'react';
import { type PromptSummary, promptsQuery, useSetServerPrompts } from '../../../api/prompts';
import { useCreateServer, useSetPublished, useSetServerTools } from '../../../api/servers';
import { useToolBudget } from '../../../api/tool-budget';
import { type ToolSummary, toolsQuery } from '../../../api/tools';
import { nameAndAddress } from '../../../components/address';
import { useFields } from '../../../components/form';
import { OfferList } from '../../../components/offer-list';
import classes from '../../../components/operations.module.css';
import { Loaded, Page, Panel } from '../../../components/page';
import { clashingNames } from '../../../components/published-choice';
import { Restricted } from '../../../components/restricted';
import { Submit } from '../../../components/submit';
import { toastDone, toastFailed } from '../../../components/toast';
import { ToolPicker } from '../../../components/tool-picker';
import { Unsaved } from '../../../components/unsaved';
import { blank, nameFault } from '../../../rules';
import { text } from '../../../search';
import { useSession } from '../../../session';
import { slugFault, slugField, suggestSlug } from '../../../slug';

export const Route = createFileRoute('/w/$ws/servers/new')({
  component: NewServerPage,
  validateSearch: (search: Record<string, unknown>): { source?: string } => ({ source: text(search.source) }),
});

function NewServerPage() {
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
      help="console#servers"
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
  const { source } = Route.useSearch();
  const navigate = useNavigate();
  const create = useCreateServer(workspace.slug);
  const publish = useSetPublished(workspace.slug);
  const publishNames = useSetServerTools(workspace.slug);
  const publishPrompts = useSetServerPrompts(workspace.slug);
  // Nothing to publish is a fault of publishing only: a draft may be empty.
  const draft = useRef(false);
  const chosen = tools.filter((tool) => tool.source_id === source);
  const called = chosen[0]?.source_name ?? '';
  const form = useFields({
    initialValues: {
      name: called,
      slug: suggestSlug(called),
      description: '',
      instructions: '',
      tools: new Map(chosen.map((tool) => [tool.id, tool.name])),
      prompts: new Map<string, string>(),
    },
    validate: ({ name, slug, tools, prompts }) => {
      const twice = [...clashingNames(tools), ...clashingNames(prompts)];
      return {
        name: blank(name, 'Enter a name for the server.'),
        slug: slugFault(slug),
        names: [...tools.values(), ...prompts.values()].some(nameFault),
        twice: twice.length > 0 && `Two items have the name ${twice.join(', ')}. Change one of them.`,
        nothing:
          !draft.current &&
          tools.size === 0 &&
          prompts.size === 0 &&
          'Select at least one tool or prompt to publish, or save a draft.',
      };
    },
    error: create.error,
    // A refusal about tools stands beside the button: the list has no place for it.
    place: (refusal) => (refusal.field === 'tools' ? undefined : slugField(refusal)),
  });
  const { slug, tools: names, prompts: promptNames } = form.values;
  const budget = useToolBudget(workspace.slug, slug, names);
  const fields = nameAndAddress(form);
  const { twice, nothing, ...others } = form.errors;
  const faultText = twice ?? (Object.keys(others).length > 0 ? form.fault : nothing);

  const submit = (asDraft: boolean) => {
    draft.current = asDraft;
    return form.onSubmit((values) => void send(values, !asDraft));
  };

  async function send({ name, slug, description, instructions }: typeof form.values, andPublish: boolean) {
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
    <form ref={form.ref} onSubmit={(event) => submit(false)(event)} noValidate>
      <Unsaved when={form.isChanged() && !create.isSuccess} />
      <Stack gap="lg">
        <Panel title="What clients see">
          <Stack gap="md" maw={640}>
            <TextInput label="Name" maxLength={80} required {...fields.name} />
            <TextInput
              label="Address"
              description={`${window.location.origin}/t/${workspace.slug}/${slug || '…'}/mcp. It can’t be changed later.`}
              spellCheck={false}
              autoCapitalize="none"
              required
              {...fields.slug}
            />
            <TextInput label="Description" maxLength={300} {...form.getInputProps('description')} />
            <Textarea
              label="Instructions"
              description="Optional. Clients pass them to the model with the tools."
              rows={3}
              {...form.getInputProps('instructions')}
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
            <ToolPicker
              tools={tools}
              names={names}
              onChange={(next) => form.setFieldValue('tools', new Map(next))}
              clashes={clashingNames(names)}
              budget={budget}
            />
          )}
        </Panel>
        {prompts.length > 0 && (
          <Panel title="Prompts" note="Users pick prompts in their client." flush>
            <OfferList
              kind="prompt"
              offers={prompts.map((one) => ({
                id: one.id,
                name: one.name,
                title: one.title,
                note: one.source_name ?? null,
                awake: true,
              }))}
              names={promptNames}
              onChange={(next) => form.setFieldValue('prompts', new Map(next))}
              clashes={clashingNames(promptNames)}
            />
          </Panel>
        )}
        <Submit sticky error={form.refusal} title="The server was not created" fault={faultText}>
          <Button type="submit" loading={busy}>
            Create and publish
          </Button>
          <Button variant="default" disabled={busy} onClick={() => submit(true)()}>
            Save as draft
          </Button>
        </Submit>
      </Stack>
    </form>
  );
}
