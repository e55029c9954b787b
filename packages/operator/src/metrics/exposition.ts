/** The text format of Prometheus (version 0.0.4), one family at a time. */
import { ownValue } from '@tenon/api'
import { perObject } from '@tenon/runtime'

/** Labels of a series; names are valid label names. */
export type LabelValues = Readonly<Record<string, string | number | undefined>>

/** One line to be, but for its name. */
export interface Sample {
  readonly labels: LabelValues
  /** Labels that this sample has in common with others, beside its own; their text is made once. */
  readonly shared?: LabelValues
  readonly value: number
}

/** The lines that say what a family is. */
export function headerText(family: {
  readonly name: string
  readonly help: string
  readonly type: string
}): string {
  const help = family.help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
  return `# HELP ${family.name} ${help}\n# TYPE ${family.name} ${family.type}\n`
}

/** A line, with its end. */
export function sampleText(name: string, { labels, shared, value }: Sample): string {
  return `${seriesText(name, labels, shared)}${valueText(value)}\n`
}

/** What stands before the value of a series; in one piece, as it may be kept. */
export function seriesText(name: string, labels: LabelValues, shared?: LabelValues): string {
  const own = labelText(labels)
  const common = shared === undefined ? '' : sharedText(shared)
  if (own === '' && common === '') return `${name} `
  return [name, '{', own, own === '' || common === '' ? '' : ',', common, '} '].join('')
}

const sharedText = perObject((labels: LabelValues) => labelText(labels))

function labelText(labels: LabelValues): string {
  let text = ''
  for (const name in labels) {
    const value = ownValue(labels, name)
    if (value === undefined) continue
    text += `${text === '' ? '' : ','}${name}="${typeof value === 'number' ? value : valueInQuotes(value)}"`
  }
  return text
}

/**
 * Some readers split labels at each comma, whatever the quotes say; a value that has one shows a semicolon
 * in its place (operations.md 14).
 */
function valueInQuotes(value: string): string {
  if (!/[\\"\n,]/.test(value)) return value
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll(',', ';')
}

/** As the format wants it. */
export function valueText(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value)
  return value > 0 ? '+Inf' : '-Inf'
}
