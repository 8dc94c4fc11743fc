import {
  Button,
  FileInput,
  Group,
  SegmentedControl,
  Select,
  Stack,
  Textarea,
  TextInput,
} from '@mantine/core';
import type { Resource, ResourceDefinition, ResourceHolds } from '../api/resources';
import type { Source } from '../api/sources';
import { placeholders, readBase64, templateVariables } from '../placeholders';
import { blank } from '../rules';
import { type ArgumentDraft, ArgumentRows, argumentDraft, argumentOf } from './argument-rows';
import classes from './argument-rows.module.css';
import { useFields } from './form';
import { Panel } from './page';
import type { EditorProps } from './published-page';
import { Submit } from './submit';
import { Unsaved } from './unsaved';

/** Most bytes of a file. */
const mostBytes = 2 * 1024 * 1024;

/** A resource while it is edited. */
type ResourceDraft = {
  uri: string;
  name: string;
  title: string;
  description: string;
  mime_type: string;
  kind: ResourceHolds['kind'];
  text: string;
  /** The file in Base64; null keeps the one that is stored. */
  data: string | null;
  /** Why the chosen file is not taken. */
  unreadable: string | null;
  source_id: string | null;
  path: string;
  /** Entries for variables, also for those that the template does not have now. */
  described: ArgumentDraft[];
};

const uriRule = /^[A-Za-z][A-Za-z0-9+.-]*:\S+$/;

/** The variables of the template in its order. */
const variablesOf = ({ uri, described }: ResourceDraft) =>
  templateVariables(uri).map(
    (name, place) => described.find((draft) => draft.name === name) ?? argumentDraft(1000 + place, { name }),
  );

function holdsFault(draft: ResourceDraft, stored: boolean): string | null {
  const { kind, uri, text, data, unreadable, source_id, path } = draft;
  switch (kind) {
    case 'text': {
      const names = templateVariables(uri);
      const unknown = names.length > 0 && placeholders(text).find((one) => !names.includes(one));
      return unknown ? `{{${unknown}}} is not a variable of the template.` : null;
    }
    case 'file':
      return unreadable ?? (data === null && !stored ? 'Choose a file.' : null);
    case 'http':
      if (source_id === null) return 'Choose a source.';
      return path.startsWith('/') ? null : 'Begin the path with a slash.';
  }
}

function holdsOf({ kind, text, data, source_id, path }: ResourceDraft): ResourceHolds {
  switch (kind) {
    case 'text':
      return { kind, text };
    case 'file':
      return { kind, ...(data === null ? {} : { data }) };
    case 'http':
      return { kind, source_id: source_id ?? '', path: path.trim() };
  }
}

/** A resource or template: what clients see, and what it holds. */
export function ResourceEditor({
  initial,
  sources,
  submitLabel,
  pending,
  error,
  onSubmit,
}: {
  initial?: Resource;
  /** Sources whose API can hold the content. */
  sources: Pick<Source, 'id' | 'name'>[];
} & EditorProps<ResourceDefinition>) {
  const form = useFields<ResourceDraft>({
    initialValues: {
      uri: initial?.uri ?? '',
      name: initial?.name ?? '',
      title: initial?.title ?? '',
      description: initial?.description ?? '',
      mime_type: initial?.mime_type ?? (initial ? '' : 'text/plain'),
      kind: initial?.body === 'file' || initial?.body === 'http' ? initial.body : 'text',
      text: initial?.text ?? '',
      data: null,
      unreadable: null,
      source_id: initial?.http_source_id ?? null,
      path: initial?.http_path ?? '/',
      described: (initial?.variables ?? []).map((variable, id) => argumentDraft(id, variable)),
    },
    validate: (draft) => ({
      uri: uriRule.test(draft.uri.trim()) ? null : 'Enter a URI with a scheme, such as notes://welcome.',
      name: blank(draft.name, 'Enter a name for the resource.'),
      holds: holdsFault(draft, initial?.body === 'file'),
    }),
    error,
    place: ({ field }) => (field === 'holds.path' ? 'path' : field),
  });
  const { kind, uri } = form.values;
  const names = templateVariables(uri);
  const variables = variablesOf(form.values);

  const send = (draft: ResourceDraft) =>
    onSubmit({
      uri: draft.uri.trim(),
      name: draft.name.trim(),
      title: draft.title.trim(),
      description: draft.description.trim(),
      mime_type: draft.mime_type.trim(),
      variables: variablesOf(draft).map(argumentOf),
      holds: holdsOf(draft),
    });

  function take(chosen: File | null) {
    const tooLarge = chosen !== null && chosen.size > mostBytes;
    form.setValues({ data: null, unreadable: tooLarge ? 'This file is larger than 2 MiB.' : null });
    if (!chosen || tooLarge) return;
    if (chosen.type) form.setFieldValue('mime_type', chosen.type);
    void readBase64(chosen).then(
      (data) => form.setFieldValue('data', data),
      () => form.setFieldValue('unreadable', 'The file cannot be read.'),
    );
  }

  return (
    <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
      <Unsaved when={form.isChanged()} />
      <Stack gap="lg">
        <Panel title="What clients see">
          <Stack gap="md" maw={640}>
            <TextInput
              label="URI"
              description="A variable in braces makes this a template: pets://{id}. {+path} also matches slashes."
              {...form.getInputProps('uri')}
              spellCheck={false}
              autoCapitalize="none"
              className={classes.mono}
              required
            />
            <TextInput label="Name" {...form.getInputProps('name')} maxLength={120} required />
            <TextInput label="Title" {...form.getInputProps('title')} maxLength={120} />
            <Textarea label="Description" rows={2} {...form.getInputProps('description')} maxLength={4000} />
            <TextInput
              label="Media type"
              description="Leave empty to use the API’s Content-Type."
              {...form.getInputProps('mime_type')}
              spellCheck={false}
              autoCapitalize="none"
              className={classes.mono}
            />
          </Stack>
        </Panel>
        {variables.length > 0 && (
          <Panel title="Variables" note="Describe the variables of the template.">
            <Stack gap="md">
              <ArgumentRows
                word="Variable"
                drafts={variables}
                onChange={(next) => form.setFieldValue('described', next)}
                fixed
                tried={false}
              />
            </Stack>
          </Panel>
        )}
        <Panel title="Content">
          <Stack gap="md">
            <SegmentedControl
              aria-label="Content"
              data={[
                { value: 'text', label: 'Text' },
                { value: 'file', label: 'File' },
                { value: 'http', label: 'API response' },
              ]}
              {...form.getInputProps('kind')}
            />
            {kind === 'text' && (
              <Textarea
                label="Text"
                description={
                  names.length > 0 ? 'Use {{name}} to insert a variable of the template.' : undefined
                }
                rows={6}
                {...form.getInputProps('text')}
                className={classes.mono}
              />
            )}
            {kind === 'file' && (
              <FileInput
                label="File"
                description="Up to 2 MiB."
                placeholder={
                  initial?.body === 'file'
                    ? `${initial.size ?? 0} bytes stored. Choose another file to replace them.`
                    : 'Choose a file'
                }
                onChange={take}
              />
            )}
            {kind === 'http' && (
              <Group gap="md" align="start" grow>
                <Select
                  label="Source"
                  description="Uses this source’s credential."
                  data={sources.map((one) => ({ value: one.id, label: one.name }))}
                  {...form.getInputProps('source_id')}
                  placeholder="Choose a source"
                />
                <TextInput
                  label="Path"
                  description="A GET below the base URL: /pets/{id}?lang={lang}"
                  {...form.getInputProps('path')}
                  spellCheck={false}
                  autoCapitalize="none"
                  className={classes.mono}
                />
              </Group>
            )}
            {form.errors.holds && (
              <p className={classes.fault} role="alert">
                {form.errors.holds}
              </p>
            )}
          </Stack>
        </Panel>
        <Submit sticky error={error} title="The resource was not saved" fault={form.fault}>
          <Button type="submit" loading={pending}>
            {submitLabel}
          </Button>
        </Submit>
      </Stack>
    </form>
  );
}
