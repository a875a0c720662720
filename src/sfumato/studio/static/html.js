// One place that binds the templates to the library.
import { h } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";

export const html = htm.bind(h);
export { render } from "./vendor/preact.mjs";
export { useEffect, useMemo, useRef, useState } from "./vendor/hooks.mjs";
