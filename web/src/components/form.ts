import { type FormErrors, useForm } from '@mantine/form';
import { type RefObject, useEffect, useRef, useState } from 'react';
import { ApiError } from '../api/http';

const text = (values: unknown) =>
  JSON.stringify(values, (_, value: unknown) =>
    value instanceof Map || value instanceof Set ? [...value] : value,
  );

const valueAt = (values: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((part, step) => (part as Record<string, unknown> | undefined)?.[step], values);

/**
 * A form: its values, its faults and where the focus goes.
 *
 * The first attempt to send shows all faults and moves the focus to the first one.
 * From then on, faults follow the input.
 * A refusal of the server that names a field stands at that field until it is edited; the input stays.
 */
export function useFields<Values extends Record<string, unknown>>({
  initialValues,
  validate = () => ({}),
  eager = false,
  error,
  place = (refusal) => refusal.field,
}: {
  initialValues: Values;
  /** The fault of each faulty field by its path: a message that says what to do. */
  validate?: (values: Values) => FormErrors;
  /** Paths whose faults follow the input from the beginning; `true` for all. */
  eager?: boolean | string[];
  /** The refusal of the latest attempt. */
  error?: unknown;
  /** The path at which a refusal is shown; undefined if that is not at a field. */
  place?: (refusal: ApiError) => string | undefined;
}) {
  const tried = useRef(false);
  const refused = useRef<string>(undefined);
  const [attempts, setAttempts] = useState(0);
  const changed = useRef((_values: Values, _previous: Values) => {});
  const form = useForm<Values>({
    initialValues,
    validate,
    validateInputOnChange: eager,
    clearInputErrorOnChange: false,
    onValuesChange: (values, previous) => changed.current(values, previous),
  });

  const { setErrors } = form;
  changed.current = (values, previous) => {
    const path = refused.current;
    const edited = path !== undefined && valueAt(values, path) !== valueAt(previous, path);
    if (edited) refused.current = undefined;
    if (!tried.current && !edited) return;
    const found = tried.current ? validate(values) : {};
    const kept = path !== undefined && !edited && !found[path] ? path : undefined;
    setErrors((old) => (kept === undefined ? found : { ...found, [kept]: old[kept] }));
  };

  const at = error instanceof ApiError ? place(error) : undefined;
  const path = at !== undefined && valueAt(form.values, at) !== undefined ? at : undefined;
  const message = error instanceof Error ? error.message : undefined;
  const previous = useRef<unknown>(undefined);
  useEffect(() => {
    if (previous.current === error) return;
    previous.current = error;
    if (path === undefined) {
      // The refusal was taken back; sending again has cleared it already.
      const old = refused.current;
      refused.current = undefined;
      if (old !== undefined) setErrors(({ [old]: _, ...rest }) => rest);
      return;
    }
    refused.current = path;
    setErrors((old) => ({ ...old, [path]: message }));
    setAttempts((old) => old + 1);
  }, [error, path, message, setErrors]);

  const ref = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (attempts > 0) firstFault(ref)?.focus();
  }, [attempts]);

  return {
    ...form,
    /** For the form element: the focus goes to the first fault in it. */
    ref,
    /** Handles the event of sending; `send` gets values without a fault. */
    onSubmit: (send: (values: Values) => unknown) =>
      form.onSubmit(
        (values) => {
          tried.current = true;
          refused.current = undefined;
          send(values);
        },
        () => {
          tried.current = true;
          refused.current = undefined;
          setAttempts((old) => old + 1);
        },
      ),
    /** Whether a value differs from the first one, or from that at the latest `resetDirty`. */
    isChanged: () => text(form.values) !== text(form.getInitialValues()),
    /** Begins anew, without faults and with the first values except those that are `kept`. */
    restart: (kept: Partial<Values> = {}) => {
      tried.current = false;
      refused.current = undefined;
      form.reset();
      form.setValues(kept);
    },
    /** The refusal, unless it stands at a field: for forms that show it in one place only. */
    refusal: path === undefined ? error : undefined,
    /** Beside the button: a field has a fault that was found here. */
    fault: Object.keys(form.errors).some((one) => one !== refused.current) && 'Fix the highlighted fields.',
  };
}

const firstFault = (form: RefObject<HTMLFormElement | null>) =>
  form.current?.querySelector<HTMLElement>('[aria-invalid="true"]');

/** A form as its parts receive it. */
export type Fields<Values extends Record<string, unknown>> = ReturnType<typeof useFields<Values>>;
