// Who is logged in, what that person may do, and whether answers need a passphrase.
export const me = { person: "", passphrase: false };

// A gateway without roles names none, and everybody may do everything.
export const may = (what) => me.may === undefined || me.may.includes(what);

export const mayOf = (one, what) => may("answer") && (one.you_may === undefined || one.you_may.includes(what));
