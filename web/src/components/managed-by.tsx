import { Tooltip } from '@mantine/core';
import { IconFileCode } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useMay, useSession } from '../session';
import classes from './managed-by.module.css';

/** The file that owns an object (CONF-6), if one does. It leads to the page of the files, or to the docs. */
export function ManagedBy({ owner }: { owner: string | undefined }) {
  const { workspace } = useSession();
  const edits = useMay('edit_registry');
  if (!owner) return null;
  const words = (
    <>
      <IconFileCode size={14} aria-hidden /> Managed by {owner}
    </>
  );
  return (
    <Tooltip
      multiline
      w={280}
      label={`The next portolan apply of the file ${owner} overwrites changes that are made here.`}
    >
      {edits ? (
        <Link to="/w/$ws/configuration" params={{ ws: workspace.slug }} className={classes.managed}>
          {words}
        </Link>
      ) : (
        <Link
          to="/docs/$"
          params={{ _splat: 'configuration-as-code' }}
          hash="in-the-console"
          className={classes.managed}
        >
          {words}
        </Link>
      )}
    </Tooltip>
  );
}
