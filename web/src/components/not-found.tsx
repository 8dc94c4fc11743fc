import { IconMapOff } from '@tabler/icons-react';
import { useEffect } from 'react';
import { LinkButton } from './link-button';
import { Empty } from './page';

export function NotFoundPage() {
  useEffect(() => {
    document.title = 'Not found · Portolan';
  }, []);
  return (
    <Empty
      page
      icon={<IconMapOff size={24} />}
      title="Page not found"
      actions={
        <LinkButton to="/" variant="default">
          Go to your workspace
        </LinkButton>
      }
    >
      Check the address. The page may have been deleted.
    </Empty>
  );
}
