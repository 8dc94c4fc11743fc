import { Alert } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { type Prompt, promptQuery, useCreatePrompt, useDeletePrompt, useRewritePrompt } from '../api/prompts';
import { DeletePanel } from '../components/delete-panel';
import { Loaded, Page } from '../components/page';
import { PromptEditor } from '../components/prompt-editor';
import { Restricted } from '../components/restricted';
import { toastAction, toastDone } from '../components/toast';
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
    <Restricted needs="edit_registry" title="New prompt" back={back}>
      <Page title="New prompt" back={back}>
        <PromptEditor
          submitLabel="Create prompt"
          pending={create.isPending}
          error={create.error}
          onSubmit={(definition) =>
            create.mutate(definition, {
              onSuccess: () => {
                toastAction(
                  'Prompt created.',
                  'Add to a server',
                  () => void navigate({ to: '/w/$ws/servers', params: { ws: workspace.slug } }),
                );
                void navigate({ to: '/w/$ws/prompts', params: { ws: workspace.slug }, ignoreBlocker: true });
              },
            })
          }
        />
      </Page>
    </Restricted>
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
  if (prompt.source_name) {
    return (
      <Alert color="sea" title={`From ${prompt.source_name}`}>
        This prompt comes from an upstream server and is edited there. {prompt.description}
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
              onSuccess: () => toastDone('Prompt saved. Connected clients see the change.'),
            })
          }
        />
      </fieldset>
      {edits && (
        <DeletePanel
          noun="prompt"
          name={prompt.name}
          note="It is removed from every server. You can restore it from the trash for 30 days."
          busy={remove.isPending}
          error={remove.error}
          act={() =>
            remove.mutate(prompt.id, {
              onSuccess: () => {
                void navigate({
                  to: '/w/$ws/prompts',
                  params: { ws: workspace.slug },
                  ignoreBlocker: true,
                });
              },
            })
          }
        >
          Servers stop offering it immediately. You can restore it from the trash for 30 days.
        </DeletePanel>
      )}
    </>
  );
}
