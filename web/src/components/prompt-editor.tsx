import { Button, Group, Stack, Textarea, TextInput } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import type { Prompt, PromptDefinition } from '../api/prompts';
import { placeholders } from '../placeholders';
import { nameFault } from '../rules';
import { type ArgumentDraft, ArgumentRows, argumentDraft, argumentFaults, argumentOf } from './argument-rows';
import classes from './argument-rows.module.css';
import { useFields } from './form';
import { Panel } from './page';
import { blockFault, type MessageDraft, PromptMessages, texts } from './prompt-messages';
import { PromptPreview } from './prompt-preview';
import type { EditorProps } from './published-page';
import { Submit } from './submit';
import { Unsaved } from './unsaved';

/** A prompt while it is edited. */
export type PromptDraft = {
  name: string;
  title: string;
  description: string;
  arguments: ArgumentDraft[];
  messages: MessageDraft[];
};

const undeclared = ({ arguments: drafts, messages }: PromptDraft) => {
  const names = drafts.map((draft) => draft.name);
  const used = messages.flatMap((one) => texts(one.content)).flatMap(placeholders);
  return [...new Set(used)].filter((one) => !names.includes(one));
};

function faultsOf({ name, arguments: drafts, messages }: PromptDraft): Record<string, string | null | false> {
  const names = drafts.map((draft) => draft.name);
  return {
    name: nameFault(name),
    messages: messages.length === 0 && 'Add at least one message.',
    ...Object.fromEntries(argumentFaults(drafts).map((fault, place) => [`arguments.${place}`, fault])),
    ...Object.fromEntries(
      messages.map(({ content }, place) => [`messages.${place}`, blockFault(content, names)]),
    ),
  };
}

/** A prompt: what clients see, arguments, messages, and what a person would get. */
export function PromptEditor({
  initial,
  submitLabel,
  pending,
  error,
  onSubmit,
}: { initial?: Prompt } & EditorProps<PromptDefinition>) {
  const form = useFields<PromptDraft>({
    initialValues: {
      name: initial?.name ?? '',
      title: initial?.title ?? '',
      description: initial?.description ?? '',
      arguments: (initial?.arguments ?? []).map((argument, id) => argumentDraft(id, argument)),
      messages: (
        initial?.messages ?? [{ role: 'user' as const, content: { type: 'text' as const, text: '' } }]
      ).map((message, id) => ({ id, ...message })),
    },
    validate: faultsOf,
    error,
  });
  const { arguments: drafts } = form.values;
  const missing = undeclared(form.values);

  const add = (argument: { name: string; required?: boolean }) =>
    form.insertListItem(
      'arguments',
      argumentDraft(Math.max(0, ...drafts.map((one) => one.id)) + 1, argument),
    );

  const send = ({ name, title, description, arguments: drafts, messages }: PromptDraft) =>
    onSubmit({
      name,
      title: title.trim(),
      description: description.trim(),
      arguments: drafts.map(argumentOf),
      messages: messages.map(({ role, content }) => ({ role, content })),
    });

  return (
    <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
      <Unsaved when={form.isChanged()} />
      <Stack gap="lg">
        <Panel title="What clients see">
          <Stack gap="md" maw={640}>
            <TextInput
              label="Name"
              description="Users pick the prompt by this name, often as a slash command."
              {...form.getInputProps('name')}
              spellCheck={false}
              autoCapitalize="none"
              className={classes.mono}
              required
            />
            <TextInput label="Title" {...form.getInputProps('title')} maxLength={120} />
            <Textarea label="Description" rows={2} {...form.getInputProps('description')} maxLength={4000} />
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
            <ArgumentRows
              word="Argument"
              drafts={drafts}
              onChange={(next) => form.setFieldValue('arguments', next)}
              tried={drafts.some((_, place) => form.errors[`arguments.${place}`])}
            />
            {missing.length > 0 && (
              <Group gap="xs">
                {missing.map((one) => (
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
        <PromptMessages form={form} />
        <PromptPreview drafts={drafts} messages={form.values.messages} />
        <Submit sticky error={error} title="The prompt was not saved" fault={form.fault}>
          <Button type="submit" loading={pending}>
            {submitLabel}
          </Button>
        </Submit>
      </Stack>
    </form>
  );
}
