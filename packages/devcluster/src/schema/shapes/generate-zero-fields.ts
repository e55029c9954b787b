/**
 * Generates `zero-fields.json` from the published Go types of Kubernetes: `node generate-zero-fields.ts API_MODULE
 * APIMACHINERY_MODULE APIEXTENSIONS_MODULE AGGREGATOR_MODULE > zero-fields.json`, with a directory of a Go module each.
 * The output lists, per struct, the fields that are omitted if zero, and after a bar those that are always serialized,
 * with the kind of their zero value.
 */
/* oxlint-disable no-restricted-globals -- a command that is run by hand */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const [api = '', machinery = '', extensions = '', aggregator = ''] = process.argv.slice(2)

const groups =
  'core/v1 apps/v1 batch/v1 policy/v1 coordination/v1 discovery/v1 events/v1 storage/v1 scheduling/v1 rbac/v1 ' +
  'networking/v1 autoscaling/v1 autoscaling/v2 admissionregistration/v1 certificates/v1 node/v1 resource/v1 ' +
  'flowcontrol/v1'

const packages: readonly (readonly [name: string, directory: string])[] = [
  ...groups.split(' ').map((path) => [path.replace('/', '.'), join(api, path)] as const),
  ['meta.v1', join(machinery, 'pkg/apis/meta/v1')],
  ['apiextensions.v1', join(extensions, 'pkg/apis/apiextensions/v1')],
  ['apiregistration.v1', join(aggregator, 'pkg/apis/apiregistration/v1')],
]

interface Field {
  readonly json: string
  readonly type: string
  readonly options: string
}

/** Structs by `package.Name`, and the underlying types of other named types. */
const structs = new Map<string, Field[]>()
const aliases = new Map<string, string>()

for (const [name, directory] of packages) {
  for (const file of readdirSync(directory)) {
    if (!/types.*\.go$/.test(file) || file.includes('_test')) continue
    let fields: Field[] | undefined
    for (const line of readFileSync(join(directory, file), 'utf8').split('\n')) {
      const struct = /^type (\w+) struct \{/.exec(line)?.[1]
      if (struct !== undefined) structs.set(`${name}.${struct}`, (fields = []))
      const [, alias, target] = /^type (\w+) ([\w.[\]*]+)$/.exec(line) ?? []
      if (alias !== undefined && target !== undefined) aliases.set(`${name}.${alias}`, target)
      const [, type = '', json, options = ''] =
        /^\s+(?:\w+\s+)?([*[\]\w.]+)\s+`json:"([^",]*)([^"]*)"/.exec(line) ?? []
      if (json !== undefined) fields?.push({ json, type, options })
    }
  }
}

const imports = new Map([
  ['metav1', 'meta.v1'],
  ['v1', 'core.v1'],
  ['apiv1', 'core.v1'],
  ['corev1', 'core.v1'],
])

/** Resolves a type name in a file: `metav1.ObjectMeta` in `core.v1` → `meta.v1.ObjectMeta`. */
function qualified(type: string, home: string): string {
  const [, prefix = '', name] = /^(\w+)\.(\w+)$/.exec(type) ?? []
  if (prefix === '') return `${home}.${type}`
  const found = imports.get(prefix)
  return found === undefined ? type : `${found}.${name}`
}

const scalars = new Map([
  ['string', 'string'],
  ['bool', 'boolean'],
  ['int', 'number'],
  ['int32', 'number'],
  ['int64', 'number'],
  ['types.UID', 'string'],
  ['intstr.IntOrString', 'number'],
])

/** The serialized zero value of a type; undefined for pointers and types with their own serialization. */
function zeroOf(type: string, home: string): string | undefined {
  if (type.startsWith('*')) return undefined
  if (type.startsWith('[]') || type.startsWith('map[')) return 'collection'
  const scalar = scalars.get(type)
  if (scalar !== undefined) return scalar
  const full = qualified(type, home)
  if (structs.has(full)) return /\.(Time|MicroTime|Duration)$/.test(full) ? undefined : 'struct'
  const alias = aliases.get(full)
  return alias === undefined ? undefined : zeroOf(alias, full.split('.').slice(0, -1).join('.'))
}

function fieldsOf(name: string): readonly (Field & { readonly home: string })[] {
  const home = name.split('.').slice(0, -1).join('.')
  return (structs.get(name) ?? []).flatMap((field) => {
    const isInlined = field.json === '' && field.options.includes('inline')
    return isInlined ? fieldsOf(qualified(field.type, home)) : [{ ...field, home }]
  })
}

const facts = new Map<string, string>()
for (const name of [...structs.keys()].toSorted()) {
  const dropped: string[] = []
  const kept: string[] = []
  for (const { json, type, options, home } of fieldsOf(name)) {
    const zero = zeroOf(type, home)
    // Validation reports empty names.
    if (name === 'meta.v1.ObjectMeta' && json === 'name') continue
    if (zero === undefined || json === '' || json === 'kind' || json === 'apiVersion') continue
    const isDropped = options.includes('omitempty') && zero !== 'struct' && type !== 'intstr.IntOrString'
    if (isDropped) dropped.push(json)
    else if (zero !== 'collection') kept.push(`${json}:${zero}`)
  }
  if (dropped.length + kept.length > 0) facts.set(name, `${dropped.join(' ')}|${kept.join(' ')}`)
}
process.stdout.write(`${JSON.stringify(Object.fromEntries(facts), undefined, 1)}\n`)
