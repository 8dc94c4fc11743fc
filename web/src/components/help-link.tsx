import { IconHelpCircle } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import classes from './page.module.css';

/** A link to the docs that explain what stands beside it, in a tab of its own: a form is not left. */
export function HelpLink({ to, children }: { to: string; children: string }) {
  const [slug, hash] = to.split('#');
  return (
    <Link to="/docs/$" params={{ _splat: slug }} hash={hash} target="_blank" className={classes.help}>
      <IconHelpCircle size={16} aria-hidden /> {children}
      <span className="visually-hidden"> (opens a new tab)</span>
    </Link>
  );
}
