import { createHash } from 'node:crypto'

/** The backgrounds of the pages in light and in dark mode. Accent colours must be readable on them. */
export const LIGHT = { page: '#f4f5f7', card: '#ffffff' }
export const DARK = { page: '#14161a', card: '#1d2025' }

/**
 * The style of all our pages. Its colours follow the light or dark setting of the system. The starter page loads the
 * same text as `starter-base.css`.
 */
export const pageStyle = `:root {
  color-scheme: light dark;
  --page: ${LIGHT.page};
  --card: ${LIGHT.card};
  --text: #1d2127;
  --quiet: #59626e;
  --line: #dcdfe4;
  --accent: #1d5fc2;
  --accent-hover: #174c9c;
  --on-accent: #ffffff;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
}

@media (prefers-color-scheme: dark) {
  :root {
    --page: ${DARK.page};
    --card: ${DARK.card};
    --text: #e7e9ec;
    --quiet: #a3abb6;
    --line: #353a42;
    --accent: #8db7ff;
    --accent-hover: #b3cfff;
    --on-accent: #10151d;
  }
}

*,
::before,
::after {
  box-sizing: border-box;
}

body {
  display: grid;
  grid-template-columns: minmax(0, 1fr);
  place-items: start center;
  min-height: 100vh;
  margin: 0;
  padding: clamp(1rem, 12vh, 8rem) 1rem 2rem;
  background: var(--page);
  color: var(--text);
  font: 1rem / 1.55 var(--sans);
  overflow-wrap: anywhere;
}

main {
  width: 100%;
  max-width: 34rem;
  padding: clamp(1.25rem, 5vw, 2.5rem);
  border: 1px solid var(--line);
  border-radius: 12px;
  background: var(--card);
}

h1 {
  margin: 0 0 0.75rem;
  font-size: 1.5rem;
  font-weight: 650;
  line-height: 1.25;
  overflow-wrap: break-word;
  text-wrap: balance;
}

h1:lang(ja) {
  word-break: auto-phrase;
}

h2 {
  margin: 1.75rem 0 0.5rem;
  font-size: 1.0625rem;
  font-weight: 650;
}

p,
ul,
ol {
  margin: 0 0 0.75rem;
}

ul,
ol {
  padding-left: 1.25rem;
}

li {
  margin-bottom: 0.5rem;
}

a {
  color: var(--accent);
  text-underline-offset: 0.2em;
}

a:hover {
  color: var(--accent-hover);
}

code {
  font: 0.9375em var(--mono);
}

:focus-visible {
  outline: 3px solid var(--accent);
  outline-offset: 3px;
}

.actions {
  display: flex;
  flex-wrap: wrap;
  gap: 0.75rem;
  margin: 1.5rem 0 0;
}

.button {
  display: inline-block;
  min-height: 2.75rem;
  padding: 0.5625rem 1.25rem;
  border: 1px solid var(--accent);
  border-radius: 8px;
  background: var(--accent);
  color: var(--on-accent);
  font: inherit;
  font-weight: 600;
  text-align: center;
  text-decoration: none;
  cursor: pointer;
}

.button:hover {
  border-color: var(--accent-hover);
  background: var(--accent-hover);
  color: var(--on-accent);
}

.button.second {
  border-color: var(--line);
  background: transparent;
  color: var(--text);
}

.button.second:hover {
  border-color: var(--accent);
}

.small {
  margin-top: 1.75rem;
  padding-top: 1rem;
  border-top: 1px solid var(--line);
  color: var(--quiet);
  font-size: 0.875rem;
}

.small p {
  margin: 0 0 0.25rem;
}

label,
.label {
  display: block;
  margin: 1rem 0 0.375rem;
  font-weight: 600;
}

.field {
  display: flex;
  gap: 0.75rem;
  align-items: center;
}

.field > :first-child {
  flex: 1;
  min-width: 0;
  margin: 0;
}

.choices {
  display: grid;
  grid-template-columns: 1fr 1fr;
  gap: 0.75rem;
}

.choices :first-child {
  grid-column: 1 / -1;
}

.choices .button {
  padding-inline: 0.5rem;
}

input,
textarea {
  width: 100%;
  min-height: 2.75rem;
  padding: 0.5rem 0.75rem;
  border: 1px solid var(--quiet);
  border-radius: 8px;
  background: var(--page);
  color: var(--text);
  font: inherit;
}

[hidden] {
  display: none;
}

@media (max-width: 26rem) {
  body {
    padding-top: 1rem;
  }

  .actions .button {
    flex: 1 1 100%;
  }
}

@media (forced-colors: active) {
  .button {
    border-color: ButtonText;
  }
}
`

/**
 * The style of a name or a logo above the heading. Most logos are made for a white background, so the logo keeps one in dark
 * mode. For the same reason an SVG logo with its own dark mode stays in its light mode.
 */
export const brandStyle = `
.brand {
  margin-bottom: 1.5rem;
  font-size: 1.125rem;
  font-weight: 650;
}

.brand img {
  display: block;
  box-sizing: content-box;
  width: auto;
  max-width: 100%;
  height: 2.5rem;
  object-fit: contain;
  object-position: left;
  color-scheme: light;
}

@media (prefers-color-scheme: dark) {
  .brand img {
    box-sizing: border-box;
    height: 3.5rem;
    padding: 0.5rem 0.75rem;
    border-radius: 8px;
    background: #ffffff;
  }
}
`

/**
 * Returns the icon of all our pages, a keyhole, as a `data:` URL.
 * @param colour a colour such as `#1d5fc2`
 */
export function pageIcon(colour = '#1d5fc2'): string {
  return [
    'data:image/svg+xml,',
    '%3Csvg xmlns=%27http://www.w3.org/2000/svg%27 viewBox=%270 0 32 32%27%3E',
    `%3Crect width=%2732%27 height=%2732%27 rx=%278%27 fill=%27${encodeURIComponent(colour)}%27/%3E`,
    '%3Cpath d=%27M16 8a5 5 0 0 0-2.5 9.3L12 24h8l-1.5-6.7A5 5 0 0 0 16 8z%27 fill=%27%23fff%27/%3E%3C/svg%3E'
  ].join('')
}

/**
 * Returns the Content-Security-Policy of our own pages. It allows only their inline styles and the images in the page
 * itself.
 * @param formTargets the allowed targets of forms; browsers also check each redirect after a form against this list, so it
 *   must contain the origins of all redirects
 * @param styles the texts of all elements `style` of these pages
 */
export function securityPolicyFor(formTargets: readonly string[], styles: readonly string[] = [pageStyle]): string {
  return [
    "default-src 'none'",
    `style-src ${[...new Set(styles)].map(hashSource).join(' ')}`,
    'img-src data:',
    `form-action ${formTargets.length === 0 ? "'none'" : formTargets.join(' ')}`,
    "frame-ancestors 'none'",
    "base-uri 'none'"
  ].join('; ')
}

function hashSource(style: string): string {
  return `'sha256-${createHash('sha256').update(style).digest('base64')}'`
}
