/** What cloud modules add to the chart: values, their schema, and data for its templates. */
import { clusterRulesOf, type FormerChart, type ProviderChart, type ProviderModule } from '@tenon/provider'
import { yamlDocument } from '../packages/cli/src/crds.ts'

/** A cloud that can be installed with the chart. */
export interface ChartedProvider {
  readonly module: ProviderModule
  readonly chart: ProviderChart
}

/** The modules that add something to the chart. */
export async function chartedProviders(
  modules: readonly ProviderModule[],
): Promise<readonly ChartedProvider[]> {
  const charts = modules.map(async (module) => ({ module, chart: await module.chart?.() }))
  return (await Promise.all(charts)).flatMap(({ module, chart }) => (chart ? [{ module, chart }] : []))
}

const notice = 'Written by npm run charts from the module of the provider.'

/** The file of `providers/` that the templates read. */
export function providerFile({ module, chart }: ChartedProvider): string {
  const data = {
    nodeClasses: module.nodeClasses.map(({ plural, group }) => `${plural}.${group}`),
    values: chart.values.map(({ name, needed, to }) => ({ name, ...(needed && { needed }), ...to })),
    clusterRoleRules: clusterRulesOf(module.nodeClasses, chart),
    roles: chart.roles,
    ...(chart.preferredNodes && { preferredNodes: expressionsOf(chart.preferredNodes) }),
    ...(chart.takesOver && { takesOver: takenOver(chart.takesOver) }),
    ...(chart.note && { note: chart.note }),
  }
  return `# ${notice}\n${yamlDocument(data)}`
}

function expressionsOf(labels: Readonly<Record<string, readonly string[]>>): readonly object[] {
  return Object.entries(labels).map(([key, values]) => ({ key, operator: 'In', values }))
}

function takenOver({ images, renamed, ignored }: FormerChart): object {
  return {
    images,
    renamed: Object.entries(renamed).map(([from, to]) => ({ from, to })),
    ignored: Object.entries(ignored).map(([from, because]) => ({ from, because })),
  }
}

const providerComment = /^# -- Cloud that nodes are launched in: .*$/m
const valuesBegin = '# What follows is written by npm run charts from the modules of the providers.\n'

/**
 * Adds the values of these clouds to `values.yaml`.
 * @throws Error if the text lacks the comment of `provider`, or the marker of the generated part.
 */
export function withProviderValues(yaml: string, providers: readonly ChartedProvider[]): string {
  const [own, rest] = yaml.split(valuesBegin)
  if (own === undefined || rest === undefined || !providerComment.test(own))
    throw new Error(`values.yaml lacks a comment of provider, or the line "${valuesBegin.trim()}"`)
  const names = providers.map(({ module: { name, title } }) => `\`${name}\` (${title})`)
  const others = names.slice(0, -1).join(', ')
  const comment = `# -- Cloud that nodes are launched in: ${others === '' ? '' : `${others} or `}${names.at(-1)}.`
  const sections = providers.map(({ module, chart }) => {
    const values = chart.values.map(
      ({ name, meaning, initial }) => `${commentOf(meaning)}  ${name}:${yamlOf(initial)}\n`,
    )
    return `\n${module.name}:\n${values.join('')}`
  })
  return `${own.replace(providerComment, comment)}${valuesBegin}${sections.join('')}`
}

const columns = 105

/** A comment of one or more lines, with the marker that adds it to the table of values. */
function commentOf(meaning: string): string {
  const lines: string[] = []
  let line = '  # --'
  for (const word of meaning.split(' ')) {
    if (line.length + word.length + 1 > columns) {
      lines.push(line)
      line = '  #'
    }
    line += ` ${word}`
  }
  return [...lines, line, ''].join('\n')
}

function yamlOf(initial: string | readonly string[]): string {
  if (initial.length === 0) return typeof initial === 'string' ? " ''" : ' []'
  if (typeof initial !== 'string') return initial.map((item) => `\n    - ${item}`).join('')
  return ` ${yamlDocument(initial).trim()}`
}

interface Schema {
  readonly $ref?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
}

/** Adds the values of these clouds to `values.schema.json`. */
export function withProviderSchemas(json: string, providers: readonly ChartedProvider[]): string {
  const schema = withoutReferences(JSON.parse(json) as Schema)
  const own = Object.entries(schema.properties ?? {}).filter(([, { description }]) => description !== notice)
  const properties: Readonly<Record<string, object>> = {
    ...Object.fromEntries(own),
    provider: { enum: providers.map(({ module }) => module.name) },
    ...Object.fromEntries(providers.map(({ module, chart }) => [module.name, schemaOf(chart)])),
  }
  const references = providers.flatMap(({ chart }) => formerReferences(chart))
  const whole = references.reduce<Schema>(withReference, { ...schema, properties })
  return `${jsonText(whole, 0)}\n`
}

const toValue = '#/properties/'
const toIgnored = '#/definitions/ignored'

/** Removes the values of other charts that an earlier run has written. */
function withoutReferences(schema: Schema): Schema {
  if (schema.properties === undefined) return schema
  const kept = Object.entries(schema.properties).filter(
    ([, { $ref }]) => !$ref?.startsWith(toValue) && $ref !== toIgnored,
  )
  const properties = Object.fromEntries(kept.map(([name, each]) => [name, withoutReferences(each)]))
  return { ...schema, properties }
}

interface FormerReference {
  readonly path: readonly string[]
  readonly $ref: string
}

/** Values of the replaced chart refer to the schemas of the corresponding values of this one. */
function formerReferences({ takesOver }: ProviderChart): readonly FormerReference[] {
  if (takesOver === undefined) return []
  const renamed = Object.entries(takesOver.renamed).map(([from, to]) => ({
    path: from.split('.'),
    $ref: `${toValue}${to.replaceAll('.', '/properties/')}`,
  }))
  const ignored = Object.keys(takesOver.ignored).map((from) => ({
    path: from.split('.'),
    $ref: toIgnored,
  }))
  return [...renamed, ...ignored]
}

function withReference(schema: Schema, { path, $ref }: FormerReference): Schema {
  const [name = '', ...rest] = path
  const below = new Map(Object.entries(schema.properties ?? {}))
  below.set(name, rest.length === 0 ? { $ref } : withReference(below.get(name) ?? {}, { path: rest, $ref }))
  return { ...schema, properties: Object.fromEntries(below) }
}

function schemaOf({ values }: ProviderChart): object {
  return {
    description: notice,
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(values.map(({ name, schema }) => [name, schema ?? { type: 'string' }])),
  }
}

/** The line width of this repository's formatter. */
const jsonColumns = 110

/** Formats JSON as the formatter does: on one line if it fits. */
function jsonText(value: unknown, column: number, depth = 0): string {
  const flat = flatText(value)
  if (depth > 0 && column + flat.length < jsonColumns) return flat
  if (typeof value !== 'object' || value === null) return flat
  const indent = '  '.repeat(depth + 1)
  const isList = Array.isArray(value)
  const lines = Object.entries(value).map(([key, item]) => {
    const start = isList ? indent : `${indent}${JSON.stringify(key)}: `
    return `${start}${jsonText(item, start.length, depth + 1)}`
  })
  const [open, close] = isList ? '[]' : '{}'
  return `${open}\n${lines.join(',\n')}\n${'  '.repeat(depth)}${close}`
}

function flatText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flatText).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const items = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${flatText(item)}`)
  return items.length === 0 ? '{}' : `{ ${items.join(', ')} }`
}
