import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { promptQuery, useDeletePrompt, useRewritePrompt } from '../../../api/prompts';
import { PromptEditor } from '../../../components/prompt-editor';
import { PublishedPage } from '../../../components/published-page';
import { useSession } from '../../../session';
import { ShowAsYaml } from '../-show-as-yaml';

export const Route = createFileRoute('/w/$ws/prompts/$id')({
  component: PromptPage,
});

function PromptPage() {
  const { workspace } = useSession();
  const { id } = Route.useParams();
  return (
    <PublishedPage
      kind="prompt"
      query={useQuery(promptQuery(workspace.slug, id))}
      rewrite={useRewritePrompt(workspace.slug, id)}
      remove={useDeletePrompt(workspace.slug)}
      actions={(prompt) => <ShowAsYaml kind="prompt" of={prompt.name} />}
    >
      {(prompt, editor) => <PromptEditor initial={prompt} {...editor} />}
    </PublishedPage>
  );
}
