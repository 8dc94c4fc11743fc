/** URI templates (RFC 6570) with string values. */
const expression = /\{([+#./;?&]?)([^{}]+)\}/g;

const names = (list: string) => list.split(',').map((one) => one.replace(/\*$|:\d+$/, ''));

/** The variables of a template, each once. */
export const variablesOf = (template: string): string[] => [
  ...new Set([...template.matchAll(expression)].flatMap((one) => names(one[2] ?? ''))),
];

const encodeAll = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);

const shapes: Record<string, { first: string; between: string; named: boolean; reserved: boolean }> = {
  '': { first: '', between: ',', named: false, reserved: false },
  '+': { first: '', between: ',', named: false, reserved: true },
  '#': { first: '#', between: ',', named: false, reserved: true },
  '.': { first: '.', between: '.', named: false, reserved: false },
  '/': { first: '/', between: '/', named: false, reserved: false },
  ';': { first: ';', between: ';', named: true, reserved: false },
  '?': { first: '?', between: '&', named: true, reserved: false },
  '&': { first: '&', between: '&', named: true, reserved: false },
};

/** The template with its values; a variable without one is left out. */
export function expand(template: string, values: Record<string, string>): string {
  return template.replace(expression, (_, operator: string, list: string) => {
    const shape = shapes[operator] as (typeof shapes)[string];
    const parts = names(list).flatMap((name) => {
      const value = values[name];
      if (value === undefined || value === '') return [];
      const text = shape.reserved ? encodeURI(value) : encodeAll(value);
      return shape.named ? [`${name}=${text}`] : [text];
    });
    return parts.length === 0 ? '' : shape.first + parts.join(shape.between);
  });
}
