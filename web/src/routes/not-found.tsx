import { IconMapOff } from '@tabler/icons-react';
import { useEffect } from 'react';
import { LinkButton } from '../components/link-button';
import { Empty } from '../components/page';

export function NotFoundPage() {
  useEffect(() => {
    document.title = 'Not found · Portolan';
  }, []);
  return (
    <Empty
      page
      icon={<IconMapOff size={24} />}
      title="This page is not on the chart"
      actions={
        <LinkButton to="/" variant="default">
          Go to your workspace
        </LinkButton>
      }
    >
      The address may be mistyped, or what was here has been deleted.
    </Empty>
  );
}
