import { useLocation, useRouter } from '@tanstack/react-router';
import { type MouseEvent, useEffect, useRef } from 'react';
import classes from './docs.module.css';

/** The text of a page. Its links navigate without loading the console anew; its code can be copied. */
export function Article({ html }: { html: string }) {
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
