/** The styles for the operator's accent colour. They ensure the contrast that users with low vision need. */
type Rgb = readonly [red: number, green: number, blue: number]

// The backgrounds in `wwwroot/starter-base.css`, in light mode and in dark mode.
const LIGHT = { page: '#f4f5f7', card: '#ffffff' }
const DARK = { page: '#14161a', card: '#1d2025' }

// WCAG 2.2, success criterion 1.4.3, for text of normal size.
const LEAST_CONTRAST = 4.5
const WHITE: Rgb = [255, 255, 255]
const BLACK: Rgb = [0, 0, 0]
const STEPS = 50
const HOVER = 0.18

/**
 * Returns the style rules for an accent colour. Buttons have exactly this colour, with white or black text. Links and
 * the focus indicator have the nearest shade with enough contrast to the background. This shade is different in light
 * mode and in dark mode.
 * @param accent a colour such as `#1d5fc2` or `#15c`
 */
export function accentStyle(accent: string): string {
  const button = parseColour(accent)
  const onButton = contrast(button, WHITE) >= LEAST_CONTRAST ? WHITE : BLACK
  const buttonHover = mix(button, onButton === WHITE ? BLACK : WHITE, HOVER)
  const shades = (backgrounds: readonly string[], towards: Rgb) => {
    const shade = readableShade(button, backgrounds.map(parseColour), towards)
    return `--accent: ${hex(shade)}; --accent-hover: ${hex(mix(shade, towards, HOVER))};`
  }
  return `
:root { ${shades([LIGHT.page, LIGHT.card], BLACK)} }
@media (prefers-color-scheme: dark) {
  :root { ${shades([DARK.page, DARK.card], WHITE)} }
}
.button:not(.second) { background: ${hex(button)}; color: ${hex(onButton)}; }
.button:not(.second):hover { background: ${hex(buttonHover)}; color: ${hex(onButton)}; }
`
}

function readableShade(colour: Rgb, backgrounds: readonly Rgb[], towards: Rgb): Rgb {
  for (let step = 0; step < STEPS; step++) {
    const shade = mix(colour, towards, step / STEPS)
    if (backgrounds.every(background => contrast(shade, background) >= LEAST_CONTRAST)) return shade
  }
  return towards
}

function mix(colour: Rgb, towards: Rgb, share: number): Rgb {
  const channel = (index: 0 | 1 | 2) => Math.round(colour[index] + (towards[index] - colour[index]) * share)
  return [channel(0), channel(1), channel(2)]
}

/** Returns the WCAG contrast ratio of two colours, from 1 to 21. */
export function contrast(one: Rgb, other: Rgb): number {
  const [darker, lighter] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number]
  return (lighter + 0.05) / (darker + 0.05)
}

// WCAG 2.2, definition of relative luminance.
function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map(value => {
    const share = value / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as [number, number, number]
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

export function parseColour(colour: string): Rgb {
  const digits = colour.slice(1)
  const long = digits.length === 3 ? digits.replace(/./g, '$&$&') : digits
  const [red = 0, green = 0, blue = 0] = Buffer.from(long, 'hex')
  return [red, green, blue]
}

function hex(colour: Rgb): string {
  return `#${Buffer.from(colour).toString('hex')}`
}
