/** The MachineDeployments of a management cluster, for `tenon init` (cluster-api.md 4 to 6). */
import { noPrices, ownValue, type ResourceType } from '@tenon/api'
import { createKubeClient, isKubeError, isNotServed } from '@tenon/kube'
import type { ExistingGroup, Survey, SurveyDependencies, SurveyModule } from '@tenon/provider'
import { instanceTypesOf } from './catalogue/instance-types.ts'
import type { Participant, Reading } from './catalogue/participant.ts'
import { readDeployment } from './catalogue/read-deployment.ts'
import { InfrastructureTemplates } from './catalogue/templates.ts'
import { readHubSettings } from './hub/settings.ts'
import { type ClusterApiNames, defaultGroup, namesOf } from './names.ts'
import { clusterAPINodeClassKind } from './node-class.ts'
import { kindsOf, type MachineDeployment, servedVersions } from './objects.ts'

type Reads = SurveyDependencies['kube']

async function survey(deps: SurveyDependencies, signal: AbortSignal): Promise<Survey> {
  const { env, kube, clock, logger, userAgent } = deps
  const { config, scope, group } = readHubSettings(env, clock, logger)
  try {
    const hub = config ? createKubeClient({ transport: config.transport, clock, userAgent }) : kube
    const names = namesOf(group)
    const deployments = await listed(hub, group, signal)
    if (deployments === undefined)
      return { groups: [], remarks: [`${config?.server ?? 'The cluster'} serves no MachineDeployments.`] }
    const own = deployments.filter(
      ({ metadata, spec }) =>
        (scope.namespace === undefined || metadata.namespace === scope.namespace) &&
        (scope.clusterName === undefined || spec?.clusterName === scope.clusterName),
    )
    const templates = new InfrastructureTemplates({ hub: { kube: hub }, clock, logger })
    const readings = await Promise.all(
      own.map(async (each) => readDeployment(each, await templates.factsOf(each), noPrices, names)),
    )
    const used = readings.flatMap((each) => (each.kind === 'participant' ? [each.participant] : []))
    return {
      groups: used.map((each) => groupOf(each, names)),
      types: instanceTypesOf(used),
      remarks: [...readings.flatMap(exclusionOf), ...(await poolRemarks(hub, group, signal))],
    }
  } catch (error) {
    signal.throwIfAborted()
    if (!isKubeError(error)) throw error
    return { groups: [], remarks: [`MachineDeployments cannot be read: ${error.message}.`] }
  } finally {
    config?.close()
  }
}

/** Undefined if no supported version is served. */
async function listed(
  hub: Reads,
  group: string,
  signal: AbortSignal,
): Promise<readonly MachineDeployment[] | undefined> {
  for (const version of servedVersions) {
    try {
      return await hub.list(kindsOf(group, version).machineDeployment, { signal })
    } catch (error) {
      if (!isNotServed(error)) throw error
    }
  }
  return undefined
}

function groupOf({ deployment, typeName, taints, maxReplicas }: Participant, names: ClusterApiNames) {
  const { metadata, spec } = deployment
  const [namespace, name] = [metadata.namespace ?? '', metadata.name]
  const isMember = ownValue(metadata.labels, names.member) === ''
  const command = `kubectl label machinedeployment --namespace ${namespace} ${name} ${names.member}=`
  const group: ExistingGroup = {
    source: 'MachineDeployment',
    name,
    otherNames: [`${namespace}/${name}`, `MachineDeployment/${namespace}/${name}`],
    instanceType: typeName,
    ...(spec?.replicas !== undefined && { size: spec.replicas }),
    ...(maxReplicas !== undefined && { maxSize: maxReplicas }),
    // Nodes get them from their Machines: the NodePool selects by type and does not set them again.
    labels: {},
    taints,
    nodeClassSpec: {},
    remarks: isMember
      ? []
      : [`Tenon uses the MachineDeployment once it has a label, in the management cluster: ${command}`],
  }
  return group
}

function exclusionOf(reading: Reading): readonly string[] {
  if (reading.kind !== 'excluded') return []
  const { namespace, name } = reading.key
  return [`MachineDeployment ${namespace}/${name} cannot be used: ${reading.because}.`]
}

async function poolRemarks(hub: Reads, group: string, signal: AbortSignal): Promise<readonly string[]> {
  for (const version of servedVersions) {
    const type: ResourceType = {
      group,
      version,
      kind: 'MachinePool',
      plural: 'machinepools',
      namespaced: true,
    }
    try {
      const pools = await hub.list(type, { signal })
      return pools.map(
        ({ metadata }) =>
          `MachinePool ${metadata.namespace ?? ''}/${metadata.name} is left as it is: nodes are launched from MachineDeployments only.`,
      )
    } catch (error) {
      signal.throwIfAborted()
      // It is optional.
      if (!isKubeError(error)) throw error
    }
  }
  return []
}

/** On a Node: name of its Machine. */
const machineAnnotation = namesOf(defaultGroup).machine

export const surveyModule: SurveyModule = {
  recognizes: ({ metadata }) =>
    ownValue(metadata.annotations, machineAnnotation) === undefined ? 'none' : 'managed',
  nodeClass: clusterAPINodeClassKind,
  nodeClassSpecOf: () => ({}),
  survey,
}
