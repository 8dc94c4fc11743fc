import { createFileRoute } from '@tanstack/react-router';
import { useCreatePrompt } from '../../../api/prompts';
import { PromptEditor } from '../../../components/prompt-editor';
import { NewPublished } from '../../../components/published-page';
import { useSession } from '../../../session';

export const Route = createFileRoute('/w/$ws/prompts/new')({
  component: NewPromptPage,
});

function NewPromptPage() {
  const { workspace } = useSession();
  return (
    <NewPublished kind="prompt" create={useCreatePrompt(workspace.slug)}>
      {(editor) => <PromptEditor {...editor} />}
    </NewPublished>
  );
}
