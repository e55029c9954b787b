/** The text format of Prometheus (version 0.0.4), one family at a time. */
import { ownValue } from '@tenon/api'
import { perObject } from '@tenon/runtime'

/** Labels of a series; names are valid label names. */
export type LabelValues = Readonly<Record<string, string | number | undefined>>

export interface Sample {
  readonly labels: LabelValues
  /** Labels in common with other samples; their text is rendered once for the same object. */
  readonly shared?: LabelValues
  readonly value: number
}

/** HELP and TYPE lines of a family. */
export function headerText(family: {
  readonly name: string
  readonly help: string
  readonly type: string
}): string {
  const help = family.help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
  return `# HELP ${family.name} ${help}\n# TYPE ${family.name} ${family.type}\n`
}

/** Including the line end. */
export function sampleText(name: string, { labels, shared, value }: Sample): string {
  return `${seriesText(name, labels, shared)}${valueText(value)}\n`
}

/** Name and labels of a series; one flat string, as it may be kept. */
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
 * Some scrapers split labels at each comma, even in quotes, so commas become semicolons (operations.md 14).
 */
function valueInQuotes(value: string): string {
  if (!/[\\"\n,]/.test(value)) return value
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll(',', ';')
}

export function valueText(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value)
  return value > 0 ? '+Inf' : '-Inf'
}
