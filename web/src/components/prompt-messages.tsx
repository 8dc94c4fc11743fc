import { ActionIcon, Button, FileInput, Group, Select, Stack, Textarea, TextInput } from '@mantine/core';
import { IconArrowDown, IconArrowUp, IconPlus, IconTrash } from '@tabler/icons-react';
import { useState } from 'react';
import type { PromptBlock, PromptMessage } from '../api/prompts';
import { placeholders, readBase64 } from '../placeholders';
import classes from './argument-rows.module.css';
import type { Fields } from './form';
import { Panel } from './page';
import type { PromptDraft } from './prompt-editor';

export type MessageDraft = {
  id: number;
  role: PromptMessage['role'];
  content: PromptBlock;
};

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

/** The texts of a block in which arguments are inserted. */
export function texts(block: PromptBlock): string[] {
  if (block.type === 'text') return [block.text];
  if (block.type === 'resource') return [block.uri, block.text ?? ''];
  return block.type === 'resource_link' ? [block.uri] : [];
}

/** The fault of a block, for a prompt with arguments of these names. */
export function blockFault(block: PromptBlock, names: readonly string[]): string | null {
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

/** The messages of a prompt in their order, each with its role and content. */
export function PromptMessages({ form }: { form: Fields<PromptDraft> }) {
  const { messages } = form.values;
  const change = (place: number, part: Partial<MessageDraft>) =>
    form.setFieldValue('messages', (old) =>
      old.map((one, index) => (index === place ? { ...one, ...part } : one)),
    );
  const move = (from: number, by: number) => form.reorderListItem('messages', { from, to: from + by });
  return (
    <Panel title="Conversation" note="The messages that start the conversation, in this order.">
      <Stack gap="md">
        {messages.map((message, place) => {
          const fault = form.errors[`messages.${place}`];
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
                  onChange={(role) => change(place, { role: role === 'assistant' ? role : 'user' })}
                  allowDeselect={false}
                  w={150}
                />
                <Select
                  label="Content type"
                  data={kinds}
                  value={message.content.type}
                  onChange={(type) => {
                    const kind = kinds.find((one) => one.value === type);
                    if (kind) change(place, { content: blank[kind.value] });
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
                    onClick={() => form.removeListItem('messages', place)}
                  >
                    <IconTrash size={17} aria-hidden />
                  </ActionIcon>
                </Group>
              </div>
              <BlockFields
                block={message.content}
                place={place}
                onChange={(content) => change(place, { content })}
              />
              {fault && (
                <p className={classes.fault} role="alert">
                  {fault}
                </p>
              )}
            </fieldset>
          );
        })}
        {form.errors.messages && <p className={classes.fault}>{form.errors.messages}</p>}
        <div>
          <Button
            variant="default"
            leftSection={<IconPlus size={16} aria-hidden />}
            onClick={() => {
              const id = Math.max(0, ...messages.map((one) => one.id)) + 1;
              const role = messages.at(-1)?.role === 'user' ? 'assistant' : 'user';
              form.insertListItem('messages', { id, role, content: blank.text });
            }}
          >
            Add a message
          </Button>
        </div>
      </Stack>
    </Panel>
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
