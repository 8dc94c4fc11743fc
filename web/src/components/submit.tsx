import { type ReactNode, type RefObject, useEffect, useRef } from 'react';
import { Refused } from './refused';
import classes from './submit.module.css';

/**
 * Returns a ref for a form. A fault moves the focus to the first field that is marked.
 * `signal` changes with each try and each refusal; nothing happens while it is empty.
 */
export function useFaultFocus(signal: unknown): RefObject<HTMLFormElement | null> {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (!signal) return;
    form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [signal]);
  return form;
}

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
