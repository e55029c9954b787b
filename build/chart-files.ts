/** The generated files of `charts/`, derived from other files so that they cannot drift apart. */
import type { ProviderModule } from '@tenon/provider'
import { builtInProviders } from '../packages/cli/src/providers.ts'
import { addDefinitions, addProviders, addRules, type Files, ownChart, read } from './chart-parts.ts'
import { coreClusterRole, leaseRole, brakeRole } from './core-rights.ts'
import { type DocumentedValue, documentedValues } from './documented-values.ts'
import { addFormerCharts } from './former-charts.ts'
import { chartedProviders } from './provider-values.ts'

const beginning = '<!-- begin of the values, from values.yaml -->'
const end = '<!-- end of the values -->'

/** The text of each generated file, by its path from the repository's root. */
export async function chartFiles(
  modules: readonly ProviderModule[] = builtInProviders,
): Promise<ReadonlyMap<string, string>> {
  const files: Files = new Map()
  const providers = await chartedProviders(modules)
  addProviders(files, ownChart, providers)
  addRules(files, ownChart, providers)
  files.set(`charts/${ownChart}/templates/clusterrole-core.yaml`, coreClusterRole())
  files.set(`charts/${ownChart}/templates/role.yaml`, leaseRole())
  files.set(`charts/${ownChart}/templates/role-brake.yaml`, brakeRole())
  await addDefinitions(files, ownChart, modules)
  for (const each of providers) await addFormerCharts(files, each)
  for (const chart of [ownChart, `${ownChart}-crd`, 'cluster-autoscaler']) {
    const path = `charts/${chart}/README.md`
    const yaml = `charts/${chart}/values.yaml`
    const values = documentedValues(files.get(yaml) ?? read(yaml))
    files.set(path, withTable(path, read(path), values))
  }
  return files
}

/** Inserts the table between its two markers. */
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
