import {
  Alert,
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
  const [tried, setTried] = useState(false);

  const names = templateVariables(uri);
  const variables = names.map(
    (one, place) => said.find((draft) => draft.name === one) ?? argumentDraft(1000 + place, { name: one }),
  );
  const refused = error instanceof ApiError ? error : null;
  const uriFault = /^[A-Za-z][A-Za-z0-9+.-]*:\S+$/.test(uri.trim())
    ? null
    : 'Give a URI with a scheme, such as notes://welcome.';
  const unknown =
    kind === 'text' && names.length > 0 ? placeholders(text).find((one) => !names.includes(one)) : undefined;
  const holdsFault = {
    text: unknown ? `{{${unknown}}} is not a variable of the template.` : null,
    file: fileFault ?? (data === null && initial?.body !== 'file' ? 'Choose a file.' : null),
    http: source === null ? 'Choose a source.' : path.startsWith('/') ? null : 'Begin the path with a slash.',
  }[kind];
  const faulty = uriFault !== null || name.trim() === '' || holdsFault !== null;

  function submit(event: FormEvent) {
    event.preventDefault();
    setTried(true);
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
    <form onSubmit={submit} noValidate>
      <Stack gap="lg">
        {error && (
          <Alert color="red" data-tone="red" role="alert" title="The resource was not saved">
            {error.message}
          </Alert>
        )}
        <Panel title="What clients see">
          <Stack gap="md" maw={640}>
            <TextInput
              label="URI"
              description="A variable in braces makes it a template: pets://{id}. {+path} takes slashes, too."
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
              error={tried && name.trim() === '' && 'Give the resource a name.'}
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
              description="Empty for an API: then it is what the API says."
              value={mimeType}
              onChange={(event) => setMimeType(event.currentTarget.value)}
              spellCheck={false}
              autoCapitalize="none"
              className={classes.mono}
            />
          </Stack>
        </Panel>
        {variables.length > 0 && (
          <Panel title="Variables" note="What is said about the variables of the template.">
            <Stack gap="md">
              <ArgumentRows word="Variable" drafts={variables} onChange={setSaid} fixed tried={tried} />
            </Stack>
          </Panel>
        )}
        <Panel title="What it holds">
          <Stack gap="md">
            <SegmentedControl
              aria-label="What it holds"
              data={[
                { value: 'text', label: 'A text' },
                { value: 'file', label: 'A file' },
                { value: 'http', label: 'What an API answers' },
              ]}
              value={kind}
              onChange={(value) => setKind(value as ResourceHolds['kind'])}
            />
            {kind === 'text' && (
              <Textarea
                label="Text"
                description={
                  names.length > 0 ? 'In it, {{name}} stands for a variable of the template.' : undefined
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
                    ? `${initial.size ?? 0} bytes are there. Choose another file.`
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
                  description="Reads sign in with its credential."
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
        <Group>
          <Button type="submit" loading={pending}>
            {submitLabel}
          </Button>
          {tried && faulty && <span className={classes.fault}>Something above needs your attention.</span>}
        </Group>
      </Stack>
    </form>
  );
}
