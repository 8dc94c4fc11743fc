import { IconMessage2 } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { promptsQuery, useSwitchPrompt } from '../../../api/prompts';
import { useRecentlyDeleted } from '../../../api/trash';
import { PublishedList } from '../../../components/published-list';
import { useMay, useSession } from '../../../session';

export const Route = createFileRoute('/w/$ws/prompts/')({
  component: PromptsPage,
});

function PromptsPage() {
  const { workspace } = useSession();
  return (
    <PublishedList
      kind="prompt"
      lede="A prompt starts a conversation: users pick it and fill in its arguments. Add prompts to servers to publish them."
      icon={<IconMessage2 size={24} />}
      invitation="Write down a request your users make often, with arguments for the parts that change."
      query={useQuery(promptsQuery(workspace.slug))}
      enable={useSwitchPrompt(workspace.slug)}
      deleted={useRecentlyDeleted(workspace.slug, 'prompt', useMay('edit_registry'))}
      heading="Arguments"
      title={(prompt) => ({
        name: prompt.name,
        sub: [prompt.source_name, prompt.title || prompt.description].filter(Boolean).join(' · '),
      })}
      detail={(prompt) => prompt.arguments.map((one) => one.name).join(', ') || '–'}
    />
  );
}
