/** Colours of a terminal, from none to 24 bit. No information depends on colour alone. */

export type ColorDepth = 'none' | '16' | '256' | 'true'

export type Look = 'good' | 'ok' | 'bad' | 'dim' | 'bold' | 'selected'

/** Three colours of `--style`, as `#rrggbb`: good, medium, bad. */
export type StyleColors = readonly [string, string, string]

export const defaultStyle: StyleColors = ['#04B575', '#FFFF00', '#FF0000']

export interface Paint {
  (look: Look | undefined, text: string): string
}

/** @throws RangeError unless it is three colours. */
export function styleColorsOf(text: string): StyleColors {
  const [good, ok, bad, ...more] = text.split(',').map((each) => each.trim())
  for (const each of [good, ok, bad])
    if (each === undefined || !/^#[0-9a-f]{6}$/i.test(each) || more.length > 0)
      throw new RangeError(`use three colours such as ${defaultStyle.join(',')}`)
  return [good ?? '', ok ?? '', bad ?? '']
}

export function paintWith(depth: ColorDepth, colors: StyleColors = defaultStyle): Paint {
  if (depth === 'none') return (_look, text) => text
  const codes: Readonly<Record<Look, string>> = {
    good: colorCode(depth, colors[0], '32'),
    ok: colorCode(depth, colors[1], '33'),
    bad: colorCode(depth, colors[2], '31'),
    dim: '2',
    bold: '1',
    selected: '7',
  }
  return (look, text) => (look === undefined || text === '' ? text : `\u001b[${codes[look]}m${text}\u001b[0m`)
}

function colorCode(depth: ColorDepth, color: string, basic: string): string {
  if (depth === '16') return basic
  const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16)) as [
    number,
    number,
    number,
  ]
  if (depth === 'true') return `38;2;${red};${green};${blue}`
  const cube = (value: number) => Math.round((value / 255) * 5)
  return `38;5;${16 + 36 * cube(red) + 6 * cube(green) + cube(blue)}`
}

/** Detects the colour support of a terminal from its environment. */
export function colorDepthOf(
  env: Readonly<Record<string, string | undefined>>,
  choice: 'auto' | 'always' | 'never' | ColorDepth = 'auto',
): ColorDepth {
  if (choice === 'never') return 'none'
  if (choice !== 'auto' && choice !== 'always') return choice
  if (choice === 'auto' && ((env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb')) return 'none'
  if (/^(truecolor|24bit)$/.test(env['COLORTERM'] ?? '')) return 'true'
  return (env['TERM'] ?? '').includes('256color') ? '256' : '16'
}
