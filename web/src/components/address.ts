import { suggestSlug } from '../slug';

interface Named {
  values: { name: string; slug: string };
  getInputProps: (path: 'name' | 'slug') => object;
  setFieldValue: (path: 'name' | 'slug', value: string) => void;
  validateField: (path: 'slug') => unknown;
}

type Typed = { currentTarget: { value: string } };

/** Properties of the fields for a name, and for an address that follows it until it is edited. */
export function nameAndAddress(form: Named) {
  return {
    name: {
      ...form.getInputProps('name'),
      onChange: ({ currentTarget: { value } }: Typed) => {
        const { name, slug } = form.values;
        form.setFieldValue('name', value);
        if (slug === suggestSlug(name)) form.setFieldValue('slug', suggestSlug(value));
      },
    },
    slug: {
      ...form.getInputProps('slug'),
      onChange: ({ currentTarget: { value } }: Typed) => {
        form.setFieldValue('slug', value.toLowerCase());
        form.validateField('slug');
      },
    },
  };
}
