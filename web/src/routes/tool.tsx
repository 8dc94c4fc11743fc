import {
  Alert,
  Button,
  Group,
  SegmentedControl,
  Stack,
  Switch,
  Tabs,
  Textarea,
  TextInput,
} from '@mantine/core';
import { IconPencil, IconPlayerPlay } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { ApiError } from '../api/http';
import { type Tool, toolQuery, useDeleteTool, useTryTool, useUpdateTool } from '../api/tools';
import { Method, Status, Tag } from '../components/badges';
import { DeletePanel } from '../components/delete-panel';
import { InlineCode } from '../components/inline-code';
import { LinkButton } from '../components/link-button';
import { Facts, Loaded, Page, Panel } from '../components/page';
import { SchemaForm } from '../components/schema-form';
import { SchemaPanel } from '../components/schema-tree';
import { Submit, useFaultFocus } from '../components/submit';
import { toastDone, toastFailed } from '../components/toast';
import { TryResultView } from '../components/try-result';
import { Unsaved, useChanged } from '../components/unsaved';
import { isObject, resolve, type Schema, startingValue } from '../json-schema';
import { sentence } from '../sentence';
import { useMay, useSession } from '../session';

export function ToolPage() {
  const { workspace } = useSession();
  const { id } = useParams({ from: '/w/$ws/tools/$id' });
  const tool = useQuery(toolQuery(workspace.slug, id));
  if (!tool.data) {
    return (
      <Page title="Tool" back={{ label: 'Tools', to: '/w/$ws/tools', params: { ws: workspace.slug } }}>
        <Loaded query={tool}>{() => null}</Loaded>
      </Page>
    );
  }
  return <ToolView key={tool.data.id} tool={tool.data} />;
}

function ToolView({ tool }: { tool: Tool }) {
  const { workspace } = useSession();
  const ws = workspace.slug;
  const { tab } = useSearch({ from: '/w/$ws/tools/$id' });
  const navigate = useNavigate();
  const edits = useMay('edit_registry');
  const update = useUpdateTool(ws, tool.id);
  const hints = tool.annotations;
  return (
    <Page
      title={tool.name}
      back={{ label: tool.source_name, to: '/w/$ws/sources/$id', params: { ws, id: tool.source_id } }}
      beside={
        <Group gap={6}>
          {hints.readOnlyHint && <Tag>read-only</Tag>}
          {hints.destructiveHint && <Tag tone="bad">destructive</Tag>}
          {hints.idempotentHint && !hints.readOnlyHint && <Tag>idempotent</Tag>}
          {tool.customised && <Tag>edited</Tag>}
        </Group>
      }
      lede={
        <>
          <Method method={tool.method} /> <code>{tool.path}</code>
        </>
      }
      actions={
        <>
          {edits && (
            <Switch
              label={tool.enabled ? 'Enabled' : 'Disabled'}
              checked={tool.enabled}
              disabled={update.isPending || tool.state === 'removed'}
              onChange={(event) =>
                update.mutate({ enabled: event.currentTarget.checked }, { onError: toastFailed })
              }
              styles={{ root: { alignSelf: 'center' } }}
            />
          )}
          {edits && tool.definition && (
            <LinkButton
              to="/w/$ws/tools/$id/edit"
              params={{ ws, id: tool.id }}
              variant="default"
              leftSection={<IconPencil size={16} aria-hidden />}
            >
              Edit request
            </LinkButton>
          )}
        </>
      }
    >
      {tool.state === 'removed' && (
        <Alert color="red" data-tone="red" title="This operation was removed">
          The latest document no longer contains this operation. The tool can’t be called.
        </Alert>
      )}
      {tool.warnings.length > 0 && (
        <Alert color="yellow" data-tone="yellow" title="Good to know">
          {tool.warnings.map((warning) => (
            <div key={warning}>
              <InlineCode text={sentence(warning)} />
            </div>
          ))}
        </Alert>
      )}
      <Tabs
        value={tab ?? 'try'}
        onChange={(value) =>
          void navigate({
            to: '/w/$ws/tools/$id',
            params: { ws, id: tool.id },
            search: { tab: value ?? undefined },
            replace: true,
          })
        }
      >
        <Tabs.List mb="lg">
          <Tabs.Tab value="try">Try it</Tabs.Tab>
          <Tabs.Tab value="schema">Schema</Tabs.Tab>
          <Tabs.Tab value="text">Name and description</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="try">
          <Try tool={tool} />
        </Tabs.Panel>
        <Tabs.Panel value="schema">
          <Stack gap="lg">
            <SchemaPanel title="Arguments" schema={tool.input_schema} />
            {tool.output_schema ? (
              <SchemaPanel title="Result" schema={tool.output_schema} />
            ) : (
              <Panel title="Result">
                The document doesn’t describe the result as an object, so clients receive text.
              </Panel>
            )}
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="text">
          <Texts key={`${tool.name}${tool.title}${tool.description}`} tool={tool} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

function Try({ tool }: { tool: Tool }) {
  const { workspace } = useSession();
  const calls = useMay('call_tools');
  const schema = (isObject(tool.input_schema) ? tool.input_schema : {}) as Schema;
  const run = useTryTool(workspace.slug, tool.id);
  const [mode, setMode] = useState('form');
  const [value, setValue] = useState<Record<string, unknown>>(() =>
    startingValue(resolve(schema, schema), schema),
  );
  const [text, setText] = useState('{}');
  const [textFault, setTextFault] = useState<string | null>(null);

  /** The raw text as arguments, or null with the fault shown. */
  function parse(): Record<string, unknown> | null {
    try {
      const parsed: unknown = JSON.parse(text.trim() === '' ? '{}' : text);
      if (!isObject(parsed)) throw new Error('The arguments are one JSON object: { … }');
      setTextFault(null);
      return parsed;
    } catch (cause) {
      setTextFault(cause instanceof Error ? cause.message : 'This is not JSON.');
      return null;
    }
  }

  function change(next: string) {
    if (next === 'json') {
      setText(JSON.stringify(value, null, 2));
      setTextFault(null);
      setMode('json');
      return;
    }
    const parsed = parse();
    if (parsed === null) return;
    setValue(parsed);
    setMode('form');
  }

  function submit(event: FormEvent) {
    event.preventDefault();
    const args = mode === 'json' ? parse() : value;
    if (args !== null) run.mutate(args);
  }

  const refused = run.error instanceof ApiError ? run.error : null;
  return (
    <Stack gap="lg">
      <Panel
        title="Arguments"
        aside={
          <SegmentedControl
            size="xs"
            aria-label="Input mode"
            value={mode}
            onChange={change}
            data={[
              { value: 'form', label: 'Form' },
              { value: 'json', label: 'JSON' },
            ]}
          />
        }
      >
        <form onSubmit={submit} noValidate>
          {mode === 'form' ? (
            <div style={{ maxWidth: 640 }}>
              <SchemaForm schema={schema} value={value} onChange={setValue} faults={run.data?.errors ?? []} />
            </div>
          ) : (
            <Textarea
              aria-label="Arguments as JSON"
              rows={12}
              value={text}
              onChange={(event) => {
                setText(event.currentTarget.value);
                setTextFault(null);
              }}
              error={textFault}
              spellCheck={false}
              ff="monospace"
              styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 13 } }}
            />
          )}
          <Group mt="lg" gap="md">
            <Button
              type="submit"
              loading={run.isPending}
              disabled={!calls || tool.state === 'removed'}
              leftSection={<IconPlayerPlay size={16} aria-hidden />}
            >
              Run
            </Button>
            {!calls && <span>Your role can view tools but not call them.</span>}
            {calls && hintsDestructive(tool) && <Status tone="warn">This tool changes data.</Status>}
          </Group>
        </form>
      </Panel>
      <div aria-live="polite">
        {refused && (
          <Alert color="red" data-tone="red" title="The call failed">
            {refused.message}
          </Alert>
        )}
        {run.data && (
          <Panel title="Result">
            <TryResultView result={run.data} />
          </Panel>
        )}
      </div>
    </Stack>
  );
}

const hintsDestructive = (tool: Tool) =>
  tool.annotations.destructiveHint === true && tool.annotations.readOnlyHint !== true;

type Override = { name?: null; title?: null; description?: null };

/** Shows the original of an edited text, and a button that restores it. */
function Original({
  text,
  part,
  onReset,
}: {
  text: string;
  part: Override;
  onReset?: (part: Override) => void;
}) {
  return (
    <Group gap="xs" mt={6} wrap="nowrap" align="baseline">
      <span style={{ fontSize: 13, color: 'var(--mantine-color-dimmed)' }}>
        Originally: {text || 'empty'}
      </span>
      {onReset && (
        <Button size="compact-xs" variant="subtle" onClick={() => onReset(part)}>
          Reset
        </Button>
      )}
    </Group>
  );
}

const nameRule = /^[A-Za-z0-9_-]{1,64}$/;

function Texts({ tool }: { tool: Tool }) {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const edits = useMay('edit_registry');
  const update = useUpdateTool(workspace.slug, tool.id);
  const remove = useDeleteTool(workspace.slug);
  const [name, setName] = useState(tool.name);
  const [title, setTitle] = useState(tool.title);
  const [description, setDescription] = useState(tool.description);
  const { original } = tool;
  const nameFault = nameRule.test(name) ? null : 'Use 1 to 64 letters, digits, hyphens and underscores.';
  const refused = update.error instanceof ApiError ? update.error : null;
  // An override that equals the original is no override.
  const override = (text: string, from: string) => (text.trim() === from.trim() ? null : text.trim());

  const changed = useChanged([name, title, description]);
  const form = useFaultFocus(update.error);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (nameFault) return;
    update.mutate(
      {
        name: override(name, original.name),
        title: override(title, original.title),
        description: override(description, original.description),
      },
      { onSuccess: () => toastDone('Tool saved.') },
    );
  }

  const reset = (part: Override) =>
    update.mutate(part, { onSuccess: () => toastDone('Original restored.'), onError: toastFailed });

  return (
    <Stack gap="lg">
      <Panel
        note={
          tool.definition
            ? 'Models choose tools by these three texts.'
            : 'Models choose tools by these three texts. Your edits are kept when you import the document again.'
        }
        title="What the model sees"
      >
        <form ref={form} onSubmit={submit} noValidate>
          <Unsaved when={changed && !update.isPending} />
          <fieldset disabled={!edits} style={{ border: 0, margin: 0, padding: 0, minWidth: 0 }}>
            <Stack gap="md" maw={680}>
              <div>
                <TextInput
                  label="Name"
                  value={name}
                  onChange={(event) => setName(event.currentTarget.value)}
                  error={nameFault ?? (refused?.field === 'name' ? refused.message : null)}
                  spellCheck={false}
                  styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
                />
                {tool.name !== original.name && (
                  <Original onReset={edits ? reset : undefined} text={original.name} part={{ name: null }} />
                )}
              </div>
              <div>
                <TextInput
                  label="Title"
                  value={title}
                  onChange={(event) => setTitle(event.currentTarget.value)}
                  maxLength={200}
                />
                {tool.title !== original.title && (
                  <Original
                    onReset={edits ? reset : undefined}
                    text={original.title}
                    part={{ title: null }}
                  />
                )}
              </div>
              <div>
                <Textarea
                  label="Description"
                  rows={7}
                  value={description}
                  onChange={(event) => setDescription(event.currentTarget.value)}
                />
                {tool.description !== original.description && (
                  <Original
                    onReset={edits ? reset : undefined}
                    text={
                      original.description.length > 160
                        ? `${original.description.slice(0, 160)}…`
                        : original.description
                    }
                    part={{ description: null }}
                  />
                )}
              </div>
              {edits && (
                <Submit error={update.error} title="The tool was not saved">
                  <Button type="submit" loading={update.isPending}>
                    Save
                  </Button>
                </Submit>
              )}
            </Stack>
          </fieldset>
        </form>
      </Panel>
      <Panel title="About">
        <Facts
          items={[
            ['Source', tool.source_name],
            ['Used by', tool.used_by_servers.length === 0 ? 'No server' : tool.used_by_servers.join(', ')],
          ]}
        />
      </Panel>
      {edits && tool.definition && (
        <DeletePanel
          noun="tool"
          name={tool.name}
          note="It is removed from every server immediately. To keep it, disable it instead."
          busy={remove.isPending}
          error={remove.error}
          act={() =>
            remove.mutate(tool.id, {
              onSuccess: () => {
                toastDone(`${tool.name} was deleted.`);
                void navigate({
                  to: '/w/$ws/sources/$id',
                  params: { ws: workspace.slug, id: tool.source_id },
                  ignoreBlocker: true,
                });
              },
            })
          }
        >
          {tool.used_by_servers.length > 0
            ? `The ${tool.used_by_servers.length === 1 ? 'server' : 'servers'} ${tool.used_by_servers.join(', ')} stop offering it immediately.`
            : 'No server offers it.'}{' '}
          This can’t be undone. To keep it, disable it instead.
        </DeletePanel>
      )}
    </Stack>
  );
}
