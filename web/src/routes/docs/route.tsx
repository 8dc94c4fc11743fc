import { docs } from 'virtual:docs';
import { UnstyledButton } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { createFileRoute, Link, Outlet, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { Palette, ShortcutHelp } from '../../components/palette';
import { PlainShell } from '../../components/shell';
import { docEntries } from '../../docs-search';
import { useOverlay } from '../../shortcuts';
import classes from './docs.module.css';

export const Route = createFileRoute('/docs')({
  component: DocsLayout,
});

const groups = ['Use', 'Operate', 'Develop'] as const;

/** The docs of the product: a menu of the pages beside one of them. They need no sign-in. */
function DocsLayout() {
  const [overlay, setOverlay] = useOverlay();
  return (
    <PlainShell>
      <div className={classes.layout}>
        <nav className={classes.nav} aria-label="Docs">
          <UnstyledButton className={classes.search} onClick={() => setOverlay('search')}>
            <IconSearch size={16} aria-hidden /> Search the docs
          </UnstyledButton>
          <details className={classes.menu} open={window.matchMedia?.('(min-width: 901px)').matches ?? true}>
            <summary>Pages</summary>
            {groups.map((group) => (
              <section key={group}>
                <h2>{group}</h2>
                <ul>
                  {docs
                    .filter((doc) => doc.group === group)
                    .map(({ slug, title }) => (
                      <li key={slug}>
                        <Link to="/docs/$" params={{ _splat: slug }}>
                          {title}
                        </Link>
                      </li>
                    ))}
                </ul>
              </section>
            ))}
          </details>
        </nav>
        <Outlet />
      </div>
      {overlay === 'search' && <DocsPalette onClose={() => setOverlay(undefined)} />}
      {overlay === 'help' && <ShortcutHelp onClose={() => setOverlay(undefined)} />}
    </PlainShell>
  );
}

function DocsPalette({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const [query, setQuery] = useState('');
  const entries = docEntries(
    query,
    (_splat, hash) => void navigate({ to: '/docs/$', params: { _splat }, hash }),
  );
  return <Palette query={query} onQuery={setQuery} groups={[entries]} onClose={onClose} />;
}
