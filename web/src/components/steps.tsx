import { IconCheck } from '@tabler/icons-react';
import classes from './steps.module.css';

export function Steps({ names, current }: { names: string[]; current: number }) {
  return (
    <ol className={classes.steps} aria-label="Steps">
      {names.map((name, index) => (
        <li
          key={name}
          className={classes.step}
          aria-current={index === current ? 'step' : undefined}
          data-done={index < current || undefined}
        >
          <span className={classes.mark} aria-hidden>
            {index < current ? <IconCheck size={15} /> : index + 1}
          </span>
          <span className={classes.label}>{name}</span>
        </li>
      ))}
    </ol>
  );
}
