/** Whether a text is a complete http or https URL. */
export const isWebAddress = (text: string) => /^https?:\/\//i.test(text) && URL.canParse(text);

/** The fault of a text that must be a complete http or https URL. */
export const addressFault = (text: string) =>
  isWebAddress(text) ? null : 'Enter a complete URL: https://host/path.';

/** The fault of a name under which a tool or prompt is published. */
export const nameFault = (name: string) =>
  /^[A-Za-z0-9_-]{1,64}$/.test(name) ? null : 'Use 1 to 64 letters, digits, hyphens and underscores.';

/** The fault of a text that may not be blank; `message` says what to enter. */
export const blank = (text: string, message: string) => (text.trim() === '' ? message : null);
