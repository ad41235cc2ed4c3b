// Who is logged in, and whether answers need a passphrase.
export const me = { person: "", passphrase: false };
