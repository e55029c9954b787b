/** Parts that every chart of `charts/` has, generated from the chart `tenon` and from modules. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProviderModule } from '@tenon/provider'
import { crdDocuments } from '../packages/cli/src/crds.ts'
import {
  type ChartedProvider,
  providerFile,
  withProviderSchemas,
  withProviderValues,
} from './provider-values.ts'
import { repositoryRoot } from './repository-root.ts'

/** The chart that the others are derived from; the chart of its definitions has the suffix `-crd`. */
export const ownChart = 'tenon'

/** Texts of files by their paths from the repository's root. */
export type Files = Map<string, string>

export function read(path: string): string {
  return readFileSync(join(repositoryRoot, path), 'utf8')
}

/** Adds the values of these clouds to a chart, and the data that its templates read. */
export function addProviders(files: Files, chart: string, providers: readonly ChartedProvider[]): void {
  const values = read(`charts/${ownChart}/values.yaml`)
  files.set(`charts/${chart}/values.yaml`, withProviderValues(values, providers))
  const schema = read(`charts/${ownChart}/values.schema.json`)
  files.set(`charts/${chart}/values.schema.json`, withProviderSchemas(schema, providers))
  for (const each of providers)
    files.set(`charts/${chart}/providers/${each.module.name}.yaml`, providerFile(each))
}

/** Adds Prometheus rules to a chart: common ones, and those of these clouds. */
export function addRules(files: Files, chart: string, providers: readonly ChartedProvider[]): void {
  const own = providers.map(({ module }) => module.name)
  for (const name of ['recording-rules', 'alerts', ...own]) {
    const path = `monitoring/prometheus/${name}.yaml`
    if (!existsSync(join(repositoryRoot, path))) continue
    files.set(
      `charts/${chart}/rules/${name}.yaml`,
      `# Written by npm run charts from ${path}.\n${read(path)}`,
    )
  }
}

/** Adds definitions to a chart, which only installs them, and to its `-crd` chart, which upgrades them too. */
export async function addDefinitions(
  files: Files,
  chart: string,
  modules: readonly ProviderModule[],
): Promise<void> {
  for (const { name, yaml } of await crdDocuments(modules)) {
    files.set(`charts/${chart}/crds/${name}.yaml`, yaml)
    const template = asTemplate(yaml)
    const value = optionalDefinitions.get(name)
    files.set(
      `charts/${chart}-crd/templates/${name}.yaml`,
      value === undefined ? template : `{{- if .Values.${value} }}\n${template}{{- end }}\n`,
    )
  }
}

/** Definitions that other projects install too, with the value that enables each. */
const optionalDefinitions: ReadonlyMap<string, string> = new Map([
  ['provisioningrequests.autoscaling.x-k8s.io', 'provisioningRequests'],
])

/** A definition as a template with labels and annotations; braces in descriptions are escaped. */
function asTemplate(yaml: string): string {
  const [head, tail] = yaml.replaceAll('{{', '{{ "{{" }}').split(/(?<=^metadata:\n {2}name: .*\n)/m)
  if (tail === undefined) throw new Error('a definition begins with metadata.name')
  return `${head}  {{- include "tenon-crd.metadata" . | nindent 2 }}\n${tail}`
}
