import { Alert, Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import {
  type Prompt,
  promptQuery,
  useCreatePrompt,
  useDeletePrompt,
  useRestorePrompt,
  useRewritePrompt,
} from '../api/prompts';
import { Loaded, Page, Panel } from '../components/page';
import { PromptEditor } from '../components/prompt-editor';
import { toastDone, toastFailed, toastUndo } from '../components/toast';
import { useMay, useSession } from '../session';

const useBack = () => {
  const { workspace } = useSession();
  return { label: 'Prompts', to: '/w/$ws/prompts', params: { ws: workspace.slug } } as const;
};

export function NewPromptPage() {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const create = useCreatePrompt(workspace.slug);
  const back = useBack();
  return (
    <Page title="New prompt" back={back}>
      <PromptEditor
        submitLabel="Create prompt"
        pending={create.isPending}
        error={create.error}
        onSubmit={(definition) =>
          create.mutate(definition, {
            onSuccess: (prompt) => {
              toastDone(`${prompt.name} was created. Choose it on the pages of your servers.`);
              void navigate({ to: '/w/$ws/prompts', params: { ws: workspace.slug } });
            },
          })
        }
      />
    </Page>
  );
}

export function PromptPage() {
  const { workspace } = useSession();
  const { id } = useParams({ from: '/w/$ws/prompts/$id' });
  const prompt = useQuery(promptQuery(workspace.slug, id));
  const back = useBack();
  return (
    <Page title={prompt.data?.name ?? 'Prompt'} back={back} lede={prompt.data?.title}>
      <Loaded query={prompt} lines={8}>
        {(data) => <EditPrompt key={data.updated_at} prompt={data} />}
      </Loaded>
    </Page>
  );
}

function EditPrompt({ prompt }: { prompt: Prompt }) {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const edits = useMay('edit_registry');
  const rewrite = useRewritePrompt(workspace.slug, prompt.id);
  const remove = useDeletePrompt(workspace.slug);
  const restore = useRestorePrompt(workspace.slug);
  if (prompt.source_name) {
    return (
      <Alert color="sea" title={`From ${prompt.source_name}`}>
        This prompt comes from an upstream server, which also fills it in. {prompt.description}
      </Alert>
    );
  }
  return (
    <>
      <fieldset disabled={!edits} style={{ border: 0, margin: 0, padding: 0, minWidth: 0 }}>
        <PromptEditor
          initial={prompt}
          submitLabel="Save prompt"
          pending={rewrite.isPending}
          error={rewrite.error}
          onSubmit={(definition) =>
            rewrite.mutate(definition, {
              onSuccess: () => toastDone('The prompt was saved. Connected clients see it.'),
            })
          }
        />
      </fieldset>
      {edits && (
        <Panel title="Delete this prompt" note="Servers offer it no more. You can undo this for ten minutes.">
          <Button
            color="red"
            variant="light"
            loading={remove.isPending}
            onClick={() =>
              remove.mutate(prompt.id, {
                onSuccess: () => {
                  void navigate({ to: '/w/$ws/prompts', params: { ws: workspace.slug } });
                  toastUndo(
                    `“${prompt.name}” was deleted.`,
                    () => restore.mutateAsync(prompt.id),
                    `“${prompt.name}” is back.`,
                  );
                },
                onError: toastFailed,
              })
            }
          >
            Delete prompt
          </Button>
        </Panel>
      )}
    </>
  );
}
