import { Tag } from './badges';
import classes from './operations.module.css';
import { type PublishedKind, published } from './published';
import { ChoiceRow, choose, type Names } from './published-choice';

/** Something that a server can offer beside tools. */
export interface Offer {
  id: string;
  /** Its own name or URI. */
  name: string;
  title: string;
  note: string | null;
  /** Enabled, and still there. */
  awake: boolean;
}

/** The prompts or resources of a server, each with a box and, once selected, its published name. */
export function OfferList({
  kind,
  offers,
  names,
  onChange,
  clashes,
}: {
  kind: PublishedKind;
  offers: Offer[];
  names: Names;
  /** Absent for those who may only look. */
  onChange: ((names: Names) => void) | undefined;
  clashes: ReadonlySet<string>;
}) {
  return (
    <ul className={classes.list}>
      {offers.map((offer) => {
        const name = names.get(offer.id);
        return (
          <ChoiceRow
            key={offer.id}
            id={`offer-${offer.id}`}
            own={offer.name}
            label={published[kind].label}
            name={name}
            fault={
              name !== undefined && clashes.has(name) && 'This name is already used. Change one of the two.'
            }
            onChoose={(chosen) => onChange?.(choose(names, [offer], chosen))}
            onRename={onChange && ((next) => onChange(new Map(names).set(offer.id, next)))}
          >
            <label htmlFor={`offer-${offer.id}`} className={classes.name}>
              {offer.name}
            </label>
            <div className={classes.title}>
              {[offer.title, offer.note].filter(Boolean).join(' · ')}{' '}
              {!offer.awake && <Tag tone="warn">disabled, not served</Tag>}
            </div>
          </ChoiceRow>
        );
      })}
    </ul>
  );
}
