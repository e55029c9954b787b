/** Reads what a plan needs. Nothing in the cluster or the cloud is changed. */
import {
  controllerOf,
  isKnownEphemeralTaint,
  kinds,
  labels,
  type Node,
  ownValue,
  type Pod,
  podRequests,
  type Resources,
  type Taint,
} from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { ExistingGroup, OfflineCatalogue, ProviderModule, Survey, SurveyModule } from '@tenon/provider'
import { type Clock, silentLogger } from '@tenon/runtime'
import { autoscalerIn, deploymentKind } from '../../source/autoscalers.ts'
import { version } from '../../version.ts'
import type { GroupBounds, SeenCluster } from './model.ts'

export interface Sources {
  readonly kube: Pick<KubeClient, 'get' | 'list'>
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
  readonly module: ProviderModule
  readonly surveyModule: SurveyModule
  readonly nodes: readonly Node[]
  readonly readText: (path: string) => Promise<string>
}

/** @throws ProviderSettingError for an invalid setting, KubeError if the cluster cannot be read. */
export async function seeCluster(sources: Sources, signal: AbortSignal): Promise<SeenCluster> {
  const { kube, clock, env, module, surveyModule, nodes, readText } = sources
  const [pods, deployments, offline, survey] = await Promise.all([
    kube.list(kinds.pod, { signal }),
    kube.list(deploymentKind, { signal }),
    module.offline(env, readText),
    surveyModule.survey(
      { env, kube, nodes, clock, logger: silentLogger, userAgent: `tenon/${version}` },
      signal,
    ),
  ])
  const bounds = deployments.flatMap((deployment): readonly GroupBounds[] => {
    const running = autoscalerIn(deployment)
    return running?.kind === 'clusterAutoscaler' ? running.nodes : []
  })
  return {
    title: module.title,
    nodeClass: surveyModule.nodeClass,
    groups: survey.groups.length > 0 ? survey.groups : groupsOfNodes(nodes, surveyModule),
    bounds,
    types: typesOf(survey, offline),
    pending: pods.filter(isPending),
    daemonRequests: daemonRequestsOf(pods),
    nodeClassSpecOf: (type) => surveyModule.nodeClassSpecOf(type),
    isOwnLabel: (key) => isOwnLabel(key, offline),
    remarks: survey.remarks,
  }
}

/** One entry per name: a type of several zones has offerings in each of them. */
function typesOf({ types }: Survey, offline: OfflineCatalogue): SeenCluster['types'] {
  const all = types ?? offline.typesOf(undefined).offered
  return [...new Map(all.map((type) => [type.name, type])).values()]
}

/** Nodes of the same type and taints that have no NodePool. */
function groupsOfNodes(nodes: readonly Node[], module: SurveyModule): readonly ExistingGroup[] {
  const groups = new Map<
    string,
    { readonly taints: readonly Taint[]; readonly type: string; count: number }
  >()
  for (const { metadata, spec } of nodes) {
    const type = ownValue(metadata.labels, labels.instanceType) ?? ''
    if (type === '' || ownValue(metadata.labels, labels.nodePool) !== undefined) continue
    const taints = (spec?.taints ?? []).filter(isOfUser).map(
      ({ key: name, value, effect }): Taint => ({
        key: name,
        effect,
        ...(value !== undefined && { value }),
      }),
    )
    const key = JSON.stringify([type, taints])
    const known = groups.get(key)
    if (known === undefined) groups.set(key, { taints, type, count: 1 })
    else known.count++
  }
  return [...groups.values()].map(({ taints, type, count }) => ({
    source: 'nodes of type',
    name: type,
    otherNames: [],
    instanceType: type,
    size: count,
    labels: {},
    taints,
    nodeClassSpec: module.nodeClassSpecOf(type),
    remarks: ['Only the nodes were seen, not the group they are from: check the node class.'],
  }))
}

/** Taints that neither Kubernetes nor its cloud controller nor an autoscaler sets temporarily. */
function isOfUser(taint: Taint): boolean {
  return (
    !isKnownEphemeralTaint(taint) &&
    !/^(node\.kubernetes\.io|node\.cloudprovider\.kubernetes\.io|karpenter\.sh)\//.test(taint.key) &&
    !/^(ToBeDeletedByClusterAutoscaler|DeletionCandidateOfClusterAutoscaler)$/.test(taint.key)
  )
}

/** Whether a pod waits for a node. DaemonSet pods are bound to theirs. */
function isPending({ metadata, spec, status }: Pod): boolean {
  return (
    (spec?.nodeName ?? '') === '' &&
    status?.phase !== 'Succeeded' &&
    status?.phase !== 'Failed' &&
    metadata.deletionTimestamp === undefined &&
    controllerOf({ metadata })?.kind !== 'DaemonSet'
  )
}

/** The maximum requests of DaemonSet pods on a node, per resource. */
function daemonRequestsOf(pods: readonly Pod[]): Resources {
  const byNode = new Map<string, Map<string, number>>()
  for (const { metadata, spec } of pods) {
    if (spec?.nodeName === undefined || controllerOf({ metadata })?.kind !== 'DaemonSet') continue
    const sums = byNode.get(spec.nodeName) ?? new Map<string, number>()
    byNode.set(spec.nodeName, sums)
    for (const [name, amount] of Object.entries(podRequests(spec)))
      sums.set(name, (sums.get(name) ?? 0) + amount)
  }
  const most = new Map<string, number>()
  for (const sums of byNode.values())
    for (const [name, amount] of sums) most.set(name, Math.max(most.get(name) ?? 0, amount))
  return Object.fromEntries(most)
}

/** Labels of Kubernetes, Karpenter and the cloud cannot be set by a NodePool. */
function isOwnLabel(key: string, { rules }: OfflineCatalogue): boolean {
  const domain = key.includes('/') ? (key.split('/')[0] ?? '') : ''
  const reserved = ['kubernetes.io', 'k8s.io', 'karpenter.sh', ...(rules.restrictedDomains ?? [])]
  return (
    !rules.wellKnownLabels.includes(key) &&
    !reserved.some((each) => domain === each || domain.endsWith(`.${each}`))
  )
}
