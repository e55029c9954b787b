/**
 * Generates `wire-fields.json` from the published protobuf definitions of Kubernetes: `node generate.ts
 * API_MODULE_DIRECTORY APIMACHINERY_MODULE_DIRECTORY > wire-fields.json`. The output contains the numbers, JSON names
 * and types of the fields of each message.
 */
/* oxlint-disable no-restricted-globals -- a command that is run by hand */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const [apiDirectory = '', machineryDirectory = ''] = process.argv.slice(2)

const packages: readonly (readonly [name: string, directory: string])[] = [
  ...[
    'core/v1',
    'apps/v1',
    'batch/v1',
    'policy/v1',
    'coordination/v1',
    'discovery/v1',
    'events/v1',
    'storage/v1',
    'scheduling/v1',
    'rbac/v1',
    'networking/v1',
    'autoscaling/v1',
    'autoscaling/v2',
    'admissionregistration/v1',
    'certificates/v1',
    'node/v1',
    'resource/v1',
    'flowcontrol/v1',
    'authentication/v1',
    'authorization/v1',
  ].map((path) => [`k8s.io.api.${path.replaceAll('/', '.')}`, join(apiDirectory, path)] as const),
  ['k8s.io.apimachinery.pkg.apis.meta.v1', join(machineryDirectory, 'pkg/apis/meta/v1')],
]

/** From the Go types: which fields are pointers, and which are inlined. */
function goFields(directory: string): Map<string, { pointers: Set<string>; inlined: Set<string> }> {
  const structs = new Map<string, { pointers: Set<string>; inlined: Set<string> }>()
  for (const file of readdirSync(directory)) {
    if (!/types.*\.go$/.test(file)) continue
    let current: { pointers: Set<string>; inlined: Set<string> } | undefined
    for (const line of readFileSync(join(directory, file), 'utf8').split('\n')) {
      const struct = /^type (\w+) struct \{/.exec(line)
      if (struct?.[1] !== undefined) {
        current = { pointers: new Set(), inlined: new Set() }
        structs.set(struct[1], current)
      }
      const field = /^\s+(?:\w+\s+)?([*[\]\w.]+)\s+`json:"([^",]*)([^"]*)".*protobuf:"[^"]*name=(\w+)/.exec(
        line,
      )
      if (field === null || current === undefined) continue
      const [, type = '', json = '', options = '', name = ''] = field
      if (type.startsWith('*')) current.pointers.add(name)
      if (json === '' && options.includes('inline')) current.inlined.add(name)
    }
  }
  return structs
}

/** `k8s.io.api.core.v1.Pod` → `core.v1.Pod`. */
function shortened(name: string): string {
  return name.replace('k8s.io.apimachinery.pkg.apis.', '').replace(/^k8s\.io\.(api|apimachinery\.pkg)\./, '')
}

const messages: Record<string, string> = {}
for (const [name, directory] of packages) {
  const structs = goFields(directory)
  let message = ''
  let fields: string[] = []
  for (const line of readFileSync(join(directory, 'generated.proto'), 'utf8').split('\n')) {
    const start = /^message (\w+) \{/.exec(line)
    if (start?.[1] !== undefined) {
      message = start[1]
      fields = []
    }
    if (line === '}') {
      if (!message.endsWith('List')) messages[shortened(`${name}.${message}`)] = fields.join('|')
      continue
    }
    const field = /^ {2}(?:(optional|repeated) ([\w.]+)|map<string, *([\w.]+)>) (\w+) = (\d+);/.exec(line)
    if (field === null) continue
    const [, label = 'map', type, mapValue, json = '', number = ''] = field
    const raw = mapValue ?? type ?? ''
    const scalar = /^(string|bool|int32|int64|uint32|uint64|double|bytes)$/.test(raw)
    const target = scalar ? raw : shortened(raw.includes('.') ? raw.replace(/^\./, '') : `${name}.${raw}`)
    const struct = structs.get(message)
    const mark = struct?.inlined.has(json) ? '^' : struct?.pointers.has(json) ? '*' : ''
    const form = label === 'repeated' ? '[]' : label === 'optional' ? '' : '{}'
    fields.push(`${number} ${json} ${form}${mark}${target}`)
  }
}
process.stdout.write(`${JSON.stringify(messages, undefined, 1)}\n`)
