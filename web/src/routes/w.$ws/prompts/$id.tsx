import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { promptQuery, useCreatePrompt, useDeletePrompt, useRewritePrompt } from '../../../api/prompts';
import { PromptEditor } from '../../../components/prompt-editor';
import { NewPublished, PublishedPage } from '../../../components/published-page';
import { useSession } from '../../../session';

export function NewPromptPage() {
  const { workspace } = useSession();
  return (
    <NewPublished kind="prompt" create={useCreatePrompt(workspace.slug)}>
      {(editor) => <PromptEditor {...editor} />}
    </NewPublished>
  );
}

export function PromptPage() {
  const { workspace } = useSession();
  const { id } = useParams({ from: '/w/$ws/prompts/$id' });
  return (
    <PublishedPage
      kind="prompt"
      query={useQuery(promptQuery(workspace.slug, id))}
      rewrite={useRewritePrompt(workspace.slug, id)}
      remove={useDeletePrompt(workspace.slug)}
    >
      {(prompt, editor) => <PromptEditor initial={prompt} {...editor} />}
    </PublishedPage>
  );
}
