import {
  Button,
  Checkbox,
  Group,
  JsonInput,
  Select,
  Stack,
  Switch,
  Textarea,
  TextInput,
} from '@mantine/core';
import type { ToolDefinition } from '../api/tools';
import { blank, nameFault } from '../rules';
import { useFields } from './form';
import { Panel } from './page';
import type { EditorProps } from './published-page';
import { Submit } from './submit';
import classes from './tool-editor.module.css';
import {
  type ParameterDraft,
  parameterDraft,
  parameterFaults,
  parameterOf,
  ToolParameters,
} from './tool-parameters';
import { Unsaved } from './unsaved';

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** A tool while it is edited. */
export type ToolDraft = {
  name: string;
  title: string;
  description: string;
  method: string;
  path: string;
  parameters: ParameterDraft[];
  withBody: boolean;
  contentType: string;
  required: boolean;
  /** The JSON Schema of the body, as text. */
  schema: string;
};

/** The fault of a text that must be a JSON Schema. */
function schemaFault(text: string): string | null {
  try {
    const schema: unknown = JSON.parse(text);
    return typeof schema === 'object' && schema !== null && !Array.isArray(schema)
      ? null
      : 'A JSON Schema is an object.';
  } catch (cause) {
    return cause instanceof Error ? cause.message : 'This is not JSON.';
  }
}

/** A hand-made tool: name, call, parameters and body. Path parameters follow the path by themselves. */
export function ToolEditor({
  initial,
  submitLabel,
  pending,
  error,
  onSubmit,
}: { initial?: ToolDefinition } & EditorProps<ToolDefinition>) {
  const form = useFields<ToolDraft>({
    initialValues: {
      name: initial?.name ?? '',
      title: initial?.title ?? '',
      description: initial?.description ?? '',
      method: initial?.method.toUpperCase() ?? 'GET',
      path: initial?.path ?? '/',
      parameters: (initial?.parameters ?? []).map((one, id) => parameterDraft(id, one)),
      withBody: Boolean(initial?.body),
      contentType: initial?.body?.content_type ?? 'application/json',
      required: initial?.body?.required ?? true,
      schema: JSON.stringify(initial?.body?.schema ?? { type: 'object', properties: {} }, null, 2),
    },
    validate: (draft) => ({
      name: nameFault(draft.name),
      description: blank(draft.description, 'Describe what the tool does. Models choose tools by this text.'),
      path: draft.path.startsWith('/') ? null : 'Begin the path with a slash.',
      schema: draft.withBody && schemaFault(draft.schema),
      ...parameterFaults(draft),
    }),
    eager: ['schema'],
    error,
  });
  const { withBody } = form.values;

  const send = (draft: ToolDraft) =>
    onSubmit({
      name: draft.name,
      ...(draft.title.trim() ? { title: draft.title.trim() } : {}),
      description: draft.description.trim(),
      method: draft.method,
      path: draft.path,
      parameters: draft.parameters.map(parameterOf),
      ...(draft.withBody && {
        body: {
          content_type: draft.contentType,
          schema: JSON.parse(draft.schema) as never,
          required: draft.required,
        },
      }),
    });

  return (
    <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
      <Unsaved when={form.isChanged()} />
      <Stack gap="lg">
        <Panel title="What the model sees">
          <Stack gap="md" maw={640}>
            <TextInput
              label="Name"
              placeholder="find_order"
              {...form.getInputProps('name')}
              className={classes.mono}
              spellCheck={false}
              required
            />
            <TextInput label="Title" {...form.getInputProps('title')} maxLength={120} />
            <Textarea
              label="Description"
              description="Say when to use the tool and what it returns. Models choose tools by this text."
              rows={3}
              {...form.getInputProps('description')}
              required
            />
          </Stack>
        </Panel>
        <Panel title="Request">
          <Group align="flex-end" gap="sm" wrap="wrap">
            <Select
              label="Method"
              data={methods}
              {...form.getInputProps('method')}
              w={120}
              allowDeselect={false}
            />
            <TextInput
              label="Path"
              description="Write parameters in braces: /orders/{id}"
              {...form.getInputProps('path')}
              className={`${classes.mono} ${classes.path}`}
              spellCheck={false}
            />
          </Group>
        </Panel>
        <ToolParameters form={form} />
        <Panel title="Body">
          <Stack gap="md">
            <Switch
              label="Send a request body"
              {...form.getInputProps('withBody', { type: 'checkbox' })}
              onChange={(event) => {
                form.setFieldValue('withBody', event.currentTarget.checked);
                form.validateField('schema');
              }}
            />
            {withBody && (
              <>
                <Select
                  label="Content type"
                  data={[
                    'application/json',
                    'application/x-www-form-urlencoded',
                    'multipart/form-data',
                    'text/plain',
                  ]}
                  {...form.getInputProps('contentType')}
                  maw={340}
                  allowDeselect={false}
                />
                <JsonInput
                  label="JSON Schema of the body"
                  rows={10}
                  {...form.getInputProps('schema')}
                  className={classes.mono}
                  formatOnBlur
                />
                <Checkbox label="Required" {...form.getInputProps('required', { type: 'checkbox' })} />
              </>
            )}
          </Stack>
        </Panel>
        <Submit sticky error={error} title="The tool was not saved" fault={form.fault}>
          <Button type="submit" loading={pending}>
            {submitLabel}
          </Button>
        </Submit>
      </Stack>
    </form>
  );
}
