import { ActionIcon, Button, FileInput, Group, Select, Stack, Textarea, TextInput } from '@mantine/core';
import { IconArrowDown, IconArrowUp, IconPlus, IconTrash } from '@tabler/icons-react';
import { type FormEvent, useRef, useState } from 'react';
import { ApiError } from '../api/http';
import type { Prompt, PromptBlock, PromptDefinition, PromptMessage } from '../api/prompts';
import { fill, placeholders, readBase64 } from '../placeholders';
import { type ArgumentDraft, ArgumentRows, argumentDraft, argumentOf } from './argument-rows';
import classes from './argument-rows.module.css';
import { Panel } from './page';
import { Submit, useFaultFocus } from './submit';
import { Unsaved, useChanged } from './unsaved';

interface MessageDraft {
  id: number;
  role: PromptMessage['role'];
  content: PromptBlock;
}

const kinds: { value: PromptBlock['type']; label: string }[] = [
  { value: 'text', label: 'Text' },
  { value: 'image', label: 'Image' },
  { value: 'audio', label: 'Audio' },
  { value: 'resource', label: 'Embedded resource' },
  { value: 'resource_link', label: 'Link to a resource' },
];

const blank: Record<PromptBlock['type'], PromptBlock> = {
  text: { type: 'text', text: '' },
  image: { type: 'image', data: '', mime_type: 'image/png' },
  audio: { type: 'audio', data: '', mime_type: 'audio/wav' },
  resource: { type: 'resource', uri: '', mime_type: 'text/plain', text: '' },
  resource_link: { type: 'resource_link', uri: '', name: '' },
};

/** Most bytes of one file; all messages together have 2 MiB as Base64. */
const mostBytes = 1024 * 1024;

function texts(block: PromptBlock): string[] {
  if (block.type === 'text') return [block.text];
  if (block.type === 'resource') return [block.uri, block.text ?? ''];
  return block.type === 'resource_link' ? [block.uri] : [];
}

function blockFault(block: PromptBlock, names: readonly string[]): string | null {
  const unknown = texts(block)
    .flatMap(placeholders)
    .find((name) => !names.includes(name));
  if (unknown) return `{{${unknown}}} is not an argument. Add it, or write \\{{ to keep the braces.`;
  if (block.type === 'text') return block.text.trim() === '' ? 'Enter the text.' : null;
  if (block.type === 'image' || block.type === 'audio') return block.data === '' ? 'Choose a file.' : null;
  if (block.uri.trim() === '') return 'Enter a URI.';
  if (block.type === 'resource_link') return block.name.trim() === '' ? 'Enter a name for the link.' : null;
  return block.blob === '' ? 'Choose a file.' : null;
}

/** A prompt: what clients see, arguments, messages, and what a person would get. */
export function PromptEditor({
  initial,
  submitLabel,
  pending,
  error,
  onSubmit,
}: {
  initial?: Prompt;
  submitLabel: string;
  pending: boolean;
  error: Error | null;
  onSubmit: (definition: PromptDefinition) => void;
}) {
  const nextId = useRef(1000);
  const [name, setName] = useState(initial?.name ?? '');
  const [title, setTitle] = useState(initial?.title ?? '');
  const [description, setDescription] = useState(initial?.description ?? '');
  const [drafts, setDrafts] = useState<ArgumentDraft[]>(() =>
    (initial?.arguments ?? []).map((argument, id) => argumentDraft(id, argument)),
  );
  const [messages, setMessages] = useState<MessageDraft[]>(() =>
    (initial?.messages ?? [{ role: 'user' as const, content: { type: 'text' as const, text: '' } }]).map(
      (message, id) => ({ id, ...message }),
    ),
  );
  const [values, setValues] = useState<Record<string, string>>({});
  const [tries, setTries] = useState(0);
  const tried = tries > 0;

  const names = drafts.map((draft) => draft.name);
  const refused = error instanceof ApiError ? error : null;
  const nameFault = /^[A-Za-z0-9_-]{1,64}$/.test(name)
    ? null
    : 'Use 1 to 64 letters, digits, hyphens and underscores.';
  const faulty =
    nameFault !== null ||
    messages.length === 0 ||
    messages.some((message) => blockFault(message.content, names)) ||
    names.some((one, place) => one === '' || names.indexOf(one) !== place);
  const undeclared = [...new Set(messages.flatMap((one) => texts(one.content)).flatMap(placeholders))].filter(
    (one) => !names.includes(one),
  );

  const add = (argument: { name: string; required?: boolean }) => {
    nextId.current += 1;
    setDrafts((old) => [...old, argumentDraft(nextId.current, argument)]);
  };
  const change = (id: number, part: Partial<MessageDraft>) =>
    setMessages((old) => old.map((one) => (one.id === id ? { ...one, ...part } : one)));
  const move = (place: number, by: number) =>
    setMessages((old) => {
      const next = [...old];
      const [one] = next.splice(place, 1);
      if (one) next.splice(place + by, 0, one);
      return next;
    });

  const changed = useChanged([name, title, description, drafts, messages]);
  const form = useFaultFocus(error ?? tries);

  function submit(event: FormEvent) {
    event.preventDefault();
    setTries((old) => old + 1);
    if (faulty) return;
    onSubmit({
      name,
      title: title.trim(),
      description: description.trim(),
      arguments: drafts.map(argumentOf),
      messages: messages.map(({ role, content }) => ({ role, content })),
    });
  }

  return (
    <form ref={form} onSubmit={submit} noValidate>
      <Unsaved when={changed} />
      <Stack gap="lg">
        <Panel title="What clients see">
          <Stack gap="md" maw={640}>
            <TextInput
              label="Name"
              description="Users pick the prompt by this name, often as a slash command."
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={refused?.field === 'name' ? refused.message : tried && nameFault}
              spellCheck={false}
              autoCapitalize="none"
              className={classes.mono}
              required
            />
            <TextInput
              label="Title"
              value={title}
              onChange={(event) => setTitle(event.currentTarget.value)}
              maxLength={120}
            />
            <Textarea
              label="Description"
              rows={2}
              value={description}
              onChange={(event) => setDescription(event.currentTarget.value)}
              maxLength={4000}
            />
          </Stack>
        </Panel>
        <Panel
          title="Arguments"
          note="Values the user fills in. Use {{name}} in a message to insert one."
          aside={
            <Button
              size="compact-sm"
              variant="default"
              leftSection={<IconPlus size={15} aria-hidden />}
              onClick={() => add({ name: '' })}
            >
              Add an argument
            </Button>
          }
        >
          <Stack gap="md">
            {drafts.length === 0 && <p className={classes.none}>This prompt takes no arguments.</p>}
            <ArgumentRows word="Argument" drafts={drafts} onChange={setDrafts} tried={tried} />
            {undeclared.length > 0 && (
              <Group gap="xs">
                {undeclared.map((one) => (
                  <Button
                    key={one}
                    size="compact-sm"
                    variant="light"
                    onClick={() => add({ name: one, required: true })}
                  >
                    Add argument “{one}”
                  </Button>
                ))}
              </Group>
            )}
          </Stack>
        </Panel>
        <Panel title="Conversation" note="The messages that start the conversation, in this order.">
          <Stack gap="md">
            {messages.map((message, place) => {
              const fault = blockFault(message.content, names);
              return (
                <fieldset key={message.id} className={classes.message}>
                  <legend className="visually-hidden">Message {place + 1}</legend>
                  <div className={classes.bar}>
                    <Select
                      label="Role"
                      data={[
                        { value: 'user', label: 'User' },
                        { value: 'assistant', label: 'Assistant' },
                      ]}
                      value={message.role}
                      onChange={(role) => change(message.id, { role: role === 'assistant' ? role : 'user' })}
                      allowDeselect={false}
                      w={150}
                    />
                    <Select
                      label="Content type"
                      data={kinds}
                      value={message.content.type}
                      onChange={(type) => {
                        const kind = kinds.find((one) => one.value === type);
                        if (kind) change(message.id, { content: blank[kind.value] });
                      }}
                      allowDeselect={false}
                      w={190}
                    />
                    <Group gap={4}>
                      <ActionIcon
                        variant="subtle"
                        color="gray"
                        disabled={place === 0}
                        aria-label={`Move message ${place + 1} up`}
                        onClick={() => move(place, -1)}
                      >
                        <IconArrowUp size={17} aria-hidden />
                      </ActionIcon>
                      <ActionIcon
                        variant="subtle"
                        color="gray"
                        disabled={place === messages.length - 1}
                        aria-label={`Move message ${place + 1} down`}
                        onClick={() => move(place, 1)}
                      >
                        <IconArrowDown size={17} aria-hidden />
                      </ActionIcon>
                      <ActionIcon
                        variant="subtle"
                        color="gray"
                        aria-label={`Remove message ${place + 1}`}
                        onClick={() => setMessages((old) => old.filter((one) => one.id !== message.id))}
                      >
                        <IconTrash size={17} aria-hidden />
                      </ActionIcon>
                    </Group>
                  </div>
                  <BlockFields
                    block={message.content}
                    place={place}
                    onChange={(content) => change(message.id, { content })}
                  />
                  {tried && fault && (
                    <p className={classes.fault} role="alert">
                      {fault}
                    </p>
                  )}
                </fieldset>
              );
            })}
            {tried && messages.length === 0 && <p className={classes.fault}>Add at least one message.</p>}
            <div>
              <Button
                variant="default"
                leftSection={<IconPlus size={16} aria-hidden />}
                onClick={() => {
                  nextId.current += 1;
                  const role = messages.at(-1)?.role === 'user' ? 'assistant' : 'user';
                  setMessages((old) => [...old, { id: nextId.current, role, content: blank.text }]);
                }}
              >
                Add a message
              </Button>
            </div>
          </Stack>
        </Panel>
        <Panel title="Preview" note="What the client receives.">
          <Stack gap="md">
            {drafts.some((draft) => draft.name !== '') && (
              <Group gap="md" align="start">
                {drafts
                  .filter((draft) => draft.name !== '')
                  .map((draft) => (
                    <TextInput
                      key={draft.id}
                      label={`Value of ${draft.name}`}
                      value={values[draft.name] ?? ''}
                      onChange={(event) => {
                        const { value } = event.currentTarget;
                        setValues((old) => ({ ...old, [draft.name]: value }));
                      }}
                    />
                  ))}
              </Group>
            )}
            <ol aria-label="Rendered messages" className={classes.preview}>
              {messages.map((message) => (
                <Said key={message.id} message={message} values={values} />
              ))}
            </ol>
          </Stack>
        </Panel>
        <Submit
          sticky
          error={error}
          title="The prompt was not saved"
          fault={tried && faulty && 'Fix the highlighted fields.'}
        >
          <Button type="submit" loading={pending}>
            {submitLabel}
          </Button>
        </Submit>
      </Stack>
    </form>
  );
}

function BlockFields({
  block,
  place,
  onChange,
}: {
  block: PromptBlock;
  place: number;
  onChange: (block: PromptBlock) => void;
}) {
  const [tooLarge, setTooLarge] = useState(false);
  const file = (accept: string, given: boolean, done: (data: string, mime: string) => void) => (
    <FileInput
      label={`File of message ${place + 1}`}
      description="Up to 1 MiB."
      placeholder={given ? 'File attached. Choose another to replace it.' : 'Choose a file'}
      accept={accept}
      error={tooLarge && 'This file is larger than 1 MiB.'}
      onChange={(chosen) => {
        setTooLarge(chosen !== null && chosen.size > mostBytes);
        if (chosen && chosen.size <= mostBytes) {
          void readBase64(chosen).then((data) => done(data, chosen.type || 'application/octet-stream'));
        }
      }}
    />
  );
  switch (block.type) {
    case 'text':
      return (
        <Textarea
          label={`Text of message ${place + 1}`}
          rows={3}
          value={block.text}
          onChange={(event) => onChange({ ...block, text: event.currentTarget.value })}
        />
      );
    case 'image':
      return file('image/*', block.data !== '', (data, mime_type) => onChange({ ...block, data, mime_type }));
    case 'audio':
      return file('audio/*', block.data !== '', (data, mime_type) => onChange({ ...block, data, mime_type }));
    case 'resource_link':
      return (
        <Group gap="md" align="start" grow>
          <TextInput
            label={`URI of message ${place + 1}`}
            value={block.uri}
            onChange={(event) => onChange({ ...block, uri: event.currentTarget.value })}
            spellCheck={false}
            className={classes.mono}
          />
          <TextInput
            label="Name of the link"
            value={block.name}
            onChange={(event) => onChange({ ...block, name: event.currentTarget.value })}
          />
        </Group>
      );
    case 'resource':
      return (
        <>
          <Group gap="md" align="start" grow>
            <TextInput
              label={`URI of message ${place + 1}`}
              value={block.uri}
              onChange={(event) => onChange({ ...block, uri: event.currentTarget.value })}
              spellCheck={false}
              className={classes.mono}
            />
            <TextInput
              label="Media type"
              value={block.mime_type ?? ''}
              onChange={(event) => onChange({ ...block, mime_type: event.currentTarget.value || undefined })}
              spellCheck={false}
              className={classes.mono}
            />
            <Select
              label="Content"
              data={[
                { value: 'text', label: 'Text' },
                { value: 'file', label: 'File' },
              ]}
              value={block.blob === undefined ? 'text' : 'file'}
              onChange={(kind) => {
                const { text: _, blob: __, ...rest } = block;
                onChange(kind === 'file' ? { ...rest, blob: '' } : { ...rest, text: '' });
              }}
              allowDeselect={false}
            />
          </Group>
          {block.blob === undefined ? (
            <Textarea
              label={`Text of message ${place + 1}`}
              rows={3}
              value={block.text ?? ''}
              onChange={(event) => onChange({ ...block, text: event.currentTarget.value })}
            />
          ) : (
            file('*/*', block.blob !== '', (blob, mime_type) => onChange({ ...block, blob, mime_type }))
          )}
        </>
      );
  }
}

function Said({ message, values }: { message: MessageDraft; values: Record<string, string> }) {
  const { content } = message;
  return (
    <li className={classes.said}>
      <span className={classes.who}>{message.role === 'user' ? 'User' : 'Assistant'}</span>
      {content.type === 'text' && <p>{fill(content.text, values)}</p>}
      {content.type === 'image' &&
        (content.data === '' ? (
          <p>(an image)</p>
        ) : (
          <img src={`data:${content.mime_type};base64,${content.data}`} alt="Content of this message" />
        ))}
      {content.type === 'audio' && <p>(audio, {content.mime_type})</p>}
      {content.type === 'resource' && (
        <>
          <p>
            <code>{fill(content.uri, values)}</code>
          </p>
          <pre>{content.blob === undefined ? fill(content.text ?? '', values) : '(a file)'}</pre>
        </>
      )}
      {content.type === 'resource_link' && (
        <p>
          {content.name}: <code>{fill(content.uri, values)}</code>
        </p>
      )}
    </li>
  );
}
