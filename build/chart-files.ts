/** The files of `charts/` that follow from other files, so that they cannot drift apart. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProviderModule } from '@tenon/provider'
import { crdDocuments } from '../packages/cli/src/commands/crds.ts'
import { builtInProviders } from '../packages/cli/src/providers.ts'
import { type DocumentedValue, documentedValues } from './documented-values.ts'
import { repositoryRoot } from './repository-root.ts'
import { chartedProviders, providerFile, withProviderSchemas, withProviderValues } from './provider-values.ts'

const beginning = '<!-- begin of the values, from values.yaml -->'
const end = '<!-- end of the values -->'

const valuesFile = 'charts/tenon/values.yaml'
const schemaFile = 'charts/tenon/values.schema.json'

/** Each generated file's text, by its path from the repository's root. */
export async function chartFiles(
  modules: readonly ProviderModule[] = builtInProviders,
): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>()
  const providers = await chartedProviders(modules)
  files.set(valuesFile, withProviderValues(read(valuesFile), providers))
  files.set(schemaFile, withProviderSchemas(read(schemaFile), providers))
  for (const each of providers)
    files.set(`charts/tenon/providers/${each.module.name}.yaml`, providerFile(each))
  for (const { name, yaml } of await crdDocuments(modules)) {
    files.set(`charts/tenon/crds/${name}.yaml`, yaml)
    files.set(`charts/tenon-crd/templates/${name}.yaml`, asTemplate(yaml))
  }
  for (const chart of ['tenon', 'tenon-crd']) {
    const path = `charts/${chart}/README.md`
    const yaml = `charts/${chart}/values.yaml`
    const values = documentedValues(files.get(yaml) ?? read(yaml))
    files.set(path, withTable(path, read(path), values))
  }
  return files
}

function read(path: string): string {
  return readFileSync(join(repositoryRoot, path), 'utf8')
}

/** The definition with room for labels and annotations; braces in descriptions stay text. */
function asTemplate(yaml: string): string {
  const [head, tail] = yaml.replaceAll('{{', '{{ "{{" }}').split(/(?<=^metadata:\n {2}name: .*\n)/m)
  if (tail === undefined) throw new Error('a definition begins with metadata.name')
  return `${head}  {{- include "tenon-crd.metadata" . | nindent 2 }}\n${tail}`
}

/** Puts the table between its two marks. */
function withTable(path: string, text: string, values: readonly DocumentedValue[]): string {
  const [before, rest] = text.split(beginning)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined) throw new Error(`${path} lacks "${beginning}" or "${end}"`)
  const rows = values.map(
    ({ path: name, initial, meaning }) => `| \`${name}\` | ${cell(initial)} | ${meaning} |`,
  )
  const table = ['| Value | Default | Meaning |', '|---|---|---|', ...rows].join('\n')
  return `${before}${beginning}\n${table}\n${end}${after}`
}

function cell(text: string): string {
  return text === '' ? 'unset' : text.includes('\n') ? 'see values.yaml' : `\`${text}\``
}
