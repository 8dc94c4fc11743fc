import { docs } from 'virtual:docs';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, useLocation, useRouter } from '@tanstack/react-router';
import { type MouseEvent, useEffect, useRef } from 'react';
import { NotFoundPage } from '../../components/not-found';
import { Loaded, Page } from '../../components/page';
import classes from './docs.module.css';

export const Route = createFileRoute('/docs/$')({
  component: DocPage,
});

function DocPage() {
  const { _splat: slug } = Route.useParams();
  const doc = docs.find((one) => one.slug === slug);
  if (!doc) return <NotFoundPage />;
  return <Doc key={doc.slug} doc={doc} />;
}

function Doc({ doc }: { doc: (typeof docs)[number] }) {
  const text = useQuery({
    queryKey: ['docs', doc.slug],
    queryFn: async () => (await doc.load()).default,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Page title={doc.title} documentTitle={`${doc.title} · Docs`}>
      <Loaded query={text} lines={12}>
        {(html) => <Article html={html} />}
      </Loaded>
    </Page>
  );
}

/** The text of a page. Its links navigate without loading the console anew; its code can be copied. */
function Article({ html }: { html: string }) {
  const router = useRouter();
  const { hash } = useLocation();
  const article = useRef<HTMLElement>(null);
  useEffect(() => {
    if (hash) document.getElementById(hash)?.scrollIntoView?.();
  }, [hash]);
  function follow(event: MouseEvent) {
    const target = event.target as Element;
    const button = target.closest('[data-copy]');
    if (button) {
      void copy(button);
      return;
    }
    const href = target.closest('a')?.getAttribute('href');
    if (!href?.startsWith('/docs/') || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    router.history.push(href);
  }
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: its links and buttons are reached by the keyboard
    <article
      ref={article}
      className={classes.article}
      onClick={follow}
      // biome-ignore lint/security/noDangerouslySetInnerHtml: the repository's own pages, escaped by the build
      dangerouslySetInnerHTML={{ __html: html }}
    />
  );
}

async function copy(button: Element) {
  const code = button.parentElement?.querySelector('code')?.textContent ?? '';
  const done = await navigator.clipboard.writeText(code).then(
    () => 'Copied',
    () => 'Select and copy',
  );
  button.textContent = done;
  window.setTimeout(() => {
    button.textContent = 'Copy';
  }, 2000);
}
