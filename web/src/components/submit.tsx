import type { ReactNode } from 'react';
import { Refused } from './refused';
import classes from './submit.module.css';

/** The buttons of a form, and beside them why it was not sent or what the server refused. */
export function Submit({
  error,
  title,
  fault,
  sticky,
  children,
}: {
  /** The error of the server that refused. */
  error?: unknown;
  /** The heading of a refusal. */
  title: string;
  /** Why the form cannot be sent as it is. */
  fault?: ReactNode;
  /** Stays at the lower edge of the window while a long form is scrolled. */
  sticky?: boolean;
  children: ReactNode;
}) {
  return (
    <div className={sticky ? classes.bar : classes.inline}>
      <Refused error={error} title={title} />
      <div className={classes.buttons}>
        {children}
        {fault && (
          <span role="alert" className={classes.fault}>
            {fault}
          </span>
        )}
      </div>
    </div>
  );
}
