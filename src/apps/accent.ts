type Rgb = readonly [red: number, green: number, blue: number]

/** The darkest background of the accent in the light scheme, and the lightest in the dark scheme (`templates/pages/style.css`). */
const LIGHT_GROUND: Rgb = [0xf3, 0xf4, 0xf7]
const DARK_GROUND: Rgb = [0x1d, 0x22, 0x2b]
const WHITE: Rgb = [255, 255, 255]
const BLACK: Rgb = [0, 0, 0]
/** The least contrast of text that is not large (WCAG 2.2, 1.4.3). */
const READABLE = 4.5

/** The contrast of two colours, 1 to 21 (WCAG 2.2). */
export function contrast(one: Rgb, other: Rgb): number {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number]
  return (high + 0.05) / (low + 0.05)
}

/** Null if links and buttons of this colour are readable; otherwise its contrast, and the nearest colour that is readable. */
export function unreadable(hex: string): { readonly contrast: number; readonly nearest: string } | null {
  const colour = parse(hex)
  const found = contrast(colour, LIGHT_GROUND)
  return found >= READABLE ? null : { contrast: found, nearest: format(untilReadable(colour, BLACK, LIGHT_GROUND)) }
}

/** The CSS of a page's accent: the colour itself in the light scheme, and a shade light enough to be readable in the dark one. */
export function accentStyle(hex: string): string {
  const colour = parse(hex)
  const onDark = lighten(colour)
  return `:root{${shades(colour, BLACK, LIGHT_GROUND)}}@media (prefers-color-scheme:dark){:root{${shades(onDark, WHITE, DARK_GROUND)}}}`
}

/** The accent for a dark background, and the colour of text on it. */
export function accentOnDark(hex: string): { readonly accent: string; readonly onAccent: string } {
  const accent = lighten(parse(hex))
  return { accent: format(accent), onAccent: format(textColourOn(accent)) }
}

function lighten(colour: Rgb): Rgb {
  return untilReadable(colour, WHITE, DARK_GROUND)
}

function textColourOn(accent: Rgb): Rgb {
  return contrast(accent, WHITE) >= READABLE ? WHITE : BLACK
}

function shades(accent: Rgb, strongest: Rgb, ground: Rgb): string {
  const colours: Readonly<Record<string, Rgb>> = {
    '--accent': accent,
    '--accent-strong': mix(accent, strongest, 0.2),
    '--accent-soft': mix(ground, accent, 0.08),
    '--on-accent': textColourOn(accent),
  }
  return Object.entries(colours)
    .map(([name, colour]) => `${name}:${format(colour)}`)
    .join(';')
}

/** The colour, mixed with `end` as little as needed to be readable on the background. */
function untilReadable(colour: Rgb, end: Rgb, ground: Rgb): Rgb {
  for (let share = 0; share < 1; share += 0.02) {
    const moved = mix(colour, end, share)
    if (contrast(moved, ground) >= READABLE) return moved
  }
  return end
}

function mix([r1, g1, b1]: Rgb, [r2, g2, b2]: Rgb, share: number): Rgb {
  const between = (from: number, to: number): number => Math.round(from + (to - from) * share)
  return [between(r1, r2), between(g1, g2), between(b1, b2)]
}

function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as [number, number, number]
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function parse(hex: string): Rgb {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)) as unknown as Rgb
}

function format(colour: Rgb): string {
  return `#${colour.map((part) => part.toString(16).padStart(2, '0')).join('')}`
}
