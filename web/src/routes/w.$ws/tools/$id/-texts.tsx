import { Button, Group, Stack, Textarea, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { type Tool, useDeleteTool, useUpdateTool } from '../../../../api/tools';
import { DeletePanel } from '../../../../components/delete-panel';
import { useFields } from '../../../../components/form';
import { Facts, Panel } from '../../../../components/page';
import { Submit } from '../../../../components/submit';
import { toastDone, toastFailed } from '../../../../components/toast';
import { Unsaved } from '../../../../components/unsaved';
import { nameFault } from '../../../../rules';
import { useMay, useSession } from '../../../../session';
import classes from './tool.module.css';

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
      <span className={classes.original}>Originally: {text || 'empty'}</span>
      {onReset && (
        <Button size="compact-xs" variant="subtle" onClick={() => onReset(part)}>
          Reset
        </Button>
      )}
    </Group>
  );
}

/** The texts by which models choose the tool, where it is used, and its deletion. */
export function Texts({ tool }: { tool: Tool }) {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const edits = useMay('edit_registry');
  const update = useUpdateTool(workspace.slug, tool.id);
  const remove = useDeleteTool(workspace.slug);
  const { original } = tool;
  const form = useFields({
    initialValues: { name: tool.name, title: tool.title, description: tool.description },
    validate: ({ name }) => ({ name: nameFault(name) }),
    eager: true,
    error: update.error,
  });
  // An override that equals the original is no override.
  const override = (text: string, from: string) => (text.trim() === from.trim() ? null : text.trim());

  const send = ({ name, title, description }: typeof form.values) =>
    update.mutate(
      {
        name: override(name, original.name),
        title: override(title, original.title),
        description: override(description, original.description),
      },
      { onSuccess: () => toastDone('Tool saved.') },
    );

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
        <form ref={form.ref} onSubmit={form.onSubmit(send)} noValidate>
          <Unsaved when={form.isChanged() && !update.isPending} />
          <fieldset disabled={!edits} className="bare">
            <Stack gap="md" maw={680}>
              <div>
                <TextInput
                  label="Name"
                  spellCheck={false}
                  classNames={{ input: classes.mono }}
                  {...form.getInputProps('name')}
                />
                {tool.name !== original.name && (
                  <Original onReset={edits ? reset : undefined} text={original.name} part={{ name: null }} />
                )}
              </div>
              <div>
                <TextInput label="Title" maxLength={200} {...form.getInputProps('title')} />
                {tool.title !== original.title && (
                  <Original
                    onReset={edits ? reset : undefined}
                    text={original.title}
                    part={{ title: null }}
                  />
                )}
              </div>
              <div>
                <Textarea label="Description" rows={7} {...form.getInputProps('description')} />
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
