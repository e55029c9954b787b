/** Checks NodePools and node classes without a hub. */
import { type KubeObject, noPrices, readPriceFile } from '@tenon/api'
import type { OfflineCatalogue, OfflineFinding, OfflineTypes, ProviderEnvironment } from '@tenon/provider'
import { instanceTypesOf } from './catalogue/instance-types.ts'
import { isSelected, membersOf, selectorProblems } from './catalogue/members.ts'
import { defaultArchitecture } from './catalogue/node-labels.ts'
import { poolRules } from './catalogue/pool-rules.ts'
import { readDeployment } from './catalogue/read-deployment.ts'
import { factsIn, type TemplateFacts } from './catalogue/template-facts.ts'
import { groupIn, scopeIn } from './hub/scope.ts'
import { namesOf } from './names.ts'
import type { ClusterAPINodeClass } from './node-class.ts'
import { findingsOf } from './nodeclass/validation.ts'
import type { MachineDeployment } from './objects.ts'

/** Replaces a template that only the hub has, so that missing capacity annotations are not reported. */
const roomy: TemplateFacts = { capacity: { cpu: 1, memory: 1 } }
const nothingKnown: OfflineTypes = { offered: [], known: [], isPartial: true }

/**
 * Reads the MachineDeployments in the files, with their templates if these are there too. Without any, types are
 * unknown.
 * @throws Error if the price file cannot be read.
 */
export async function offlineCatalogue(
  env: ProviderEnvironment,
  readText: (path: string) => Promise<string>,
): Promise<OfflineCatalogue> {
  const file = env['CLUSTER_API_PRICES_PATH'] ?? ''
  const { ok: prices = noPrices, error } =
    file === '' ? { ok: noPrices } : readPriceFile(await readText(file))
  const names = namesOf(groupIn(env))
  const architecture = defaultArchitecture(env['CAPI_SCALE_ZERO_DEFAULT_ARCH'])
  const typesOf = (
    nodeClass: ClusterAPINodeClass | undefined,
    others: readonly KubeObject[],
  ): OfflineTypes => {
    const deployments = others.filter((each) => isMachineDeployment(each, names.group))
    if (selectorProblems(nodeClass?.spec?.scalableResourceSelector).length > 0) return nothingKnown
    const membership = membersOf(deployments, names, scopeIn(env))
    if (membership.kind === 'refused' || membership.deployments.length === 0) return nothingKnown
    const readings = membership.deployments
      .filter((deployment) => nodeClass === undefined || isSelected(nodeClass, deployment))
      .map((each) => readDeployment(each, factsOf(each, others), prices, names, architecture))
    const types = instanceTypesOf(
      readings.flatMap((each) => (each.kind === 'participant' ? [each.participant] : [])),
    )
    // On the hub, templates may make excluded ones usable.
    const isPartial = readings.length === 0 || readings.some(({ kind }) => kind === 'excluded')
    return { offered: types, known: types, ...(isPartial && { isPartial }) }
  }
  return {
    rules: poolRules,
    typesOf: (nodeClass, others = []) => typesOf(nodeClass, others),
    findingsOf: (nodeClass) => findingsOf(nodeClass as ClusterAPINodeClass),
    sourceFindingsOf: (object) => {
      if (!isMachineDeployment(object, names.group)) return []
      const membership = membersOf([object], names, scopeIn(env))
      const deployments = membership.kind === 'members' ? membership.deployments : []
      return deployments.flatMap((each): readonly OfflineFinding[] => {
        const reading = readDeployment(each, roomy, prices, names, architecture)
        if (reading.kind === 'participant') return []
        return [{ severity: 'error', field: 'metadata.annotations', message: reading.because }]
      })
    },
    problems: error === undefined ? [] : [{ file, message: error }],
  }
}

function isMachineDeployment(object: KubeObject, group: string): object is MachineDeployment {
  const { apiVersion, kind } = object
  return kind === 'MachineDeployment' && apiVersion.startsWith(`${group}/`)
}

/**
 * The facts of its template, if the files contain it. Manifests of users have no status; those exported from a hub do.
 */
function factsOf(
  { metadata, spec }: MachineDeployment,
  others: readonly KubeObject[],
): TemplateFacts | undefined {
  const ref = spec?.template?.spec?.infrastructureRef
  const template = others.find(
    (each) =>
      each.kind === ref?.kind &&
      each.metadata.name === ref?.name &&
      each.metadata.namespace === metadata.namespace,
  )
  return template && factsIn(template)
}
