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
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { ApiError } from '../api/http';
import type { Resource, ResourceDefinition, ResourceHolds } from '../api/resources';
import { sourcesQuery } from '../api/sources';
import { placeholders, readBase64, templateVariables } from '../placeholders';
import { useSession } from '../session';
import { type ArgumentDraft, ArgumentRows, argumentDraft, argumentOf } from './argument-rows';
import classes from './argument-rows.module.css';
import { Panel } from './page';
import { Submit, useFaultFocus } from './submit';
import { Unsaved, useChanged } from './unsaved';

/** Most bytes of a file. */
const mostBytes = 2 * 1024 * 1024;

/** A resource or template: what clients see, and what it holds. */
export function ResourceEditor({
  initial,
  submitLabel,
  pending,
  error,
  onSubmit,
}: {
  initial?: Resource;
  submitLabel: string;
  pending: boolean;
  error: Error | null;
  onSubmit: (definition: ResourceDefinition) => void;
}) {
  const { workspace } = useSession();
  const sources = useQuery(sourcesQuery(workspace.slug));
  const [uri, setUri] = useState(initial?.uri ?? '');
  const [name, setName] = useState(initial?.name ?? '');
  const [title, setTitle] = useState(initial?.title ?? '');
  const [description, setDescription] = useState(initial?.description ?? '');
  const [mimeType, setMimeType] = useState(initial?.mime_type ?? (initial ? '' : 'text/plain'));
  const [kind, setKind] = useState<ResourceHolds['kind']>(
    initial?.body === 'file' || initial?.body === 'http' ? initial.body : 'text',
  );
  const [text, setText] = useState(initial?.text ?? '');
  const [data, setData] = useState<string | null>(null);
  const [fileFault, setFileFault] = useState<string | null>(null);
  const [source, setSource] = useState<string | null>(initial?.http_source_id ?? null);
  const [path, setPath] = useState(initial?.http_path ?? '/');
  const [said, setSaid] = useState<ArgumentDraft[]>(() =>
    (initial?.variables ?? []).map((variable, id) => argumentDraft(id, variable)),
  );
  const [tries, setTries] = useState(0);
  const tried = tries > 0;

  const names = templateVariables(uri);
  const variables = names.map(
    (one, place) => said.find((draft) => draft.name === one) ?? argumentDraft(1000 + place, { name: one }),
  );
  const refused = error instanceof ApiError ? error : null;
  const uriFault = /^[A-Za-z][A-Za-z0-9+.-]*:\S+$/.test(uri.trim())
    ? null
    : 'Enter a URI with a scheme, such as notes://welcome.';
  const unknown =
    kind === 'text' && names.length > 0 ? placeholders(text).find((one) => !names.includes(one)) : undefined;
  const holdsFault = {
    text: unknown ? `{{${unknown}}} is not a variable of the template.` : null,
    file: fileFault ?? (data === null && initial?.body !== 'file' ? 'Choose a file.' : null),
    http: source === null ? 'Choose a source.' : path.startsWith('/') ? null : 'Begin the path with a slash.',
  }[kind];
  const faulty = uriFault !== null || name.trim() === '' || holdsFault !== null;

  const changed = useChanged([uri, name, title, description, mimeType, kind, text, data, source, path, said]);
  const form = useFaultFocus(error ?? tries);

  function submit(event: FormEvent) {
    event.preventDefault();
    setTries((old) => old + 1);
    if (faulty) return;
    const holds: ResourceHolds =
      kind === 'text'
        ? { kind, text }
        : kind === 'file'
          ? { kind, ...(data === null ? {} : { data }) }
          : { kind, source_id: source ?? '', path: path.trim() };
    onSubmit({
      uri: uri.trim(),
      name: name.trim(),
      title: title.trim(),
      description: description.trim(),
      mime_type: mimeType.trim(),
      variables: variables.map(argumentOf),
      holds,
    });
  }

  return (
    <form ref={form} onSubmit={submit} noValidate>
      <Unsaved when={changed} />
      <Stack gap="lg">
        <Panel title="What clients see">
          <Stack gap="md" maw={640}>
            <TextInput
              label="URI"
              description="A variable in braces makes this a template: pets://{id}. {+path} also matches slashes."
              value={uri}
              onChange={(event) => setUri(event.currentTarget.value)}
              error={refused?.field === 'uri' ? refused.message : tried && uriFault}
              spellCheck={false}
              autoCapitalize="none"
              className={classes.mono}
              required
            />
            <TextInput
              label="Name"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={tried && name.trim() === '' && 'Enter a name for the resource.'}
              maxLength={120}
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
            <TextInput
              label="Media type"
              description="Leave empty to use the API’s Content-Type."
              value={mimeType}
              onChange={(event) => setMimeType(event.currentTarget.value)}
              spellCheck={false}
              autoCapitalize="none"
              className={classes.mono}
            />
          </Stack>
        </Panel>
        {variables.length > 0 && (
          <Panel title="Variables" note="Describe the variables of the template.">
            <Stack gap="md">
              <ArgumentRows word="Variable" drafts={variables} onChange={setSaid} fixed tried={tried} />
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
              value={kind}
              onChange={(value) => setKind(value as ResourceHolds['kind'])}
            />
            {kind === 'text' && (
              <Textarea
                label="Text"
                description={
                  names.length > 0 ? 'Use {{name}} to insert a variable of the template.' : undefined
                }
                rows={6}
                value={text}
                onChange={(event) => setText(event.currentTarget.value)}
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
                onChange={(chosen) => {
                  setFileFault(chosen && chosen.size > mostBytes ? 'This file is larger than 2 MiB.' : null);
                  if (!chosen || chosen.size > mostBytes) {
                    setData(null);
                    return;
                  }
                  if (chosen.type) setMimeType(chosen.type);
                  void readBase64(chosen).then(setData, () => setFileFault('The file cannot be read.'));
                }}
              />
            )}
            {kind === 'http' && (
              <Group gap="md" align="start" grow>
                <Select
                  label="Source"
                  description="Uses this source’s credential."
                  data={(sources.data?.items ?? []).map((one) => ({ value: one.id, label: one.name }))}
                  value={source}
                  onChange={setSource}
                  placeholder="Choose a source"
                />
                <TextInput
                  label="Path"
                  description="A GET below the base URL: /pets/{id}?lang={lang}"
                  value={path}
                  onChange={(event) => setPath(event.currentTarget.value)}
                  error={refused?.field === 'holds.path' && refused.message}
                  spellCheck={false}
                  autoCapitalize="none"
                  className={classes.mono}
                />
              </Group>
            )}
            {tried && holdsFault && (
              <p className={classes.fault} role="alert">
                {holdsFault}
              </p>
            )}
          </Stack>
        </Panel>
        <Submit
          sticky
          error={error}
          title="The resource was not saved"
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
